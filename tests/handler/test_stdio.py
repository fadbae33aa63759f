"""The standard-stream edge: a real client and a real process, in both eras of the protocol."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

import pytest
from mcp import Client, StdioServerParameters
from mcp_types import TextContent

from tests.handler.running import MODERN

ROOT = Path(__file__).parents[2]
SCRIPT = """
import os, sys
sys.path.insert(0, os.getcwd())
from engine.answer import Answer
from handler.stdio import serve_stdio
from tests.handler.small_app import SmallApp

class Noisy(SmallApp):
    def call(self, request, caller, *, brute=False):
        print("a stray line on standard output")
        os.write(1, b"and one past Python\\n")
        return super().call(request, caller, brute=brute)

serve_stdio(Noisy())
"""
COMMAND = StdioServerParameters(command=sys.executable, args=["-c", SCRIPT], cwd=ROOT)


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_client_finds_and_reads_over_standard_streams(mode: Literal["legacy", "auto"]) -> None:
    async with Client(COMMAND, mode=mode, read_timeout_seconds=30) as client:
        assert client.instructions is not None
        assert client.instructions.startswith("Hayfork searches tests: 4 messages, as seen by local.")
        assert len((await client.list_tools()).tools) == 5
        result = await client.call_tool("search_messages", {"query": "日本"})
        content = result.content[0]
        assert isinstance(content, TextContent)
        assert content.text == "found: 1 messages\n[C2:3.1] 日本語のテキスト 🎉"


def envelope(identity: int, method: str, params: dict[str, Any], *, modern: bool) -> bytes:
    if modern:
        params = params | {
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientCapabilities": {},
            }
        }
    return json.dumps({"jsonrpc": "2.0", "id": identity, "method": method, "params": params}).encode() + b"\n"


@pytest.mark.parametrize("modern", [False, True])
def test_lines_are_compact_utf8_and_half_a_character_is_answered(*, modern: bool) -> None:
    client = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    first = ("server/discover", {}) if modern else ("initialize", client)
    sent = envelope(1, *first, modern=modern)
    if not modern:
        sent += b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
    for identity, query in ((2, "ж"), (3, "\ud800"), (4, "日本")):
        arguments = {"name": "search_messages", "arguments": {"query": query}}
        sent += envelope(identity, "tools/call", arguments, modern=modern)
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(sent)
        server.stdin.flush()
        lines = [server.stdout.readline() for _ in range(4)]
        server.stdin.close()
        assert server.stdout.read() == b""
        assert server.wait(timeout=20) == 0
    replies = {json.loads(line)["id"]: line for line in lines}
    for line in lines:
        assert line == json.dumps(json.loads(line), ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
    assert "日本語のテキスト 🎉".encode() in replies[4]
    assert json.loads(replies[1])["result"]["instructions"].startswith("Hayfork searches tests")
    refused = json.loads(replies[3])["result"]
    assert (refused["isError"], refused["content"][0]["text"]) == (
        True,
        "bad_value: query holds half of a surrogate pair at position 1; send whole characters",
    )

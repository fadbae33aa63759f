"""The HTTP edge: what it refuses before the library, what leaves it, and the server on a laptop."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from engine.answer import Answer
from engine.errors import BadInput
from handler.bodies import BodyLimits
from handler.http import HttpOptions, serve_http
from tests.handler.running import MODERN, VERSIONS, exchange, running
from tests.handler.small_app import SmallApp

ROOT = Path(__file__).parents[2]
COUNT = {"name": "count_messages", "arguments": {}}


@pytest.mark.parametrize("verb", ["GET", "DELETE", "PUT", "OPTIONS"])
@pytest.mark.parametrize("version", VERSIONS)
def test_only_post_is_served_and_a_get_returns_at_once(verb: str, version: str) -> None:
    with running(SmallApp()) as port:
        reply = exchange(port, "ping", verb=verb, version=version, headers={"accept": "text/event-stream"})
    assert (reply.status, reply.headers["allow"]) == (405, "POST")
    assert reply.json == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": -32600, "message": "only POST is served here"},
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_bodies_leave_as_compact_utf8_of_the_length_they_name(version: str) -> None:
    text = 'ж語🎉 "quoted" \\ \x01 \u2028'
    with running(SmallApp(answer=lambda _, __: Answer(text, {}))) as port:
        reply = exchange(port, "tools/call", COUNT, version=version)
    assert reply.json["result"]["content"] == [{"type": "text", "text": text}]
    assert 'ж語🎉 \\"quoted\\" \\\\ \\u0001 \u2028'.encode() in reply.body
    assert reply.body == json.dumps(reply.json, ensure_ascii=False, separators=(",", ":")).encode()
    assert reply.headers["content-length"] == str(len(reply.body))
    assert reply.headers["content-type"] == "application/json"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_foreign_host_or_origin_is_refused_until_it_is_allowed(version: str) -> None:
    foreign = {"host": "search.example"}
    with running(SmallApp()) as port:
        assert exchange(port, "tools/call", COUNT, version=version, headers=foreign).status == 421
        page = {"origin": "https://evil.example"}
        assert exchange(port, "tools/call", COUNT, version=version, headers=page).status == 403
        for host in ("localhost", f"localhost:{port}", f"[::1]:{port}"):
            assert exchange(port, "tools/call", COUNT, version=version, headers={"host": host}).status == 200
    named = HttpOptions(allowed_hosts=("search.example",), allowed_origins=("https://app.example",))
    with running(SmallApp(), named) as port:
        own = foreign | {"origin": "https://app.example"}
        assert exchange(port, "tools/call", COUNT, version=version, headers=own).status == 200
        other = {"host": "evil.example"}
        assert exchange(port, "tools/call", COUNT, version=version, headers=other).status == 421
    with running(SmallApp(), HttpOptions(allowed_hosts=("*",))) as port:
        assert exchange(port, "tools/call", COUNT, version=version, headers=foreign).status == 200


@pytest.mark.parametrize("version", VERSIONS)
def test_a_body_over_the_limit_is_refused_and_the_next_is_served(version: str) -> None:
    with running(SmallApp(), HttpOptions(body=BodyLimits(max_bytes=20_000))) as port:
        long = {"name": "count_messages", "arguments": {"query": "x" * 20_000}}
        reply = exchange(port, "tools/call", long, version=version)
        assert reply.status == 413
        assert reply.json["error"]["message"] == "the body is over 20000 bytes"
        assert exchange(port, "tools/call", COUNT, version=version).status == 200


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"\\ud800',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"jsonrpc":"2.0","id":1}',
        b'{"jsonrpc":"2.0","id":"\\ud800","method":"tools/list"}',
        b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\\ud800"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search_messages","arguments":[]}}',
        b'{"jsonrpc":"2.0","id":' + b"1" * 5_000 + b',"method":"tools/list"}',
    ],
    ids=range(13),
)
def test_what_is_no_request_is_answered_shortly_and_the_server_goes_on(version: str, body: bytes) -> None:
    with running(SmallApp()) as port:
        reply = exchange(port, "tools/list", version=version, body=body)
        assert reply.status in {200, 400, 404}
        assert len(reply.body) <= 2_048 or "tools" in reply.json["result"]
        assert "Traceback" not in reply.body.decode()
        assert exchange(port, "tools/call", COUNT, version=version).status == 200


def test_health_is_told_to_anyone() -> None:
    with running(SmallApp()) as port:
        reply = exchange(port, "", verb="GET", path="/health", headers={"host": "balancer.example"})
        assert (reply.status, reply.json) == (200, {"status": "ok"})
        assert exchange(port, "", verb="GET", path="/other").status == 404


SCRIPT = """
import os, sys
sys.path.insert(0, os.getcwd())
from handler.http import serve_http
from tests.handler.small_app import SmallApp
serve_http(SmallApp(), "127.0.0.1", 0, ready=lambda port: print(port, flush=True))
"""


def test_the_server_says_its_port_answers_quietly_and_ends_when_interrupted() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        assert server.stderr is not None
        port = int(server.stdout.readline())
        for version in VERSIONS:
            assert exchange(port, "tools/call", COUNT, version=version).status == 200
        os.kill(server.pid, signal.SIGINT)
        assert server.wait(timeout=20) == 0
        assert (server.stdout.read(), server.stderr.read()) == ("", "")


def test_a_taken_address_is_told_and_not_thrown() -> None:
    with (
        running(SmallApp()) as port,
        pytest.raises(BadInput, match=f"cannot listen on '127.0.0.1' port {port}"),
    ):
        serve_http(SmallApp(), "127.0.0.1", port)


def test_the_edge_imports_neither_stores_nor_a_terminal() -> None:
    # The protocol library brings uvicorn along wherever it is installed; ours is asked for only to serve.
    check = """
        import sys
        import handler.http, handler.mcp_server, handler.arguments
        print([m for m in ("rich", "typer", "boto3", "duckdb", "numpy") if m in sys.modules])
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(check)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_headers_must_agree_with_the_body() -> None:
    with running(SmallApp()) as port:
        reply = exchange(port, "tools/call", COUNT, version=MODERN, headers={"mcp-name": "export_messages"})
        assert reply.status == 400

"""The demonstration, as a person sees it: the real server, the official client, a small corpus."""

import json
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp_types import TextContent

from handler.cli import main
from handler.demo import prepare
from handler.settings import load_settings
from handler.wiring import build_app, system_clock

TOOLS_CALLED = [
    "count_messages",
    "search_messages",
    "unseen_messages",
    "unseen_messages",
    "open_thread",
    "export_messages",
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which a demonstration has been prepared."""
    folder = tmp_path_factory.mktemp("demo") / "corpus"
    prepare(folder, 1_000, 1, lambda settings: build_app(settings, system_clock), None)
    return folder


def test_the_demo_finds_its_answers_and_ends_by_itself(
    corpus: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(corpus.parent)
    assert main(["demo", "--messages", "1000", "--folder", str(corpus)]) == 0
    out = capsys.readouterr().out
    assert re.findall(r"^▶ (\w+)", out, re.MULTILINE) == TOOLS_CALLED
    assert "found: 105 messages by " in out
    assert [int(number) for number in re.findall(r"\| session \S+ batch (\d+)", out)] == [1, 2, 3, 4]
    sizes = [int(size.replace(",", "")) for size in re.findall(r"([\d,]+) bytes$", out, re.MULTILINE)]
    assert len(sizes) == len(TOOLS_CALLED)
    assert max(sizes) <= 16_384
    table = [line.split() for line in out[out.index("What it took") :].splitlines()]
    assert ["every", "message,", "as", "text", "1,000"] in [line[:5] for line in table]
    assert ["every", "match,", "as", "exported", "105"] in [line[:5] for line in table]
    assert ["what", "the", "agent", "saw,", "in", "6", "calls", f"{sum(sizes):,}"] in table
    for client in ("claude mcp add hayfork -- ", '"mcpServers"', '"servers"', "/mcp"):
        assert client in out


def test_what_it_prints_for_clients_starts_the_server(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--messages", "1000", "--folder", str(corpus)]) == 0
    out = capsys.readouterr().out
    printed = out[out.index('{\n  "mcpServers"') :]
    entry = json.JSONDecoder().raw_decode(printed)[0]["mcpServers"]["hayfork"]

    async def count() -> str:
        async with Client(StdioServerParameters(command=entry["command"], args=entry["args"])) as client:
            result = await client.call_tool("count_messages", {"query": "OpenAI", "from_role": "client"})
            (part,) = result.content
            assert isinstance(part, TextContent)
            return part.text

    assert "found: 105 messages by " in anyio.run(count)


def test_a_corpus_that_is_there_is_used_again(corpus: Path) -> None:
    def times() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in corpus.rglob("*") if "exports" not in path.parts}

    before = times()
    prepared = prepare(corpus, 1_000, 1, lambda settings: build_app(settings, system_clock), None)
    assert times() == before
    assert (prepared.config, prepared.rows) == (corpus / "hayfork.toml", 1_000)
    assert load_settings(prepared.config).corpus.name


def test_a_demo_that_is_kept_runs_until_interrupted(corpus: Path) -> None:
    arguments = ["demo", "--messages", "1000", "--folder", str(corpus), "--keep"]
    process = subprocess.Popen(
        [sys.executable, "-m", "handler.cli", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env={"HAYFORK_SERVER_PORT": "0", "PATH": "/usr/bin:/bin"},
    )
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert any("The server is running" in line for line in process.stdout)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
        assert process.stderr.read() == ""


def test_a_server_that_does_not_start_is_told(
    corpus: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setenv("HAYFORK_SERVER_PORT", str(port))
        assert main(["demo", "--messages", "1000", "--folder", str(corpus), "--keep"]) == 1
    told = f"demo_failed: the server did not start: cannot_listen: cannot listen on '127.0.0.1' port {port}: "
    assert capsys.readouterr().err.startswith(told)

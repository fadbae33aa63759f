"""The demonstration: an MCP client finds answers in a made-up corpus without being shown it.

Decides the calls and what is printed around them. The server is a process of its own on a free loopback port,
and all that is known of the corpus comes over the protocol, as an agent would have it; only the last table
knows more.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import IO, Any

import anyio
from mcp import Client
from mcp_types import CallToolResult, TextContent
from rich import box
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from engine.errors import Unavailable
from engine.ports import Progress
from engine.synth import write_corpus
from handler.app import App
from handler.settings import Settings, load_settings
from handler.wire import compact

__all__ = ["Prepared", "prepare", "run_demo"]

_QUESTION = "What concerns do clients have about OpenAI?"
_FILTERS: dict[str, object] = {"query": "OpenAI", "from_role": ["client"]}
_READING: dict[str, object] = {**_FILTERS, "min_words": 8}

_ADDRESS = re.compile(r"serving (http://\S+)")
_SESSION = re.compile(r"\bsession (\S+) batch \d+")
_HIT = re.compile(r"^\[(\S+)\] ", re.MULTILINE)
_THREADED = re.compile(r"^\[(\S+)\] .*\[thread \S+ \d+\]$", re.MULTILINE)
_LINK = re.compile(r"^link: (.+)$", re.MULTILINE)
_LINES_PRINTED = 16
"""Of a long result a person reads the head; the byte count is of the whole."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A corpus that is ready to be served: its configuration, and what it weighs."""

    config: Path
    rows: int
    text_bytes: int


def prepare(
    folder: Path, messages: int, seed: int, build: Callable[[Settings], App], progress: Progress | None
) -> Prepared:
    """Make the corpus in `folder` unless it is there, and its snapshot unless it is current.

    Raises:
        EngineError: what stands in the way.
    """
    answers, config = folder / "answers.json", folder / "hayfork.toml"
    if not config.exists():  # the last file written: without it the corpus is not whole
        write_corpus(folder, messages, seed, progress)
    known = json.loads(answers.read_text("utf-8"))
    build(load_settings(config)).refresh(progress)
    return Prepared(config, known["rows"], known["body_bytes"])


def run_demo(console: Console, prepared: Prepared, *, keep: bool = False) -> None:
    """Start the server, call it, print everything, stop it. With `keep` it runs until interrupted.

    Raises:
        Unavailable: `demo_failed` when the server does not start or a call fails.
    """
    with _server(prepared.config, fixed_port=keep) as address:
        console.print(
            Panel(
                f"{prepared.rows:,} messages, {prepared.text_bytes:,} bytes of text, at {address}\n"
                f"The question: {_QUESTION}",
                title="hayfork demo",
                expand=False,
            )
        )
        told = anyio.run(_converse, address, console)
        _sum_up(console, prepared, told)
        _how_to_connect(console, prepared.config, address)
        if keep:
            _wait(console)


@dataclass(slots=True)
class _Told:
    """What the agent saw: texts by call, and bytes of whole results."""

    calls: list[tuple[str, int]] = field(default_factory=list)
    exported: Path | None = None


async def _converse(address: str, console: Console) -> _Told:
    told = _Told()
    async with Client(address) as client:
        console.print(Text(client.instructions or "", "dim"), soft_wrap=True)

        async def call(tool: str, why: str, **arguments: object) -> str:
            result = await client.call_tool(tool, arguments)
            text, size = _read(result)
            told.calls.append((tool, size))
            console.print()
            console.print(Text.assemble(("▶ ", "green"), (tool, "bold green"), f"  {why}"))
            console.print(Text(compact(arguments).decode(), "cyan"), soft_wrap=True)
            _show_result(console, text, size)
            if result.is_error:
                raise Unavailable("demo_failed", f"{tool} answered with an error", detail=text)
            return text

        await call("count_messages", "How much is there, when and where?", **_FILTERS)
        found = await call("search_messages", "A few excerpts, from clients only.", **_READING)
        session = _first(_SESSION, found)
        threaded, hits = _THREADED.findall(found), _HIT.findall(found)
        for why in ("What else did they say?", "And what else?"):
            more = await call("unseen_messages", why, **_READING, session=session)
            threaded += _THREADED.findall(more)
            hits += _HIT.findall(more)
        opened = [*threaded, *hits][0]
        await call("open_thread", "What was answered?", message=[opened], session=session)
        exported = await call("export_messages", "All of it, for a person; no text is shown.", **_FILTERS)
        told.exported = _exported(exported)
    return told


def _first(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    if match is None:
        raise Unavailable("demo_failed", "a result lacks what the next call needs")
    return match[1]


def _read(result: CallToolResult) -> tuple[str, int]:
    """The text the model reads, and the bytes of the whole result."""
    text = "\n".join(part.text for part in result.content if isinstance(part, TextContent))
    return text, len(compact(result.model_dump(mode="json", by_alias=True, exclude_none=True)))


def _exported(text: str) -> Path | None:
    """The exported file, when its link is a path of this machine."""
    match = _LINK.search(text)
    path = Path(match[1]) if match else None
    return path if path is not None and path.is_absolute() and path.is_file() else None


def _show_result(console: Console, text: str, size: int) -> None:
    lines = text.splitlines()
    for line in lines[:_LINES_PRINTED]:
        console.print(_marked(line), soft_wrap=True)  # lines as the model reads them
    left = f"{len(lines) - _LINES_PRINTED} more lines; " if len(lines) > _LINES_PRINTED else ""
    console.print(Text(f"{left}{size:,} bytes", "dim"))


def _marked(line: str) -> Text:
    """The line as it came, its marks in colour; markup and control characters mean nothing."""
    text = Text("".join(c if c.isprintable() else "\ufffd" for c in line))
    text.highlight_regex(r"⟦[^⟧]*⟧", "bold yellow")
    return text


def _sum_up(console: Console, prepared: Prepared, told: _Told) -> None:
    table = Table(title="What it took", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    table.add_column("messages", justify="right")
    table.add_column("bytes", justify="right")
    table.add_row("every message, as text", f"{prepared.rows:,}", f"{prepared.text_bytes:,}")
    if told.exported is not None:
        raw = told.exported.read_bytes()
        lines = len(raw.splitlines())
        table.add_row("every match, as exported", f"{lines:,}", f"{len(raw):,}")
    seen = sum(size for _, size in told.calls)
    table.add_row(f"what the agent saw, in {len(told.calls)} calls", "", f"{seen:,}", style="bold")
    console.print()
    console.print(table)


def _how_to_connect(console: Console, config: Path, address: str) -> None:
    """The same server in other people's clients. Over HTTP it must run; standard streams start it."""
    command = str(Path(sys.executable).parent / "hayfork")
    arguments = ["--config", str(config.resolve()), "serve", "--stdio"]
    entry: dict[str, Any] = {"command": command, "args": arguments}
    line = " ".join([command, *arguments])
    for title, text in (
        ("Claude Code", f"claude mcp add hayfork -- {line}"),
        (
            "Claude Desktop (claude_desktop_config.json), Cursor (.cursor/mcp.json)",
            _pretty("mcpServers", entry),
        ),
        ("VS Code (.vscode/mcp.json)", _pretty("servers", {"type": "stdio", **entry})),
        ("Any client that speaks Streamable HTTP, while the server runs (make serve)", address),
    ):
        console.print(Text(f"\n{title}", "bold"))
        # Whole lines, however long: they are there to be copied.
        console.print(Text(text), soft_wrap=True)


def _pretty(key: str, entry: dict[str, Any]) -> str:
    return json.dumps({key: {"hayfork": entry}}, indent=2)


@contextmanager
def _server(config: Path, *, fixed_port: bool) -> Iterator[str]:
    """A server process on the loopback address; its address. A client's entry outlives only a fixed port."""
    arguments = [sys.executable, "-m", "handler.cli", "--config", str(config.resolve())]
    process = subprocess.Popen(  # noqa: S603 - our own program, arguments are not a shell's
        [*arguments, "serve", "--host", "127.0.0.1", *([] if fixed_port else ["--port", "0"])],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    with process:
        try:
            if process.stderr is None:
                raise AssertionError("a pipe was asked for")
            yield _address(process.stderr)
        finally:
            process.terminate()


def _address(errors: IO[str]) -> str:
    """What the server says once it answers; whatever it says later is passed on."""
    said = []
    for line in errors:
        match = _ADDRESS.search(line)
        if match:
            Thread(target=_pass_on, args=(errors,), daemon=True).start()
            return match[1]
        said.append(line)
    raise Unavailable("demo_failed", f"the server did not start: {' '.join(said[-1:]).strip()}")


def _pass_on(errors: IO[str]) -> None:
    for line in errors:
        sys.stderr.write(line)


def _wait(console: Console) -> None:
    try:
        console.print("The server is running; press Ctrl+C to stop it.")
        Event().wait()
    except KeyboardInterrupt:
        return

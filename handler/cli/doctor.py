"""A laptop's health: each thing a working corpus needs, found well or with what to do.

Decides what is looked at, and never mends anything. Must never print a path that the configuration does not
hold.
"""

import shutil
import socket
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from rich.console import Console
from rich.text import Text

from engine.errors import EngineError
from engine.sources.table_files import find_files
from handler.app import App
from handler.cli.shell import LOCAL, Shell, now, progress_shown
from handler.settings import Settings
from handler.settings_table import SourceSettings

__all__ = ["Finding", "examine", "show_findings"]

_FREE_BYTES = 1_000_000_000
"""A refresh holds the old snapshot and the new one, and spills beside them."""

_OLD_DAYS = 7


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at: how it is, and when it is not well, what to do."""

    what: str
    ok: bool
    state: str
    advice: str = ""

    def to_object(self) -> dict[str, object]:
        """All four parts; `advice` only when there is some."""
        return {name: value for name, value in asdict(self).items() if value != ""}


def examine(shell: Shell, *, quick: bool = False) -> Iterator[Finding]:
    """Everything in the order in which it is mended best. `quick` does not rehash the snapshot."""
    yield _duckdb()
    try:
        settings = shell.settings()
    except EngineError as error:
        yield _unwell("configuration", error)
        return
    if settings.config_file is None:
        yield Finding("configuration", False, "none found", "write a hayfork.toml here, or name one by --config")
    else:
        yield Finding("configuration", True, str(settings.config_file))
    if not settings.sources:
        yield Finding("sources", False, "none", "add a [[sources]] block with format and location")
    for source in settings.sources:
        yield _source(source)
    yield from _snapshot(shell, settings, quick=quick)
    if "://" not in settings.corpus.root:
        yield _disk(Path(settings.corpus.root))
    yield _port(settings.server.host, settings.server.port)


def show_findings(console: Console, findings: Sequence[Finding]) -> None:
    """One line each."""
    width = max((len(finding.what) for finding in findings), default=0)
    for finding in findings:
        mark = ("ok      ", "green") if finding.ok else ("not well", "bold red")
        line = Text.assemble(mark, f"  {finding.what:<{width}}  {finding.state}")
        if finding.advice:
            line.append(f"; {finding.advice}", "yellow")
        console.print(line, soft_wrap=True)


def _unwell(what: str, error: EngineError) -> Finding:
    return Finding(what, False, error.message, error.next_step)


def _duckdb() -> Finding:
    """The extension must be of DuckDB's own version, or it does not load."""
    own = version("duckdb")
    try:
        extension = version("duckdb-extension-httpfs")
    except PackageNotFoundError:
        return Finding("duckdb", False, f"{own} without httpfs", "run make setup")
    if extension != own:
        return Finding("duckdb", False, f"{own} with httpfs {extension}", "run make setup")
    return Finding("duckdb", True, f"{own} with httpfs {extension}")


def _source(source: SourceSettings) -> Finding:
    what = f"source {source.name}"
    if "://" in source.location:
        return Finding(what, True, "not on this machine: not looked at")
    if source.format == "slack":
        place = Path(source.location)
        if place.is_dir() or place.is_file():
            return Finding(what, True, f"slack, a {'folder' if place.is_dir() else 'file'}")
        return Finding(what, False, "does not exist", "mend its location")
    try:
        files = find_files(source.format, source.location)
    except EngineError as error:
        return _unwell(what, error)
    return Finding(what, True, f"{source.format}, {len(files)} {'file' if len(files) == 1 else 'files'}")


def _snapshot(shell: Shell, settings: Settings, *, quick: bool) -> Iterator[Finding]:
    try:
        app = shell.build(settings)
        facts = app.corpus(LOCAL)
    except EngineError as error:
        yield Finding("snapshot", False, error.message, error.next_step or "run hayfork refresh")
        return
    yield _age(facts)
    if not quick:
        yield _intact(app)


def _age(facts: dict[str, object]) -> Finding:
    """What the corpus says of itself: how many messages, as of when."""
    found, searched = facts.get("found"), facts.get("searched")
    number = found.get("messages", 0) if isinstance(found, dict) else 0
    made = searched.get("as_of") if isinstance(searched, dict) else None
    if not isinstance(made, str):
        return Finding("snapshot", True, f"{number:,} messages")
    days = (datetime.fromtimestamp(now() / 1_000_000, UTC) - datetime.fromisoformat(made)).days
    state = f"{number:,} messages, {days} days old" if days else f"{number:,} messages, made today"
    if days >= _OLD_DAYS:
        return Finding("snapshot", True, state, "run hayfork refresh if the sources have changed")
    return Finding("snapshot", True, state)


def _intact(app: App) -> Finding:
    try:
        with progress_shown() as progress:
            app.verify(progress)
    except EngineError as error:
        return _unwell("files of the snapshot", error)
    return Finding("files of the snapshot", True, "as the manifest says")


def _disk(root: Path) -> Finding:
    place = next(path for path in (root, *root.parents) if path.exists())
    free = shutil.disk_usage(place).free
    state = f"{free / 1e9:.1f} GB free"
    if free < _FREE_BYTES:
        return Finding("disk", False, state, "free some, or move corpus.root")
    return Finding("disk", True, state)


def _port(host: str, port: int) -> Finding:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.create_server((host, port), family=family):
            return Finding("port", True, f"{port} of {host} is free")
    except OSError:
        return Finding("port", False, f"{port} of {host} is taken", "set server.port, or stop what listens there")

"""What every command is given: which configuration, how the application is made, and whether JSON is wanted.

Decides nothing about the commands. Must never import the server or a store before a command needs it.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from engine.ports import Progress as Told
from engine.sight import Caller
from handler.app import App
from handler.settings import Settings, load_settings
from handler.wire import compact

__all__ = ["LOCAL", "Shell", "now", "progress_shown", "write_json", "written"]

LOCAL = Caller("local")
"""The person at the keyboard: the same caller as a client of a server without access control."""


def now() -> int:
    """Microseconds since 1970, UTC."""
    return time.time_ns() // 1_000


def _wired(settings: Settings) -> App:
    from handler.wiring import build_counted_app  # noqa: PLC0415 - `--help` and errors should not wait for it

    return build_counted_app(settings, now)


@dataclass(frozen=True, slots=True)
class Shell:
    """The state of one run. `build` makes the application of settings."""

    build: Callable[[Settings], App] = _wired
    config: Path | None = None

    def settings(self) -> Settings:
        """The settings in force.

        Raises:
            BadInput: what is wrong with them.
        """
        return load_settings(self.config)

    def app(self) -> App:
        """The application over those settings for one command; raises likewise.

        Nobody could ask the ended process after an export, so the command waits until it is written; who
        grows tired of a command interrupts it.
        """
        settings = self.settings()
        limits = settings.limits.model_copy(update={"export_wait_seconds": 0, "call_seconds": 0})
        return self.build(settings.model_copy(update={"limits": limits}))


def write_json(value: object) -> None:
    """One line of compact JSON on standard output."""
    sys.stdout.write(compact(value).decode() + "\n")


def written() -> Console:
    """Standard output for people. A pipe gets wide plain text, so that nothing is cut."""
    console = Console(highlight=False, soft_wrap=False)
    return console if console.is_terminal else Console(highlight=False, width=max(console.width, 160))


@contextmanager
def progress_shown() -> Iterator[Told | None]:
    """Bars on standard error while a long step runs; `None` where nobody is watching."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (
        *(TextColumn("{task.description:>10}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()),
        *(TextColumn("left"), TimeRemainingColumn()),
    )
    with Progress(*columns, console=console, transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def told(step: str, done: int, total: int | None) -> None:
            if step not in tasks:
                tasks[step] = bars.add_task(step, total=total)
            bars.update(tasks[step], completed=done, total=total)

        yield told

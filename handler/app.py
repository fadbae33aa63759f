"""The application as its entry points see it: MCP, the command line and the Lambda entries speak to this alone.

`handler.wiring.build_app` makes the real one. Must never know how a request came in.
"""

from typing import Any, Protocol

from engine.answer import Answer
from engine.limits import Limits
from engine.ports import Progress
from engine.requests import Request
from engine.sight import Caller

__all__ = ["App"]


class App(Protocol):
    """One per process. All methods are synchronous and safe to call from several threads."""

    @property
    def limits(self) -> Limits:
        """The limits in force."""
        ...

    def call(self, request: Request, caller: Caller, *, brute: bool = False) -> Answer:
        """Answer one tool call; `brute` scans even where an index could answer.

        Raises:
            EngineError: everything a caller may be told. Any other exception is a fault of ours.
        """
        ...

    def instructions(self, caller: Caller) -> str:
        """The server's instructions for what this caller sees."""
        ...

    def corpus(self, caller: Caller) -> dict[str, Any]:
        """The same facts as an object: `count_messages` without arguments, for `hayfork://corpus`."""
        ...

    def finish_export(self, export_id: str) -> dict[str, Any]:
        """Write a running export whole, in this process: `{"export", "state", "rows"}`.

        Raises:
            NotFound: `unknown_export`.
            EngineError: what reading or writing met; the export then says `failed`.
        """
        ...

    def refresh(self, progress: Progress | None = None, *, force: bool = False) -> dict[str, Any]:
        """Read the sources, publish a snapshot, and report: read, stored, skipped by reason, problems.

        Raises:
            EngineError: nothing was published; the current snapshot stands.
        """
        ...

    def verify(self, progress: Progress | None = None) -> dict[str, Any]:
        """Rehash every file of the current snapshot and compare it with its manifest.

        Raises:
            BrokenSnapshot: names the first files that differ.
        """
        ...

"""A small `App` over a handful of messages, standing in for `handler.wiring`: the edges are tested alone.

Its matching is a plain substring test, its answers have the forms of the contract's first lines. What the
engine answers is tested in tests/engine and through the wired server.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from engine.answer import Answer
from engine.errors import NotFound, quoted
from engine.limits import Limits, PageBudget
from engine.ports import Progress
from engine.requests import CountRequest, ExportRequest, Request, SearchRequest, ThreadRequest, UnseenRequest
from engine.sight import Caller

__all__ = ["MESSAGES", "SmallApp"]

MESSAGES = {
    "C1:1.1": "Docker will not start on my laptop",
    "C1:2.1": "Перезапусти docker, ротации ключей не было",
    "C2:3.1": "日本語のテキスト 🎉",
    "C2:4.1": 'a "quoted" line\nand another',
}


@dataclass
class SmallApp:
    """`answer` replaces the answer of every call; `calls` are the requests that came, with their callers."""

    limits: Limits = field(default_factory=Limits)
    answer: Callable[[Request, Caller], Answer] | None = None
    facts: Callable[[Caller], str] | None = None
    calls: list[tuple[Request, Caller]] = field(default_factory=list)
    threads: set[str] = field(default_factory=set)

    def call(self, request: Request, caller: Caller, *, brute: bool = False) -> Answer:
        """The answer of `answer`, else of the messages."""
        assert not brute
        self.calls.append((request, caller))
        self.threads.add(threading.current_thread().name)
        if self.answer is not None:
            return self.answer(request, caller)
        if isinstance(request, ThreadRequest):
            found = {i: MESSAGES[i] for i in request.message if i in MESSAGES}
            if not found:
                raise NotFound(
                    "unknown_message",
                    f"no message {quoted(request.message[0])}",
                    next_step="copy an id from a result, or search_messages",
                )
        else:
            criteria = request.search.criteria if isinstance(request, UnseenRequest) else request.criteria
            found = {i: t for i, t in MESSAGES.items() if criteria.query.casefold() in t.casefold()}
        return self._told(request, found)

    def _told(self, request: Request, found: dict[str, str]) -> Answer:
        head: dict[str, Any] = {
            "searched": {"not_searched": {"activity": 0}},
            "found": {"messages": len(found)},
        }
        line = f"found: {len(found)} messages"
        if isinstance(request, CountRequest):
            return Answer(line, head)
        if isinstance(request, ExportRequest):
            link = "https://files.example/exports/1"
            return Answer(f"{line}\nlink: {link}", {**head, "link": link}, link, "application/jsonl")
        shown = request.search.limit if isinstance(request, UnseenRequest) else 10
        shown = request.limit if isinstance(request, SearchRequest) else shown
        texts = list(found.items())[:shown]
        lines = [f"[{i}] {t.replace(chr(10), ' ⏎ ')}" for i, t in texts]
        head |= {"shown": len(texts), "left_out": {"messages": len(found) - len(texts)}}
        head["messages"] = [{"id": i, "text": t} for i, t in texts]
        return Answer("\n".join([line, *lines]), head)

    def instructions(self, caller: Caller) -> str:
        """One line that names the caller."""
        if self.facts is not None:
            return self.facts(caller)
        return f"Hayfork searches tests: {len(MESSAGES)} messages, as seen by {caller.caller_id}. Größe ж 語."

    def corpus(self, caller: Caller) -> dict[str, Any]:
        """The counts of everything."""
        assert caller.caller_id
        return {"searched": {}, "found": {"messages": len(MESSAGES)}}

    def finish_export(self, export_id: str) -> dict[str, Any]:
        """No export is ever running here."""
        raise NotImplementedError

    def refresh(self, progress: Progress | None = None, *, force: bool = False) -> dict[str, Any]:
        """Nothing changes here."""
        raise NotImplementedError

    def verify(self, progress: Progress | None = None) -> dict[str, Any]:
        """Nothing is stored here."""
        raise NotImplementedError


def structured_limits() -> Limits:
    """Limits under which the object travels beside the text."""
    return Limits(page=PageBudget(structured=True))

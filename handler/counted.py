"""The application with every call counted: what it cost is told to an observer, and in the result when the operator
wants it explained.

Decides what is observed of a call, and that an explanation stays within the call's own budget: the application inside
packs for less, and what is told in the rest is cut until it fits. Must never know where signals go, nor keep a text.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from engine.answer import Answer
from engine.errors import EngineError
from engine.limits import Limits, PageBudget
from engine.pack import fits
from engine.ports import Progress
from engine.requests import CountRequest, ExportRequest, Request, SearchRequest, ThreadRequest, UnseenRequest
from engine.sight import Caller
from engine.tally import Tally, counting
from engine.text import one_line
from handler.app import App

__all__ = ["EXPLAIN_BYTES", "CountedApp", "Observed", "Observer", "room_for_explanations", "tool_of"]

EXPLAIN_BYTES = 512
"""Kept back of a result for its explanation: figures and a few terms; longer plans are cut."""

_LEAST_COUNT = 2_048
"""A count is not packed for less: its ladder ends there."""

_TERM_CHARS = 24
_MOST_TERMS = 12

_TOOLS: dict[type[object], str] = {
    CountRequest: "count_messages",
    SearchRequest: "search_messages",
    UnseenRequest: "unseen_messages",
    ThreadRequest: "open_thread",
    ExportRequest: "export_messages",
}


@dataclass(frozen=True, slots=True)
class Observed:
    """One call that ended: `outcome` is `ok`, an error's code, or `internal`.

    `query` is the caller's own words, which only a setting lets into a log. `answer_bytes` are those of the text,
    UTF-8; `cut` says that the budget of bytes ended the page.
    """

    tool: str
    outcome: str
    seconds: float
    answer_bytes: int
    cut: bool
    query: str
    tally: Tally


Observer = Callable[[Observed], None]


def tool_of(request: Request) -> str:
    """The name of the tool that a request is for."""
    return _TOOLS[type(request)]


def room_for_explanations(limits: Limits) -> Limits:
    """Limits for the application inside one that explains."""
    page = limits.page
    smaller = replace(
        page,
        page_bytes=page.page_bytes - EXPLAIN_BYTES,
        count_bytes=max(min(_LEAST_COUNT, page.count_bytes), page.count_bytes - EXPLAIN_BYTES),
    )
    return replace(limits, page=smaller)


class CountedApp:
    """An `App` around another one, made with `room_for_explanations` when `explain`.

    `collect` fetches what the adapters count only when asked; it is asked when a statement was run.
    """

    def __init__(
        self,
        inner: App,
        limits: Limits,
        *,
        observe: Observer | None = None,
        explain: bool = False,
        collect: Callable[[], None] | None = None,
        timer: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._inner = inner
        self._limits = limits
        self._observe = observe
        self._explain = explain
        self._collect = collect
        self._timer = timer

    @property
    def limits(self) -> Limits:
        """The limits in force outside."""
        return self._limits

    def call(self, request: Request, caller: Caller, *, brute: bool = False) -> Answer:
        """Answer one tool call, counted."""
        started = self._timer()
        outcome, answer = "internal", None
        with counting() as tally:
            try:
                answer = self._inner.call(request, caller, brute=brute)
                outcome = "ok"
            except EngineError as error:
                outcome = error.code
                raise
            finally:
                self._collected(tally)
                seconds = self._timer() - started
                self._told(_observed(request, answer, outcome, seconds, tally))
        if not self._explain:
            return answer
        budget = self._limits.page
        plain = isinstance(request, CountRequest) and not request.by
        figures = _figures(seconds, tally, whole=caller.sight.is_everything)
        return _explained(answer, figures, tally, budget, budget.count if plain else budget.page)

    def instructions(self, caller: Caller) -> str:
        """As the application inside; likewise all below."""
        return self._inner.instructions(caller)

    def corpus(self, caller: Caller) -> dict[str, Any]:
        """The same facts as an object."""
        return self._inner.corpus(caller)

    def finish_export(self, export_id: str) -> dict[str, Any]:
        """Write a running export whole."""
        return self._inner.finish_export(export_id)

    def refresh(self, progress: Progress | None = None, *, force: bool = False) -> dict[str, Any]:
        """Read the sources and publish a snapshot."""
        return self._inner.refresh(progress, force=force)

    def verify(self, progress: Progress | None = None) -> dict[str, Any]:
        """Rehash every file of the current snapshot."""
        return self._inner.verify(progress)

    def _collected(self, tally: Tally) -> None:
        if self._collect is not None and tally.counts["statements"]:
            self._collect()

    def _told(self, observed: Observed) -> None:
        if self._observe is not None:
            self._observe(observed)


def _observed(request: Request, answer: Answer | None, outcome: str, seconds: float, tally: Tally) -> Observed:
    return Observed(
        tool=tool_of(request),
        outcome=outcome,
        seconds=seconds,
        answer_bytes=0 if answer is None else len(answer.text.encode("utf-8", "surrogatepass")),
        cut=bool(tally.counts["budget_cuts"]) or (answer is not None and _was_cut(answer.object)),
        query=_query_of(request),
        tally=tally,
    )


def _was_cut(said: dict[str, Any]) -> bool:
    left_out = said.get("left_out")
    if isinstance(left_out, dict) and left_out.get("why") == "size":
        return True
    return any(note.endswith("to fit") for note in said.get("notes", ()))


def _query_of(request: Request) -> str:
    if isinstance(request, ThreadRequest):
        return ""
    asked = request.search if isinstance(request, UnseenRequest) else request
    return asked.criteria.query


def _explained(answer: Answer, figures: dict[str, Any], tally: Tally, budget: PageBudget, room: int) -> Answer:
    """The answer with as much of its explanation as fits; without any when nothing does."""
    plan = [
        [one_line(each.term)[:_TERM_CHARS], each.path, each.rows]
        for each in sorted(tally.plan, key=lambda each: each.path, reverse=True)
    ]
    for terms in range(min(len(plan), _MOST_TERMS), -1, -1):
        told = dict(figures)
        if plan:
            told["plan"] = plan[:terms]
            if terms < len(plan):
                told["terms"] = len(plan)
        text, said = f"{answer.text}\n{_line(told)}", {**answer.object, "explain": told}
        if fits(text, said, budget, room):
            return replace(answer, text=text, object=said)
    return answer


def _figures(seconds: float, tally: Tally, *, whole: bool) -> dict[str, Any]:
    """The time and, for whoever sees the `whole` corpus, what was read of it: the rest of a part would show in it."""
    counts = tally.counts
    told: dict[str, Any] = {"milliseconds": round(seconds * 1_000)}
    if not whole:
        return told
    return told | {
        "statements": counts["statements"],
        "rows": counts["rows_scanned"],
        "bytes": counts["bytes_scanned"],
        "requests": {"s3": counts["s3_requests"], "dynamodb": counts["dynamodb_requests"]},
    }


def _line(told: dict[str, Any]) -> str:
    parts = [f"{told['milliseconds']} ms"]
    if "statements" in told:
        parts += [f"{told['statements']} statements", f"{told['rows']} rows", f"{told['bytes']} bytes"]
        parts.append(f"requests: S3 {told['requests']['s3']}, DynamoDB {told['requests']['dynamodb']}")
    terms = ", ".join(f"{term} {path} {rows}" for term, path, rows in told.get("plan", ()))
    more = f" of {told['terms']} terms" if "terms" in told else ""
    return f"explain: {'; '.join(parts)}" + (f"; {terms}{more}" if terms or more else "")

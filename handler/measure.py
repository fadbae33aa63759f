"""What calls and a refresh take, measured through the application as it is served: the input of `handler.cost`.

Decides the mix of calls and how often each is made. Must never know which stores it runs on, and keeps no text: the
result holds numbers and names of tools.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.ports import SnapshotStore
from engine.sight import Caller
from engine.snapshot.format import MANIFEST, Manifest
from engine.tally import counting
from handler.app import App
from handler.arguments import parse_arguments
from handler.counted import Observed, Observer

__all__ = ["SHARES", "as_toml", "measure"]

SHARES = {
    "count_messages": 0.35,
    "search_messages": 0.30,
    "unseen_messages": 0.10,
    "open_thread": 0.22,
    "export_messages": 0.03,
}
"""How an agent's calls are spread over the tools, as the trials of the tools' words saw it."""

_CALLER = Caller("measure")


@dataclass(slots=True)
class _Seen:
    calls: list[Observed] = field(default_factory=list)

    def __call__(self, observed: Observed) -> None:
        self.calls.append(observed)


def measure(
    make: Callable[[Observer], App], snapshots: SnapshotStore, queries: Sequence[str], rounds: int = 5
) -> dict[str, Any]:
    """A forced refresh, a first call of a new application, and each tool `rounds` times for each query, warm.

    Raises:
        EngineError: what the calls raise; each query must find something.
    """
    refresh = _refresh(make(lambda _: None), snapshots)
    seen = _Seen()
    app = make(seen)
    _ask(app, "count_messages", {"query": queries[0]})
    cold = seen.calls[0]
    for query in queries:
        _walk(app, query)
    first = seen.calls[1:]
    seen.calls.clear()
    for _ in range(rounds):
        for query in queries:
            _walk(app, query)
    return {
        "refresh": refresh,
        "cold": {
            "milliseconds": round(cold.seconds * 1_000, 1),
            "s3_requests": cold.tally.counts["s3_requests"],
            "bytes_scanned": cold.tally.counts["bytes_scanned"],
        },
        "calls": {tool: _means(tool, first, seen.calls, len(queries)) for tool in SHARES},
    }


def as_toml(measured: dict[str, Any], as_of: str, machine: str) -> str:
    """The file `measured.toml`."""
    lines = ["# Written by `hayfork cost --measure`.", f'as_of = "{as_of}"', f'machine = "{machine}"']
    for name in ("refresh", "cold"):
        lines += ["", f"[{name}]", *(f"{key} = {value}" for key, value in measured[name].items())]
    for tool, means in measured["calls"].items():
        lines += ["", f"[calls.{tool}]", *(f"{key} = {value}" for key, value in means.items())]
    return "\n".join(lines) + "\n"


def _refresh(app: App, snapshots: SnapshotStore) -> dict[str, Any]:
    started = time.perf_counter()
    with counting() as tally:
        report = app.refresh(force=True)
    seconds = time.perf_counter() - started
    manifest = Manifest.from_bytes(snapshots.read(report["snapshot"], MANIFEST))
    return {
        "messages": manifest.rows,
        "seconds": round(seconds, 1),
        "s3_requests": tally.counts["s3_requests"],
        "text_bytes": manifest.text_bytes,
        "snapshot_bytes": sum(entry.size for entry in manifest.files),
    }


def _walk(app: App, query: str) -> None:
    """What an agent does with a question: count, read, read on, open, and seldom export."""
    _ask(app, "count_messages", {"query": query})
    found = _ask(app, "search_messages", {"query": query})
    session = found["session"]
    _ask(app, "unseen_messages", {"query": query, "session": session})
    _ask(app, "open_thread", {"message": found["messages"][0]["id"], "session": session})
    _ask(app, "export_messages", {"query": query})


def _ask(app: App, tool: str, arguments: dict[str, object]) -> dict[str, Any]:
    return app.call(parse_arguments(tool, arguments, app.limits), _CALLER).object


def _means(tool: str, first: Sequence[Observed], calls: Sequence[Observed], queries: int) -> dict[str, Any]:
    """Means over the queries: time of each one's fastest round, since what else a machine does is no part of a call;
    what is read from the store when it is first asked, since agents seldom ask the same thing twice.
    """
    asked = [each for each in first if each.tool == tool]
    all_rounds = [each for each in calls if each.tool == tool]
    own = [min(all_rounds[start::queries], key=lambda each: each.seconds) for start in range(queries)]

    def mean(value: Callable[[Observed], float], of: Sequence[Observed] = own) -> float:
        return round(statistics.fmean(value(each) for each in of), 2)

    return {
        "share": SHARES[tool],
        "milliseconds": mean(lambda each: each.seconds * 1_000),
        "answer_bytes": mean(lambda each: each.answer_bytes),
        "bytes_scanned": mean(lambda each: each.tally.counts["bytes_scanned"], asked),
        "s3_requests": mean(lambda each: each.tally.counts["s3_requests"], asked),
        "dynamodb_reads": mean(lambda each: each.tally.counts["seen_reads"]),
        "dynamodb_writes": mean(lambda each: each.tally.counts["seen_claims"]),
    }

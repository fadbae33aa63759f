"""One run of the benchmark: corpora and files made or found, answers compared, times taken, all of it as one object.

Decides what stands in that object. Must never know how it is shown.
"""

import os
import platform
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol

from engine.errors import Unavailable
from handler.bench.answers import Answered, disagreement
from handler.bench.corpora import Built, Synth, kept, kept_file
from handler.bench.measure import Effort, Timing, geometric_mean, timed
from handler.bench.processes import in_own_process
from handler.bench.queries import TWO_LETTERS, Choice, StandardQuery, choose

__all__ = [
    "FOLDER",
    "FTS5",
    "OURS",
    "PEERS",
    "RATIOS",
    "Asked",
    "System",
    "Told",
    "compared",
    "machine",
    "run",
    "standard_queries",
]

FOLDER = Path("build") / "bench"

OURS = "hayfork"
SCAN = "scan"
FTS5 = "sqlite_fts5"
TANTIVY = "tantivy"
PEERS = (SCAN, FTS5, TANTIVY)

RATIOS = ("count_vs_fts5", "search_vs_fts5", "count_vs_scan", "search_vs_scan", "index_share", "build_vs_fts5")
"""Ours divided by the other's; smaller is better. `index_share` is of the bytes of all text, scripts without spaces
apart: their bigrams are left out. The share that stands beside each system is that of its whole index."""

_SERVER_ROUNDS = 2

Told = Callable[[str], None]
"""Told what goes on, in a few words."""


class System(Protocol):
    """What answers queries; `count` and `search` give the bytes that a caller gets."""

    @property
    def name(self) -> str:
        """What the report calls it."""
        ...

    def count(self, query: StandardQuery) -> bytes:
        """The counts, in all their breakdowns."""
        ...

    def search(self, query: StandardQuery) -> bytes:
        """The counts and eight texts."""
        ...

    def counted(self, query: StandardQuery) -> Answered:
        """What `count` says, in the form to compare."""
        ...

    def found(self, query: StandardQuery) -> Answered:
        """What `search` says, in the form to compare."""
        ...

    def close(self) -> None:
        """Let go of its files."""
        ...


@dataclass(frozen=True, slots=True)
class Asked:
    """What a run measures. `folder` keeps corpora and indexes between runs."""

    messages: int
    seed: int = 1
    folder: Path = FOLDER
    effort: Effort = field(default_factory=Effort)


def run(asked: Asked, told: Told) -> dict[str, Any]:
    """Measure, and report as an object whose `ratios` are those of RATIOS.

    Raises:
        Unavailable: `bench_failed` when a peer is not installed, or when two systems disagree on an answer.
    """
    _check_installed()
    from handler.bench import fts5, hayfork, tantivy_peer  # noqa: PLC0415 - the peers may not be installed

    told("messages and indexes, where they are not there yet")
    ours, our_built = kept(asked.folder, OURS, asked.messages, asked.seed, hayfork.build)
    theirs, fts5_built = kept(asked.folder, FTS5, asked.messages, asked.seed, fts5.build, ("handler/bench/fts5.py",))
    others, tantivy_built = kept(
        asked.folder, TANTIVY, asked.messages, asked.seed, tantivy_peer.build, ("handler/bench/tantivy_peer.py",)
    )
    choice = standard_queries(asked)
    with ExitStack() as stack:
        app = hayfork.app_over(str(ours))
        stack.enter_context(closing(app))
        systems: list[System] = [
            hayfork.Hayfork(app),
            hayfork.Hayfork(app, brute=True),
            stack.enter_context(closing(fts5.Fts5(theirs))),
            stack.enter_context(closing(tantivy_peer.Tantivy(others))),
        ]
        rows = []
        for query in choice.queries:
            told(f"{query.name}: {query.text}")
            rows.append(compared(query, systems, asked.effort))
    told("memory of a server")
    events = [event(query) for query in choice.queries for event in (hayfork.count_event, hayfork.search_event)]
    peak = in_own_process(hayfork.server_peak, str(ours), events, _SERVER_ROUNDS)
    built = {OURS: our_built, FTS5: fts5_built, TANTIVY: tantivy_built}
    return _report(asked, rows, built, peak)


def standard_queries(asked: Asked) -> Choice:
    """The queries of that corpus, chosen once and kept."""
    name = f"queries-{asked.messages}-{asked.seed}"
    parts = ("handler/bench/queries.py",)
    plain = kept_file(asked.folder, name, parts, lambda: choose(Synth(asked.messages, asked.seed)).to_object())
    return Choice.from_object(plain)


def compared(query: StandardQuery, systems: Sequence[System], effort: Effort) -> dict[str, Any]:
    """One query's answers, compared, and its times.

    Raises:
        Unavailable: `bench_failed` when two systems disagree.
    """
    for answers in (
        {system.name: system.counted(query) for system in systems},
        {f"{system.name} searching": system.found(query) for system in systems},
    ):
        difference = disagreement(answers)
        if difference is not None:
            raise Unavailable("bench_failed", f"{difference}, asked '{query.name}': nothing was measured")
        messages = next(iter(answers.values())).messages
    counts = timed({system.name: _call(system.count, query) for system in systems}, effort)
    searches = timed({system.name: _call(system.search, query) for system in systems}, effort)
    return {
        "name": query.name,
        "arguments": query.arguments,
        "found": messages,
        "count_ms": _plain(counts),
        "search_ms": _plain(searches),
    }


def _call(ask: Callable[[StandardQuery], bytes], query: StandardQuery) -> Callable[[], bytes]:
    return lambda: ask(query)


def _plain(timings: Mapping[str, Timing]) -> dict[str, dict[str, float]]:
    return {
        name: {"median": round(t.median, 3), "p95": round(t.p95, 3), "rounds": t.rounds} for name, t in timings.items()
    }


def _report(asked: Asked, rows: Sequence[dict[str, Any]], built: Mapping[str, Built], peak: int) -> dict[str, Any]:
    few = [row for row in rows if row["name"] not in TWO_LETTERS]
    text_bytes = built[OURS].text_bytes
    means, few_means = _means(rows), _means(few)
    others = {
        "index_share": round((built[OURS].index_bytes - built[OURS].unspaced_bytes) / text_bytes, 4),
        "build_vs_fts5": round(built[OURS].seconds / built[FTS5].seconds, 4),
    }
    return {
        "messages": asked.messages,
        "seed": asked.seed,
        "text_bytes": text_bytes,
        "machine": machine(),
        "systems": {
            name: {
                **asdict(each),
                "seconds": round(each.seconds, 2),
                "messages_per_second": round(each.rows / each.seconds),
                "index_share": round(each.index_bytes / each.text_bytes, 4),
            }
            for name, each in built.items()
        },
        "server_peak_bytes": peak,
        "queries": list(rows),
        "geometric_means_ms": means,
        "geometric_means_ms_without_two_letters": few_means,
        "ratios": {**_ratios(means), **others},
        "ratios_without_two_letters": _ratios(few_means),
    }


def _means(rows: Sequence[dict[str, Any]]) -> dict[str, dict[str, float]]:
    return {
        what: {
            name: round(geometric_mean(row[f"{what}_ms"][name]["median"] for row in rows), 3)
            for name in rows[0][f"{what}_ms"]
        }
        for what in ("count", "search")
    }


def _ratios(means: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    return {
        f"{what}_vs_{short}": round(means[what][OURS] / means[what][name], 4)
        for short, name in (("fts5", FTS5), ("scan", SCAN))
        for what in ("count", "search")
    }


def machine() -> dict[str, Any]:
    """What the figures were made on and with."""
    return {
        "processors": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        **{name: version(name) for name in ("duckdb", "numpy", "tantivy")},
    }


def _check_installed() -> None:
    try:
        version("tantivy")
    except PackageNotFoundError:
        raise Unavailable(
            "bench_failed",
            "the benchmark needs tantivy, a development package",
            next_step="run make setup, or install the group dev",
        ) from None

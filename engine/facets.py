"""Counting by dimension: conversations, people, roles, kinds, statuses, threads and buckets of time.

Decides what a value is called and which rows fall under it. Arrays in, counts out; must never know bytes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo

import numpy as np
from numpy.typing import NDArray

from engine.choices import TIMES
from engine.query.bind import BoundQuery
from engine.render import clipped
from engine.text import display
from engine.times import SECOND, Bucketing, bucketing
from engine.view import View

__all__ = ["Dimension", "dimension", "period"]

Rows = NDArray[np.int64]

_TIME_ROWS = 40
"""Buckets of a tabulated time: the latest ones."""


@dataclass(frozen=True, slots=True)
class Dimension:
    """A way to group rows. `codes` gives each row a number below `size`, `labels` names numbers.

    Every row has a number, or counts would not add up: what has no value has one of its own, which is called `None`.
    `buckets` is set for times: shown in order, empty ones kept; all that lies before the first has the number 0.
    """

    name: str
    size: int
    codes: Callable[[Rows], NDArray[np.signedinteger]]
    labels: Callable[[Sequence[int]], list[str | None]]
    buckets: Bucketing | None = None

    @property
    def key(self) -> tuple[str, tuple[int, ...]]:
        """What tells it from other dimensions of one view: its name, and of a time where its buckets start."""
        return self.name, self.buckets.starts if self.buckets is not None else ()

    @property
    def zone(self) -> str:
        """Where a time's days begin, empty for UTC and for what is no time."""
        zone = "" if self.buckets is None else str(self.buckets.zone)
        return "" if zone == "UTC" else zone

    def counts(self, rows: Rows) -> Rows:
        """How many of the rows fall under each number."""
        return np.bincount(self.codes(rows), minlength=self.size)


def dimension(name: str, view: View, query: BoundQuery, zone: tzinfo) -> Dimension:
    """The dimension of that name, times over the searched period."""
    manifest, narrow = view.corpus.manifest, view.narrow
    if name in TIMES:
        span = period(view, query)
        buckets = bucketing(*span, zone, name, _TIME_ROWS) if span else Bucketing(name, (), (0,), 0, zone)
        return of_time(view, buckets)
    if name == "author":
        return Dimension(
            name, len(manifest.authors), lambda rows: view.persons[rows].astype(np.int32), _of_table(view.once(_person))
        )
    if name == "conversation":
        size = len(manifest.conversations)
        names = _of_table(view.once(_conversation))
        return Dimension(name, size, lambda rows: narrow.conversation[rows].astype(np.int32), names)
    if name == "thread":
        places = np.argsort(view.thread_order)
        return Dimension(name, manifest.threads, lambda rows: places[narrow.thread[rows]], _thread(view))
    return _of_values(name, view)


def _of_values(name: str, view: View) -> Dimension:
    """Roles, kinds and statuses, numbered by their names: the snapshot's own numbers tell how common each is."""
    manifest = view.corpus.manifest
    pairs = {
        "from_role": manifest.roles,
        "to_role": manifest.to_roles,
        "kind": manifest.kinds,
        "status": manifest.statuses,
    }[name]
    values = sorted(value for value, _ in pairs)
    # A message without a value has -1 and so the last of `numbers`, which is one more than the values'.
    numbers = np.array([*(values.index(value) for value, _ in pairs), len(values)], dtype=np.int16)
    column: NDArray[np.signedinteger] = getattr(view.narrow, name)
    names = _of_table([*(clipped(display(value)) for value in values), None])
    return Dimension(name, len(values) + 1, lambda rows: numbers[column[rows]], names)


def _of_table(names: Sequence[str | None] | Mapping[int, str]) -> Callable[[Sequence[int]], list[str | None]]:
    return lambda codes: [names[code] for code in codes]


def of_time(view: View, buckets: Bucketing) -> Dimension:
    """The dimension of some buckets, which reach to the end of what is searched, and of all before them."""
    sent = view.narrow.second
    # Buckets begin with a second. One that begins before all that the type tells begins before every message.
    seconds = np.array(buckets.starts[:-1], dtype=np.int64) // SECOND
    starts = np.maximum(seconds, np.iinfo(sent.dtype).min).astype(sent.dtype)

    def every() -> NDArray[np.int16]:
        return np.searchsorted(starts, sent, side="right").astype(np.int16)

    def codes(rows: Rows) -> NDArray[np.int16]:
        of_all: NDArray[np.int16] = view.remembered.get(("buckets", buckets.starts), every)
        return of_all[rows]

    names = _of_table([f"before {buckets.labels[0]}" if buckets.labels else None, *buckets.labels])
    return Dimension(buckets.unit, len(buckets.labels) + 1, codes, names, buckets)


def period(view: View, query: BoundQuery) -> tuple[int, int] | None:
    """First and last instant of what was searched: whole seconds of the corpus in sight, in `after` and `before`."""
    span = view.said_span if query.asks_kind else view.searchable_span
    if span is None:
        return None
    first = span[0] if query.after is None else max(span[0], query.after)
    last = span[1] if query.before is None else min(span[1], query.before - 1)
    return (first, last) if first <= last else None


def _person(view: View) -> dict[int, str]:
    """A person's most frequent visible name, with the id where another visible person has the same."""
    authors = view.corpus.manifest.authors
    counts = np.bincount(view.narrow.author[view.said], minlength=len(authors))
    order = np.argsort(-counts, kind="stable")
    names: dict[int, tuple[str, str]] = {}
    for ordinal in order.tolist():
        if counts[ordinal]:
            names.setdefault(int(view.people[ordinal]), authors[ordinal][:2])
    return dict(zip(names, _named(list(names.values())), strict=True))


def _conversation(view: View) -> dict[int, str]:
    """A conversation's name, with the id where another visible one has the same."""
    conversations = view.corpus.manifest.conversations
    visible = np.unique(view.narrow.conversation[view.visible]).tolist()
    return dict(zip(visible, _named([conversations[ordinal][:2] for ordinal in visible]), strict=True))


def _thread(view: View) -> Callable[[Sequence[int]], list[str | None]]:
    def labels(codes: Sequence[int]) -> list[str | None]:
        rows = np.searchsorted(view.narrow.thread, view.thread_order[list(codes)]).tolist()
        return [message.thread_id for message in view.corpus.messages(rows)]

    return labels


def _named(pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Names, followed by the id where two ids share one."""
    shown = [clipped(display(name)) for _, name in pairs]
    times: dict[str, int] = {}
    for name in shown:
        times[name] = times.get(name, 0) + 1
    return [name if times[name] == 1 else f"{name} ({c_id})" for name, (c_id, _) in zip(shown, pairs, strict=True)]

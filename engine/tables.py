"""Rows of counts by one or two dimensions: matches beside all messages, people, and further queries.

Decides which rows stand in a table and in what order, and counts what is left out: the rows and `rest` always add up to
all matches. Must never know bytes; `cut` shortens on demand.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from engine.choices import TIMES
from engine.facets import Dimension
from engine.hits import Hits
from engine.render import clipped, distinct, inline
from engine.text import one_line

__all__ = ["Table", "tabulate"]

Rows = NDArray[np.int64]

_T = TypeVar("_T")

_MOST_ROWS = 40


@dataclass(frozen=True, slots=True)
class Row:
    """One group: its labels, matches, all messages, people among the matches, and matches of further queries.

    A label is `None` where the messages have no value.
    """

    labels: tuple[str | None, ...]
    matches: int
    every: int
    people: int
    compared: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """`columns` are the dimensions; `rest` counts the groups and matches of rows that were left out.

    `zone` names where the days of its times begin, where that is not UTC.
    """

    columns: tuple[str, ...]
    compared: tuple[str, ...]
    rows: tuple[Row, ...]
    in_order: bool
    rest: tuple[int, int] = (0, 0)
    zone: str = ""

    def cut(self, most: int, name_chars: int) -> "Table":
        """The same with fewer rows (of a time the latest) and shorter names."""
        kept = _kept(self.rows, most, lambda row: row.labels[0]) if self.in_order else self.rows[:most]
        return replace(
            self,
            rows=_relabelled(self.columns, kept, name_chars),
            compared=tuple(clipped(name, name_chars) for name in self.compared),
            rest=(
                self.rest[0] + len(self.rows) - len(kept),
                self.rest[1] + sum(row.matches for row in self.rows) - sum(row.matches for row in kept),
            ),
        )

    def over_time(self) -> dict[str, Any]:
        """`{"unit", "rows", "rest", "zone"}` of a table by one time: each row `[bucket, matches, all, …compared]`."""
        rows = [[*row.labels, row.matches, row.every, *row.compared] for row in self.rows]
        return {"unit": self.columns[0], "rows": rows, **self._tail()}

    def to_object(self) -> dict[str, Any]:
        """`{"columns", "rows", "rest", "zone"}`."""
        return {
            "columns": [*self.columns, "messages", "all", "authors", *self.compared],
            "rows": [[*row.labels, row.matches, row.every, row.people, *row.compared] for row in self.rows],
            **self._tail(),
        }

    def _tail(self) -> dict[str, Any]:
        out: dict[str, Any] = {"rest": {"values": self.rest[0], "messages": self.rest[1]}} if self.rest[0] else {}
        return {**out, "zone": self.zone} if self.zone else out

    def line(self) -> str:
        """`by month, matches/all: 2016-05 3/92, …` of a table by one time; further queries follow as ` vs 4, 5`."""
        rows = [f"{_joined(row.labels)} {row.matches}/{row.every}{_versus(row)}" for row in self.rows]
        return f"by {self.columns[0]}, matches/all: {', '.join([*rows, *self._rest_told()])}"

    def lines(self) -> list[str]:
        """A heading and one line per row."""
        versus = f", vs {', '.join(inline(name) for name in self.compared)}" if self.compared else ""
        lines = [f"by {' and '.join(self.columns)}, matches/all (authors){versus}:"]
        # The dash, or an author called "note: …" would write a note.
        lines += [
            f"- {_joined(row.labels)} {row.matches}/{row.every} ({row.people}){_versus(row)}" for row in self.rows
        ]
        return lines + self._rest_told()

    def _rest_told(self) -> list[str]:
        where = "earlier" if self.in_order and len(self.columns) == 1 else "more"
        return [f"{self.rest[0]} {where} with {self.rest[1]}"] if self.rest[0] else []


def _kept(groups: Sequence[_T], most: int, bucket_of: Callable[[_T], Hashable]) -> Sequence[_T]:
    """Of groups in order of time the latest buckets that fit whole; of one that alone is too much, its first groups."""
    start = first = len(groups)
    while start and len(groups) - start < most:
        last = bucket_of(groups[start - 1])
        while first and bucket_of(groups[first - 1]) == last:
            first -= 1
        if len(groups) - first > most:
            break
        start = first
    return groups[start:] if start < len(groups) else groups[first : first + most]


def _joined(labels: Sequence[str | None]) -> str:
    return ", ".join("(none)" if label is None else one_line(label) for label in labels)


def _relabelled(columns: Sequence[str], rows: Sequence[Row], most: int) -> tuple[Row, ...]:
    """Rows with shorter names: those of one dimension that the cut made equal are told apart. A time stays whole."""
    names: list[dict[str | None, str | None]] = []
    for column, labels in zip(columns, zip(*(row.labels for row in rows), strict=True), strict=bool(rows)):
        whole = [label for label in dict.fromkeys(labels) if label is not None]
        short = whole if column in TIMES else distinct(whole, most)
        names.append({**dict(zip(whole, short, strict=True)), None: None})
    return tuple(
        replace(row, labels=tuple(known[label] for known, label in zip(names, row.labels, strict=True))) for row in rows
    )


def _versus(row: Row) -> str:
    return f" vs {', '.join(str(number) for number in row.compared)}" if row.compared else ""


def tabulate(by: Sequence[Dimension], hits: Hits, compared: Sequence[Hits], *, people: bool = True) -> Table:
    """Count the hits by one or two dimensions, largest group first; a time in order, and alone with empty buckets.

    What is left out of a time alone is whole buckets, empty ones too; else groups that hold a match.
    """
    matches, every = _counts(by, hits.rows), _every(by, hits)
    others = [_counts(by, each.rows) for each in compared]
    persons = _persons(by, hits) if people else {}
    buckets, inner = by[0].buckets, by[-1].size
    if buckets is not None and len(by) == 1:
        kept: Sequence[int] = range(1, by[0].size)
        left, left_matches = buckets.earlier, matches.get(0, 0)
    else:
        codes = [*matches, *(code for other in others for code in other if code not in matches)]
        codes = list(dict.fromkeys(codes))
        codes.sort(key=lambda code: (code // inner if buckets else 0, -matches.get(code, 0), code))
        kept = _kept(codes, _MOST_ROWS, lambda code: code // inner) if buckets else codes[:_MOST_ROWS]
        left, left_matches = len(codes) - len(kept), hits.found.messages - sum(matches.get(code, 0) for code in kept)
    rows = tuple(
        Row(
            labels,
            matches.get(code, 0),
            every.get(code, 0),
            persons.get(code, 0),
            tuple(other.get(code, 0) for other in others),
        )
        for code, labels in zip(kept, _labels(by, kept), strict=True)
    )
    return Table(
        columns=tuple(each.name for each in by),
        compared=tuple(each.query.canonical for each in compared),
        rows=rows,
        in_order=buckets is not None,
        rest=(left, left_matches),
        zone=next((each.zone for each in by if each.zone), ""),
    )


def _codes(by: Sequence[Dimension], rows: Rows) -> Rows:
    """One number per row over all dimensions."""
    codes = by[0].codes(rows).astype(np.int64)
    for each in by[1:]:
        codes = codes * each.size + each.codes(rows)
    return codes


def _every(by: Sequence[Dimension], hits: Hits) -> dict[int, int]:
    """Counts of all messages under the filters: they do not depend on the words."""
    key = ("every", hits.query.asked, hits.query.after, hits.query.before, tuple(each.key for each in by))
    counts: dict[int, int] = hits.view.remembered.get(key, lambda: _counts(by, np.flatnonzero(hits.scope)))
    return counts


def _counts(by: Sequence[Dimension], rows: Rows) -> dict[int, int]:
    if len(by) == 1:
        each = by[0].counts(rows)
        present = np.flatnonzero(each)
        return dict(zip(present.tolist(), each[present].tolist(), strict=True))
    values, counts = np.unique(_codes(by, rows), return_counts=True)
    return dict(zip(values.tolist(), counts.tolist(), strict=True))


def _persons(by: Sequence[Dimension], hits: Hits) -> dict[int, int]:
    """How many different people wrote each group's matches."""
    pairs = np.unique(np.stack([_codes(by, hits.rows), hits.view.persons[hits.rows]]), axis=1)
    values, counts = np.unique(pairs[0], return_counts=True)
    return dict(zip(values.tolist(), counts.tolist(), strict=True))


def _labels(by: Sequence[Dimension], codes: Sequence[int]) -> list[tuple[str | None, ...]]:
    """The labels of each group, those of one dimension looked up together: a thread's is read from the snapshot."""
    inner = np.array(codes, dtype=np.int64)
    columns: list[list[str | None]] = []
    for each in reversed(by):
        inner, own = np.divmod(inner, each.size)
        distinct_codes, places = np.unique(own, return_inverse=True)
        names = each.labels(distinct_codes.tolist())
        columns.insert(0, [names[place] for place in places.tolist()])
    return list(zip(*columns, strict=True))

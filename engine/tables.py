"""Rows of counts by one or two dimensions: matches beside all messages, people, and further queries.

Decides which rows stand in a table and in what order. Must never know bytes; `cut` shortens on demand.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.facets import Dimension
from engine.hits import Hits
from engine.render import clipped, distinct, inline
from engine.text import one_line

__all__ = ["Table", "tabulate"]

Rows = NDArray[np.int64]

_MOST_ROWS = 40


@dataclass(frozen=True, slots=True)
class Row:
    """One group: its labels, matches, all messages, people among the matches, and matches of further queries."""

    labels: tuple[str, ...]
    matches: int
    every: int
    people: int
    compared: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """`columns` are the dimensions; `rest` counts the groups and matches of rows that were left out."""

    columns: tuple[str, ...]
    compared: tuple[str, ...]
    rows: tuple[Row, ...]
    in_order: bool
    rest: tuple[int, int] = (0, 0)

    def cut(self, most: int, name_chars: int) -> "Table":
        """The same with fewer rows (of a time the latest) and shorter names."""
        kept = self.rows[-most:] if self.in_order else self.rows[:most]
        left = self.rows[: len(self.rows) - len(kept)] if self.in_order else self.rows[most:]
        return replace(
            self,
            rows=_relabelled(kept, name_chars),
            compared=tuple(clipped(name, name_chars) for name in self.compared),
            rest=(self.rest[0] + len(left), self.rest[1] + sum(row.matches for row in left)),
        )

    def plain_rows(self) -> list[list[Any]]:
        """`[bucket, matches, all, …further queries]` of each row."""
        return [[*row.labels, row.matches, row.every, *row.compared] for row in self.rows]

    def to_object(self) -> dict[str, Any]:
        """`{"columns", "rows", "rest"}`."""
        out: dict[str, Any] = {
            "columns": [*self.columns, "messages", "all", "authors", *self.compared],
            "rows": [[*row.labels, row.matches, row.every, row.people, *row.compared] for row in self.rows],
        }
        if self.rest[0]:
            out["rest"] = {"values": self.rest[0], "messages": self.rest[1]}
        return out

    def row_texts(self) -> list[str]:
        """`2016-05 3/92` of each row; further queries follow as ` vs 4, 5`."""
        return [f"{_joined(row.labels)} {row.matches}/{row.every}{_versus(row)}" for row in self.rows]

    def lines(self) -> list[str]:
        """A heading and one line per row."""
        versus = f", vs {', '.join(inline(name) for name in self.compared)}" if self.compared else ""
        lines = [f"by {' and '.join(self.columns)}, matches/all (authors){versus}:"]
        # The dash, or an author called "note: …" would write a note.
        lines += [
            f"- {_joined(row.labels)} {row.matches}/{row.every} ({row.people}){_versus(row)}" for row in self.rows
        ]
        if self.rest[0]:
            lines.append(f"{self.rest[0]} more with {self.rest[1]}")
        return lines


def _joined(labels: Sequence[str]) -> str:
    return ", ".join(one_line(label) for label in labels)


def _relabelled(rows: Sequence[Row], most: int) -> tuple[Row, ...]:
    """Rows with shorter names: those of one dimension that the cut made equal are told apart."""
    columns = []
    for labels in zip(*(row.labels for row in rows), strict=True):
        whole = list(dict.fromkeys(labels))
        columns.append(dict(zip(whole, distinct(whole, most), strict=True)))

    def renamed(row: Row) -> tuple[str, ...]:
        return tuple(names[label] for names, label in zip(columns, row.labels, strict=True))

    return tuple(replace(row, labels=renamed(row)) for row in rows)


def _versus(row: Row) -> str:
    return f" vs {', '.join(str(number) for number in row.compared)}" if row.compared else ""


def tabulate(by: Sequence[Dimension], hits: Hits, compared: Sequence[Hits], *, people: bool = True) -> Table:
    """Count the hits by one or two dimensions, largest group first; a time in order, and alone with empty buckets."""
    size = int(np.prod([each.size for each in by]))
    matches, every = _counts(by, hits.rows), _every(by, hits)
    others = [_counts(by, each.rows) for each in compared]
    persons = _persons(by, hits) if people else {}
    in_order = by[0].in_order
    if in_order and len(by) == 1:
        codes = list(range(size))
    else:
        codes = [code for code in matches if matches[code]]
        codes += [code for other in others for code in other if code not in matches]
        codes = list(dict.fromkeys(codes))
        codes.sort(key=lambda code: (code // by[-1].size if in_order else 0, -matches.get(code, 0), code))
    kept = codes[-_MOST_ROWS:] if in_order else codes[:_MOST_ROWS]
    left = [code for code in codes if code not in set(kept)]
    rows = tuple(
        Row(
            _labels(by, code),
            matches.get(code, 0),
            every.get(code, 0),
            persons.get(code, 0),
            tuple(other.get(code, 0) for other in others),
        )
        for code in kept
    )
    return Table(
        columns=tuple(each.name for each in by),
        compared=tuple(each.query.meaning for each in compared),
        rows=rows,
        in_order=in_order,
        rest=(len(left), sum(matches.get(code, 0) for code in left)),
    )


def _codes(by: Sequence[Dimension], rows: Rows) -> Rows:
    """One number per row over all dimensions; -1 where one of them has none."""
    codes = by[0].codes(rows).astype(np.int64)
    for each in by[1:]:
        inner = each.codes(rows)
        codes = np.where((codes >= 0) & (inner >= 0), codes * each.size + inner, -1)
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
    codes = _codes(by, rows)
    values, counts = np.unique(codes[codes >= 0], return_counts=True)
    return dict(zip(values.tolist(), counts.tolist(), strict=True))


def _persons(by: Sequence[Dimension], hits: Hits) -> dict[int, int]:
    """How many different people wrote each group's matches."""
    codes = _codes(by, hits.rows)
    people = hits.view.persons[hits.rows]
    pairs = np.unique(np.stack([codes, people])[:, codes >= 0], axis=1)
    values, counts = np.unique(pairs[0], return_counts=True)
    return dict(zip(values.tolist(), counts.tolist(), strict=True))


def _labels(by: Sequence[Dimension], code: int) -> tuple[str, ...]:
    labels: list[str] = []
    for each in reversed(by):
        code, inner = divmod(code, each.size)
        labels.insert(0, each.label(inner))
    return tuple(labels)

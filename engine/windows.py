"""Stretches of a sequence of rows around what is shown, as `grep -C` has them: those that overlap or touch are one.

Decides which rows stand around others, and what becomes one. Must never know what is in a row.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

__all__ = ["Window", "merged"]

Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """Places `first` to `end` (exclusive) of a sequence, around the rows in `asked`; the same by identity only.

    `kind` says what the sequence is.
    """

    kind: str
    sequence: Rows
    asked: tuple[int, ...]
    first: int
    end: int

    @classmethod
    def around(cls, row: int, sequence: Rows, before: int, after: int, kind: str = "") -> "Window":
        """The window of one row of a sequence, with so many before and after it."""
        at = int(np.flatnonzero(sequence == row)[0])
        return cls(kind, sequence, (row,), max(0, at - before), min(len(sequence), at + after + 1))

    @property
    def rows(self) -> list[int]:
        """The rows of the stretch, in the order of the sequence."""
        rows: list[int] = self.sequence[self.first : self.end].tolist()
        return rows

    def meets(self, other: "Window") -> bool:
        """Whether two stretches of one sequence overlap or touch."""
        # Threads, conversations and one author's rows of them: with one beginning and one length they are one.
        same = self.sequence[0] == other.sequence[0] and len(self.sequence) == len(other.sequence)
        return bool(same and self.first <= other.end and other.first <= self.end)


def merged(windows: Iterable[Window]) -> list[Window]:
    """The windows with those that meet made one, at the place of the first."""
    out: list[Window] = []
    for new in windows:
        met = [window for window in out if window.meets(new)]
        if not met:
            out.append(new)
            continue
        parts = (*met, new)
        joined = replace(
            met[0],
            asked=tuple(row for part in parts for row in part.asked),
            first=min(part.first for part in parts),
            end=max(part.end for part in parts),
        )
        out = [joined if window is met[0] else window for window in out if window is met[0] or window not in met]
    return out

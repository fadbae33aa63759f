"""What a reader of snapshots needs of a database: statements run, within bounds, on files.

So that all that reads, ranks and counts is free of the database itself, which `engine.snapshot.database` holds.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

__all__ = ["Statements", "Tables"]

Tables = dict[str, NDArray[Any]]
"""Columns by name; as an argument, a table that a statement may name."""


class Statements(Protocol):
    """Runs statements, each on its own, from any thread. All raise the same.

    Raises:
        Unavailable: `too_slow` past the time limit, `out_of_memory`, `store_unreachable`.
        BrokenSnapshot: `snapshot_broken` when a file is not what it should be.
    """

    def rows(self, sql: str, params: Sequence[object] = (), **tables: Tables) -> list[tuple[Any, ...]]:
        """All rows of a statement."""
        ...

    def arrays(self, sql: str, params: Sequence[object] = (), **tables: Tables) -> Tables:
        """All rows of a statement as one array per column."""
        ...

    def stream(
        self, sql: str, params: Sequence[object] = (), *, size: int = 1_000, **tables: Tables
    ) -> Iterator[list[tuple[Any, ...]]]:
        """Rows of a statement in lists of `size`, with no time limit of its own."""
        ...

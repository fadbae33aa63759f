"""The narrow columns of a snapshot: arrays in memory, an entry for each row.

Decides what is read when, and how wide it is kept. Must never know texts, nor what is asked.
"""

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from engine.snapshot.statements import Statements, Tables
from engine.times import SECOND

__all__ = ["Narrow"]

Mask = NDArray[np.bool_]
Column = NDArray[Any]

_NARROW: dict[str, DTypeLike] = {
    **dict.fromkeys(("conversation", "author", "words"), np.uint16),
    **dict.fromkeys(("from_role", "to_role", "kind", "status"), np.int8),
    "second": np.int32,
}
"""Types that take half of what the database gives, or less: 26 bytes a row with what a ranking adds, instead of 40."""


class Narrow:
    """One array per narrow column, all rows of the snapshot; ordinals are places in the manifest's lists.

    `to_role` and `status` are -1 where there is none. Instants are microseconds since 1970, UTC. What a plain count
    does not need is read on first use, the microseconds among it: they are half of what a time takes.
    """

    FIRST = ("conversation", "thread", "author", "from_role", "to_role", "kind", "status", "second", "words")
    """Columns read at once, when the snapshot is opened."""

    _RANKED = ("copy", "micro")
    """What ranking and threads add; of a cold start's requests they share one."""

    _KEYS = ("message_key", "copy_key")

    def __init__(self, files: Sequence[str], statements: Statements) -> None:
        """Of files, each the narrow columns of one shard."""
        self._files = files
        self._statements = statements
        self._lock = threading.Lock()
        self._later: Tables = {}
        found = self._read(self.FIRST)
        self.conversation: NDArray[np.integer] = found["conversation"]
        self.thread: NDArray[np.uint32] = found["thread"]
        self.author: NDArray[np.integer] = found["author"]
        self.from_role: NDArray[np.signedinteger] = found["from_role"]
        self.to_role: NDArray[np.signedinteger] = found["to_role"]
        self.kind: NDArray[np.signedinteger] = found["kind"]
        self.status: NDArray[np.signedinteger] = found["status"]
        self.second: NDArray[np.signedinteger] = found["second"]
        """When it was sent, in whole seconds since 1970, UTC."""
        self.words: NDArray[np.integer] = found["words"]
        """Words of topic and body."""

    def sent_at(self, rows: NDArray[np.integer] | Sequence[int]) -> NDArray[np.int64]:
        """When some rows were sent."""
        micro = self._once("micro", self._RANKED)
        instants: NDArray[np.int64] = self.second[rows].astype(np.int64) * SECOND
        instants += micro[rows]
        return instants

    def since(self, instant: int) -> Mask:
        """Which rows were sent at an instant or after it."""
        second, micro = divmod(instant, SECOND)
        found: Mask = self.second >= second
        if micro:
            # Nobody asks for a part of a second but who goes by the time of a message.
            found &= (self.second > second) | (self._once("micro", self._RANKED) >= micro)
        return found

    @property
    def copy(self) -> NDArray[np.uint32]:
        """The copy group."""
        return self._once("copy", self._RANKED)

    @property
    def scripts(self) -> NDArray[np.uint16]:
        """Bits of the writing systems there are, as `SCRIPTS` numbers them."""
        return self._once("scripts", ("scripts",))

    @property
    def message_key(self) -> NDArray[np.uint64]:
        """The key of the message."""
        return self._once("message_key", self._KEYS)

    @property
    def copy_key(self) -> NDArray[np.uint64]:
        """The key of its copy group."""
        return self._once("copy_key", self._KEYS)

    def has(self, name: str) -> bool:
        """Whether a column was read."""
        return name in self._later

    def _once(self, name: str, together: Sequence[str]) -> NDArray[Any]:
        """A column, read with those that whoever wants it will want next."""
        if name not in self._later:
            with self._lock:
                if name not in self._later:
                    self._later = self._later | self._read(together)
        return self._later[name]

    def _read(self, names: Sequence[str]) -> Tables:
        """Columns of all shards, end to end; of millions of rows none is held twice but one."""
        sql = f"SELECT {', '.join(names)} FROM read_parquet(?)"
        parts = [
            {name: _fitting(name, column) for name, column in self._statements.arrays(sql, [file]).items()}
            for file in self._files
        ]
        return {name: _end_to_end([part.pop(name) for part in parts]) for name in names}


def _fitting(name: str, column: Column) -> Column:
    """A column in the narrow type that nearly always holds it; with room for one more, so that `+ 1` never wraps."""
    narrow = _NARROW.get(name)
    if narrow is None or not len(column):
        return column
    held = np.iinfo(narrow)
    return column.astype(narrow) if held.min <= column.min() and column.max() < held.max else column


def _end_to_end(parts: Sequence[Column]) -> Column:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)

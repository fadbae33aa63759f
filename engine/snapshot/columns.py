"""Whole columns handed to the database, and taken from it: a few buffers each, and no object for each value.

Decides how arrays and joined texts become the buffers of Arrow's columnar format, which the database reads where they
lie, on its own threads and without the interpreter. Must never know what a column means.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import nanoarrow as na
import numpy as np
from numpy.typing import NDArray

from engine.snapshot.letters import PAD, Bytes

__all__ = ["Column", "Columns", "Streamed", "numbers", "texts", "texts_found"]

Valid = NDArray[np.bool_]

_TYPES = {
    "i4": na.int32(),
    "i8": na.int64(),
    "u2": na.uint16(),
    "u4": na.uint32(),
    "u8": na.uint64(),
}


@dataclass(frozen=True, slots=True)
class Column:
    """One column: an Arrow array of a type, of some rows."""

    rows: int
    array: Any


class Streamed(Protocol):
    """What can be read by the Arrow PyCapsule interface, as a result of the database can."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """A capsule with an ArrowArrayStream."""
        ...


def numbers(values: NDArray[Any], valid: Valid | None = None) -> Column:
    """A column of integers; null where not `valid`."""
    kind = _TYPES[values.dtype.str[1:]]
    return _column(kind, len(values), [_bits(valid), np.ascontiguousarray(values)])


def texts(raw: Bytes, count: int, valid: Valid | None = None) -> Column:
    """A column of the first so many texts in `raw`, each with a NUL behind it; null where not `valid`."""
    ends = np.flatnonzero(raw == 0)[:count]
    # Of 64 bits: a batch of long messages may have more bytes than 32 can tell.
    offsets = np.zeros(count + 1, dtype=np.int64)
    offsets[1:] = ends - np.arange(count)
    within = raw[: int(ends[-1]) if count else 0]
    return _column(na.large_string(), count, [_bits(valid), offsets, within[within != 0]])


def _column(kind: Any, rows: int, buffers: Sequence[NDArray[Any] | None]) -> Column:
    return Column(rows, na.c_array_from_buffers(kind, rows, buffers))


def _bits(valid: Valid | None) -> Bytes | None:
    return None if valid is None else np.packbits(valid, bitorder="little")


class Columns:
    """Columns of one length, by name: a table that a connection can register, and read any number of times."""

    def __init__(self, columns: Mapping[str, Column]) -> None:
        (rows,) = {column.rows for column in columns.values()}
        arrays = {name: column.array for name, column in columns.items()}
        schema = na.struct({name: array.schema for name, array in arrays.items()})
        self._array = na.c_array_from_buffers(schema, rows, [None], children=list(arrays.values()))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The Arrow PyCapsule interface."""
        stream: object = na.c_array_stream(self._array).__arrow_c_stream__(requested_schema)
        return stream


def texts_found(found: Streamed) -> Bytes:
    """What `raw_of` makes of the texts that are a result's only column; each ends with a NUL and has no other."""
    # The arrays own the bytes, which the views do not keep alive.
    arrays = list(na.c_array_stream(found))
    parts = [np.frombuffer(array.view().child(0).buffer(2), dtype=np.uint8) for array in arrays]
    return np.concatenate([*parts, np.zeros(PAD, dtype=np.uint8)])

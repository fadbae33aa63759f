"""Blocks of an index file, decoded on demand and kept in memory up to a bound, the longest unused let go first.

Decides what is read side by side and what is kept. Must never know what a block means.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import numpy as np
from numpy.typing import NDArray

__all__ = ["Arrays", "BlockCache", "Key"]

Arrays = tuple[NDArray[np.integer], ...]
Key = tuple[str, int]
"""A file's location, or what names something made of the file, and the number of a block in it."""

_READERS = 8
"""Blocks read at once: on an object store a read is mostly waiting."""


class BlockCache:
    """Decoded blocks by key; safe to share between threads."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._size = 0
        self._blocks: OrderedDict[Key, Arrays] = OrderedDict()
        self._opened: set[str] = set()
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None

    def get(self, keys: Iterable[Key], load: Callable[[Key], Arrays]) -> dict[Key, Arrays]:
        """The blocks of these keys; missing ones are loaded, several of them side by side. Raises what `load` does."""
        wanted = list(dict.fromkeys(keys))
        out: dict[Key, Arrays] = {}
        with self._lock:
            for key in wanted:
                block = self._blocks.get(key)
                if block is not None:
                    self._blocks.move_to_end(key)
                    out[key] = block
            missing = [key for key in wanted if key not in out]
            if len(missing) > 1 and self._pool is None:
                self._pool = ThreadPoolExecutor(_READERS, thread_name_prefix="blocks")
        if not missing:
            return out
        # The first of a file alone: to read one is to learn what is where in it, which all would ask for at once.
        alone = {location: key for key in reversed(missing) if (location := key[0]) not in self._opened}.values()
        loaded = {key: load(key) for key in alone}
        rest = [key for key in missing if key not in loaded]
        if len(rest) == 1 or self._pool is None:
            loaded |= {key: load(key) for key in rest}
        else:
            # Each in the context of the call, which counts what it reads and ends in its time.
            running = {key: self._pool.submit(copy_context().run, load, key) for key in rest}
            loaded |= {key: each.result() for key, each in running.items()}
        with self._lock:
            self._opened.update(location for location, _ in missing)
            for key, block in loaded.items():
                if key not in self._blocks:
                    self._size += _size(block)
                self._blocks[key] = out[key] = block
            while self._size > self._most and len(self._blocks) > 1:
                _, dropped = self._blocks.popitem(last=False)
                self._size -= _size(dropped)
        return out


def _size(block: Arrays) -> int:
    return sum(array.nbytes for array in block)

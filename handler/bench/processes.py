"""Work done in a process of its own, and the most memory it held.

Decides how peaks of memory are read. Must never know what is done there.
"""

import resource
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import ParamSpec, TypeVar

__all__ = ["in_own_process", "one_process", "peak_bytes"]

_P = ParamSpec("_P")
_T = TypeVar("_T")


def in_own_process(function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """What `function` returns, run in a new process that ends with it. Both must be importable and picklable."""
    with one_process() as pool:
        return pool.submit(function, *args, **kwargs).result()


@contextmanager
def one_process() -> Iterator[ProcessPoolExecutor]:
    """A new process that does one thing after another, until the block ends."""
    # Started anew, not forked: a fork would share this process's memory, connections and caches.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        yield pool


def peak_bytes() -> int:
    """The most memory this process has held so far, in bytes."""
    status = Path("/proc/self/status")
    if status.is_file():
        # getrusage would do, but on Linux it also remembers the process this one was started from.
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1_024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1_024

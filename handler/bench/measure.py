"""How long each system takes, side by side: warm, interleaved call by call, so that a noisy moment meets all alike.

Decides rounds and statistics. Must never know what is called.
"""

import gc
import math
import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

__all__ = ["Effort", "Timing", "geometric_mean", "timed"]

_FEWEST_ROUNDS = 3
"""A median of less says nothing."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How often each call is measured: `rounds`, or until it has taken `seconds`, but thrice at least.

    `warm` rounds come before and do not count.
    """

    rounds: int = 15
    seconds: float = 3.0
    warm: int = 2


@dataclass(frozen=True, slots=True)
class Timing:
    """Milliseconds of one call over some rounds."""

    median: float
    p95: float
    rounds: int


def timed(calls: Mapping[str, Callable[[], object]], effort: Effort) -> dict[str, Timing]:
    """The times of each call, taken in turn: A B A B."""
    for _ in range(effort.warm):
        for call in calls.values():
            call()
    gc.collect()
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(effort.rounds):
        for name, call in calls.items():
            if len(taken[name]) >= _FEWEST_ROUNDS and sum(taken[name]) > effort.seconds * 1_000:
                continue
            start = time.perf_counter()
            call()
            taken[name].append((time.perf_counter() - start) * 1_000)
    return {name: _timing(times) for name, times in taken.items()}


def _timing(times: list[float]) -> Timing:
    ordered = sorted(times)
    return Timing(statistics.median(ordered), ordered[math.ceil(0.95 * len(ordered)) - 1], len(ordered))


def geometric_mean(values: Iterable[float]) -> float:
    """The mean in which half and double weigh the same."""
    return statistics.geometric_mean(values)

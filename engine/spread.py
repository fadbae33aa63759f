"""In which order hits are shown: best ones from different conversations, threads and episodes first; copies merged.

Arrays in, arrays out; every array has one entry per hit. Must never know texts, scores' making, or bytes.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Order", "best_places", "by_time", "spread"]

Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Order:
    """Places of hits in the order they are to be shown, and for each how many further copies it stands for."""

    places: Rows
    copies: Rows


def by_time(sent_at: NDArray[np.int64], keys: Rows, *, newest: bool) -> Order:
    """A plain timeline: no spread, no merging. `keys` break ties the same way each time."""
    places = np.lexsort((keys, sent_at))
    if newest:
        places = places[::-1]
    return Order(places, np.zeros(len(places), dtype=np.int64))


def spread(
    scores: NDArray[np.float64],
    sent_at: NDArray[np.int64],
    keys: Rows,
    groups: Rows,
    conversations: Rows,
    talks: Rows,
) -> Order:
    """Best first, one hit of each copy group, conversations interleaved first, then talks within them.

    The n-th hit of a conversation comes after every conversation has given n - 1; within a conversation the n-th hit
    of a talk comes after every talk of it has given n - 1. Ties go to the newest, then by `keys`.
    """
    ranked = np.lexsort((keys, -sent_at, -scores))
    _, first, sizes = np.unique(groups[ranked], return_index=True, return_counts=True)
    order = np.argsort(first)
    kept, copies = ranked[first[order]], sizes[order] - 1
    turn_in_talk = _turns(talks[kept], np.arange(len(kept)))
    turn = _turns(conversations[kept], np.lexsort((np.arange(len(kept)), turn_in_talk)))
    final = np.lexsort((np.arange(len(kept)), turn))
    return Order(kept[final], copies[final])


def best_places(scores: NDArray[np.float64], sent_at: Callable[[Rows], NDArray[np.int64]], most: int) -> Rows:
    """Places of the hits that stand before all others by score, then time: `most` of them, more where they tie.

    `sent_at` tells the times of some places: of millions of hits those of the few that tie matter.
    """
    if len(scores) <= most:
        return np.arange(len(scores))
    border = np.partition(scores, len(scores) - most)[len(scores) - most]
    better, ties = np.flatnonzero(scores > border), np.flatnonzero(scores == border)
    left = most - len(better)
    if len(ties) > left:
        newest = sent_at(ties)
        ties = ties[newest >= np.partition(newest, len(ties) - left)[len(ties) - left]]
    return np.concatenate((better, ties))


def _turns(groups: Rows, order: Rows) -> Rows:
    """For each entry how many of its group come before it in `order`."""
    grouped = order[np.argsort(groups[order], kind="stable")]
    values = groups[grouped]
    starts = np.flatnonzero(np.concatenate(([True], values[1:] != values[:-1]))) if len(values) else np.zeros(0, int)
    sizes = np.diff(np.append(starts, len(values)))
    turns = np.empty(len(groups), dtype=np.int64)
    turns[grouped] = np.arange(len(values)) - np.repeat(starts, sizes)
    return turns

"""Chance that comes out the same everywhere: one generator per purpose, and tables to draw from.

Only `Random.random` is drawn from, and all weights are whole numbers, so a corpus is the same to the byte on
every Python and every machine. Must never know what is drawn.
"""

from collections.abc import Sequence
from hashlib import blake2b
from random import Random
from typing import TypeVar

__all__ = ["ident", "pick", "random_for", "shares", "zipf"]

T = TypeVar("T")


def random_for(*names: object) -> Random:
    """A generator that depends on `names` alone, each taken as text."""
    digest = blake2b("/".join(str(name) for name in names).encode(), digest_size=16).digest()
    return Random(int.from_bytes(digest, "big"))  # noqa: S311 - a corpus wants a seed, not a secret


def ident(prefix: str, *names: object) -> str:
    """`prefix` and eight upper-case hex digits that depend on `names` alone, as Slack's ids look."""
    return prefix + blake2b("/".join(str(name) for name in names).encode(), digest_size=4).hexdigest().upper()


def pick(rng: Random, values: Sequence[T]) -> T:
    """One of `values`, each as likely."""
    return values[int(rng.random() * len(values))]


def zipf(words: Sequence[str], size: int = 32_768) -> tuple[str, ...]:
    """A table of about `size` places in which the n-th word takes a share of 1/n, at least one place.

    Drawing a place evenly then draws words as they occur in speech: few often, most seldom.
    """
    total = sum(1_000_000 // rank for rank in range(1, len(words) + 1))
    return tuple(word for rank, word in enumerate(words, 1) for _ in range(max(1, size * (1_000_000 // rank) // total)))


def shares(total: int, weights: Sequence[int]) -> list[int]:
    """`total` cut into whole parts in proportion to `weights`; the parts add up to `total`."""
    whole, done, seen = sum(weights), 0, 0
    out = []
    for weight in weights:
        seen += weight
        upto = total * seen // whole
        out.append(upto - done)
        done = upto
    return out

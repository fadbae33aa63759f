"""How deep random tests dig: enough to find a fault in minutes, or with DEEP=1 (`make deep`) all the way."""

import os

__all__ = ["DEEP", "depth"]

DEEP = os.environ.get("DEEP", "") == "1"


def depth(deep: int, quick: int) -> int:
    """The number of cases: `quick` in `make test`, `deep` in `make deep`."""
    return deep if DEEP else quick

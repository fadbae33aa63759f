"""One process of many that claim the batches of one session: prints the numbers it won, one a line.

Called as `claim_worker.py SESSION LAST ADAPTER ARGUMENT…`.
"""

import sys
from collections.abc import Callable
from pathlib import Path

from engine.ports import Batch, SeenStore
from infra.dynamodb import DynamoSeen
from infra.sqlite import SqliteSeen

__all__ = ["claim_up_to"]


def claim_up_to(store: SeenStore, session: str, last: int, caller_id: str) -> list[int]:
    """Claim the next free number again and again until `last` is taken; the numbers won."""
    won = []
    while (number := len(store.batches(session)) + 1) <= last:
        if store.claim(session, Batch(number, number - 1, caller_id, "d", 1, 1), 2**52):
            won.append(number)
    return won


_ADAPTERS: dict[str, Callable[..., SeenStore]] = {
    "sqlite": lambda path: SqliteSeen(Path(path)),
    "dynamodb": lambda table, endpoint: DynamoSeen(table, endpoint_url=endpoint),
}

if __name__ == "__main__":
    session, last, adapter, *arguments = sys.argv[1:]
    for number in claim_up_to(_ADAPTERS[adapter](*arguments), session, int(last), "process"):
        sys.stdout.write(f"{number}\n")

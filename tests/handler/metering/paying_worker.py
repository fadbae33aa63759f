"""One process of many whose calls are paid for, called as `paying_worker.py WHAT ADAPTER ARGUMENT…`.

WHAT is how many calls to make in four threads, and the worker prints how many were answered; or `hang`, and it says so
in the middle of its only call and goes on with it for ever.
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import NoReturn

from engine.answer import Answer
from engine.errors import Refused
from handler.metering.metered import MeteredApp
from handler.settings_money import QuotaSettings
from tests.contracts.usage_bench import open_usage
from tests.handler.metering.bench import ADA, COUNT, Paged, metered

__all__ = ["answered"]

THREADS = 4


def answered(app: MeteredApp, calls: int, threads: int = THREADS) -> int:
    """How many of so many calls at once are answered."""

    def call(_: int) -> bool:
        try:
            return app.call(COUNT, ADA).text.startswith("found: 2")
        except Refused as error:
            if error.code != "credit_exhausted":
                raise
            return False

    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(call, range(calls)))


def _hang(*_: object) -> NoReturn:
    sys.stdout.write("working\n")
    sys.stdout.flush()
    while True:
        sys.stdin.read(1)


def _never(*arguments: object) -> Answer:
    _hang(*arguments)


if __name__ == "__main__":
    what, adapter, *rest = sys.argv[1:]
    store = open_usage(adapter, *rest)
    quota = QuotaSettings(prepaid=True)
    if what == "hang":
        metered(store, quota, inner=Paged(answer=_never)).call(COUNT, ADA)
    sys.stdout.write(f"{answered(metered(store, quota), int(what))}\n")

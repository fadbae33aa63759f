"""Who is asked whether work may go on, and what happens when it may not."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import duckdb
import pytest

from engine.errors import Unavailable
from engine.watch import go_on, interrupting, watched

ENDLESS = "SELECT count(*) FROM range(1_000_000) a, range(1_000_000) b WHERE hash(a.range, b.range) = 7"


def refuse() -> None:
    raise Unavailable("no_time", "time is over")


def agree() -> None:
    """Work may go on."""


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as made:
        yield made


def test_work_goes_on_where_nobody_watches(connection: duckdb.DuckDBPyConnection) -> None:
    go_on()
    with interrupting(connection.interrupt):
        assert connection.execute("SELECT 7").fetchall() == [(7,)]


def test_who_began_the_work_answers_for_its_pools_too() -> None:
    with watched(refuse), ThreadPoolExecutor(1) as pool:
        with pytest.raises(Unavailable):
            go_on()
        with pytest.raises(Unavailable):
            pool.submit(go_on).result()
        with watched(agree):
            go_on()
            # Of two watchers a pool's thread cannot tell which is its own.
            pool.submit(go_on).result()
    go_on()


def test_a_sort_that_outlasts_the_time_is_interrupted(connection: duckdb.DuckDBPyConnection) -> None:
    with watched(refuse), pytest.raises(Unavailable, match="time is over"), interrupting(connection.interrupt):
        connection.execute(ENDLESS)


def test_what_begins_after_the_time_is_interrupted_too(connection: duckdb.DuckDBPyConnection) -> None:
    def work() -> None:
        with interrupting(connection.interrupt):
            with suppress(duckdb.InterruptException):
                connection.execute(ENDLESS)
            connection.execute(ENDLESS)

    with watched(refuse), pytest.raises(Unavailable, match="time is over"):
        work()


def test_a_failure_in_time_goes_through(connection: duckdb.DuckDBPyConnection) -> None:
    with watched(agree), pytest.raises(duckdb.CatalogException), interrupting(connection.interrupt):
        connection.execute("SELECT * FROM nowhere")

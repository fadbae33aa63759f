"""The end of a call, asked by what waits in it."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from engine.deadline import check_deadline, ending_in, seconds_left
from engine.errors import Unavailable
from engine.index.blocks import BlockCache
from engine.snapshot.database import Database, DatabaseSettings, connect

ENDLESS = "SELECT count(*) FROM range(1_000_000_000_000) a WHERE hash(a) = 1"
TOO_SLOW = {
    "code": "too_slow",
    "message": "the call was stopped after 5 seconds",
    "next": "call again; if it stays so, narrow it by a filter or a rarer word",
}


@dataclass
class Seconds:
    """Time that moves when a test says so, in seconds."""

    now: float = 100.0

    def __call__(self) -> float:
        return self.now


@contextmanager
def stopped() -> Iterator[None]:
    with pytest.raises(Unavailable) as caught:
        yield
    assert caught.value.to_object() == TOO_SLOW


def test_a_call_without_an_end_may_take_as_long_as_it_takes() -> None:
    check_deadline()
    assert seconds_left() == math.inf


def test_nothing_begins_once_the_time_is_over_and_what_comes_later_is_free_of_it() -> None:
    timer = Seconds()
    with ending_in(5, timer):
        timer.now += 4
        assert seconds_left() == 1
        check_deadline()
        timer.now += 1
        with stopped():
            check_deadline()
    check_deadline()


def test_no_statement_is_begun_after_the_end_of_its_call(tmp_path: Path) -> None:
    database, timer = Database(connect(DatabaseSettings("64MB", 1, tmp_path), []), 20), Seconds()
    with ending_in(5, timer):
        assert database.rows("SELECT 1") == [(1,)]
        timer.now += 5
        with stopped():
            database.rows("SELECT 1")
    assert database.rows("SELECT 1") == [(1,)]
    database.close()


def test_a_statement_that_runs_when_its_call_ends_is_interrupted(tmp_path: Path) -> None:
    database = Database(connect(DatabaseSettings("64MB", 1, tmp_path), []), 20)
    asked = iter([0.0, 4.9, 4.99])
    # What is left of the call when the statement begins is a hundredth of a second; when it ends, nothing.
    with ending_in(5, lambda: next(asked, 5.0)), stopped():
        database.rows(ENDLESS)
    database.close()


def test_an_interrupt_that_came_before_its_statement_had_begun_was_lost(tmp_path: Path) -> None:
    database = Database(connect(DatabaseSettings("64MB", 1, tmp_path), []), 1e-9)
    for _ in range(20):
        with pytest.raises(Unavailable):
            database.rows(ENDLESS)
    database.close()


def test_a_statement_that_is_too_slow_in_a_call_that_has_time_says_so_itself(tmp_path: Path) -> None:
    database = Database(connect(DatabaseSettings("64MB", 1, tmp_path), []), 0.01)
    with ending_in(5, Seconds()), pytest.raises(Unavailable) as caught:
        database.rows(ENDLESS)
    assert caught.value.message == "the search was stopped after 0.01 seconds"
    database.close()


def test_blocks_read_side_by_side_end_with_their_call() -> None:
    timer = Seconds()

    def load(_: tuple[str, int]) -> tuple[()]:
        check_deadline()
        return ()

    keys = [("postings", number) for number in range(3)]
    with ending_in(5, timer):
        assert BlockCache(1_000).get(keys, load) == dict.fromkeys(keys, ())
        timer.now += 5
        with stopped():
            BlockCache(1_000).get(keys, load)

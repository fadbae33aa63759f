"""Whose tally a count goes to."""

import threading
from concurrent.futures import ThreadPoolExecutor

from engine.tally import PlannedTerm, Tally, add, counting, current, note_plan, note_snapshot


def everything(count: int) -> None:
    add("rows", count)
    note_plan([PlannedTerm("docker", "fts", count)])
    note_snapshot(count)


def test_counts_go_to_the_call_the_code_runs_in_and_nowhere_after_it() -> None:
    everything(1)
    with counting() as tally:
        everything(2)
        add("rows")
    everything(4)
    assert tally == Tally({"rows": 3}, [PlannedTerm("docker", "fts", 2)], 2)  # type: ignore[arg-type] # equal to a Counter


def test_two_calls_at_once_are_counted_apart() -> None:
    together = threading.Barrier(2)

    def call(count: int) -> Tally:
        with counting() as tally:
            together.wait()
            everything(count)
            together.wait()
        return tally

    with ThreadPoolExecutor(2) as pool:
        tallies = list(pool.map(call, (3, 5)))
    assert [(tally.counts["rows"], tally.snapshot_at) for tally in tallies] == [(3, 3), (5, 5)]


def test_a_thread_of_a_pool_counts_for_the_only_call_and_for_none_of_several() -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(everything, 1).result()
        with counting() as first:
            pool.submit(everything, 2).result()
            with counting() as second:
                pool.submit(everything, 4).result()
                add("rows", 8)
    assert (first.counts["rows"], second.counts["rows"]) == (2, 8)


def test_the_tally_of_a_call_is_found_from_within_it_and_nowhere_else() -> None:
    assert current() is None
    with counting() as tally:
        assert current() is tally
    assert current() is None

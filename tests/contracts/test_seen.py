"""What every `SeenStore` does."""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from engine.ports import Batch
from tests.contracts import claim_worker
from tests.contracts.benches import NOON, SEEN_ADAPTERS, SeenBench, seen_bench

DAY = 86_400_000_000
LATER = NOON + 30 * DAY


@pytest.fixture(params=SEEN_ADAPTERS)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> SeenBench:
    return seen_bench(request, tmp_path)


def a_batch(number: int, **changes: object) -> Batch:
    plain: dict[str, object] = {
        "parent": number - 1,
        "caller_id": "Zoë <zoe@partner.example>",
        "digest": "a1b2",
        "made_at": NOON + number,
        "started_at": NOON,
        "shown": bytes(range(256)),
        "around": b"\x00" * 8 + b"\xff" * 8,
        "groups": b"",
    }
    return Batch(number=number, **(plain | changes))  # type: ignore[arg-type]  # fields by name, of mixed types


def test_unknown_session_has_no_batches(bench: SeenBench) -> None:
    assert bench.open().batches("nobody") == []


def test_batches_come_back_whole_in_order_of_number(bench: SeenBench) -> None:
    store = bench.open()
    for number in (2, 10, 1, 9):
        assert store.claim("s", a_batch(number), LATER)
    assert bench.open().batches("s") == [a_batch(1), a_batch(2), a_batch(9), a_batch(10)]


def test_a_batch_may_show_nothing(bench: SeenBench) -> None:
    empty = Batch(number=1, parent=0, caller_id="", digest="", made_at=0, started_at=0)
    assert bench.open().claim("s", empty, LATER)
    assert bench.open().batches("s") == [empty]


def test_number_is_claimed_once_and_the_first_batch_stays(bench: SeenBench) -> None:
    store = bench.open()
    assert store.claim("s", a_batch(1), LATER)
    assert not store.claim("s", a_batch(1, shown=b"other---"), LATER)
    assert not bench.open().claim("s", a_batch(1), LATER)
    assert store.batches("s") == [a_batch(1)]


@pytest.mark.parametrize("other", ["S", "s ", "", "s\x00", "сессия", "\ud800", "x" * 5_000])
def test_sessions_do_not_see_each_other(bench: SeenBench, other: str) -> None:
    store = bench.open()
    assert store.claim("s", a_batch(1), LATER)
    assert store.claim(other, a_batch(1, digest="other"), LATER)
    assert store.batches("s") == [a_batch(1)]
    assert store.batches(other) == [a_batch(1, digest="other")]


def test_batches_are_gone_after_their_time(bench: SeenBench) -> None:
    store = bench.open()
    assert store.claim("old", a_batch(1), LATER)
    assert store.claim("new", a_batch(1), LATER + 5 * DAY)
    bench.clock.now = LATER
    assert store.batches("old") == []
    assert store.batches("new") == [a_batch(1)]


def test_eight_threads_claim_each_number_once(bench: SeenBench) -> None:
    store = bench.open()
    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(lambda n: claim_worker.claim_up_to(store, "s", 64, f"thread {n}"), range(8)))
    assert sorted(n for numbers in won for n in numbers) == list(range(1, 65))
    assert [b.number for b in store.batches("s")] == list(range(1, 65))


def test_eight_processes_claim_each_number_once(bench: SeenBench) -> None:
    command = [sys.executable, claim_worker.__file__, "s", "64", *bench.arguments]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(8)]
    printed = [process.communicate(timeout=60)[0] for process in running]
    assert [process.returncode for process in running] == [0] * 8
    assert sorted(int(line) for out in printed for line in out.splitlines()) == list(range(1, 65))
    assert [b.number for b in bench.open().batches("s")] == list(range(1, 65))


def test_hundred_thousand_shown_messages_are_read_whole(bench: SeenBench, capsys: pytest.CaptureFixture[str]) -> None:
    store = bench.open()
    packed = {n: b"".join((n * 50 + i).to_bytes(8, "big") for i in range(50)) for n in range(1, 2_001)}
    with ThreadPoolExecutor(8) as pool:
        claims = pool.map(lambda n: store.claim("s", a_batch(n, shown=packed[n]), LATER), packed)
        assert all(claims)
    began = time.perf_counter()
    batches = store.batches("s")
    seconds = time.perf_counter() - began
    with capsys.disabled():
        sys.stdout.write(f" [{bench.arguments[0]}: 100,000 seen keys read in {seconds:.3f} s] ")
    assert {b.number: b.shown for b in batches} == packed
    assert [b.number for b in batches] == list(packed)

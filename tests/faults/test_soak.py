"""Long runs: `make soak`. Their length is set by SOAK_LOAD_SECONDS and SOAK_MEMORY_SECONDS."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.bench import Corpus, Scene, folder_stores, plant_snapshots
from tests.faults.soak import Durations, Report, soak

LOAD_SECONDS = float(os.environ.get("SOAK_LOAD_SECONDS", "300"))
MEMORY_SECONDS = float(os.environ.get("SOAK_MEMORY_SECONDS", "3600"))


@pytest.fixture
def scene(corpus: Corpus, work: Path) -> Iterator[Scene]:
    stores = folder_stores(work / "root", busy_seconds=10)
    plant_snapshots(stores, corpus)
    with Scene(stores, corpus.table, work).closing() as each:
        yield each


def told(report: Report, capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        for line in ("", *report.lines()):
            print(line)  # noqa: T201 - the report is what a soak is run for


def test_a_short_soak_answers_every_call(scene: Scene) -> None:
    report = soak(scene, agents=8, seconds=2.0)
    assert report.errors == {}
    assert all(took.calls for took in report.seconds.values())
    assert len(report.lines()) == 6


def test_durations_are_told_to_two_in_a_hundred_however_many_there_are() -> None:
    took = Durations()
    for n in range(1, 1_001):
        took.add(n / 1_000)
    assert all(abs(took.percentile(p) / (p / 100) - 1) < 0.02 for p in (50, 95, 99))
    assert (took.calls, took.most, len(took.steps) < 400) == (1_000, 1.0, True)


@pytest.mark.soak
def test_fifty_agents_at_once_are_answered_in_time_and_memory_stays_flat(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    report = soak(scene, agents=50, seconds=LOAD_SECONDS)
    told(report, capsys)
    assert report.errors == {}
    assert report.memory_at(LOAD_SECONDS) < 1.1 * report.memory_at(LOAD_SECONDS / 5)


@pytest.mark.soak
def test_memory_after_an_hour_is_that_after_a_minute(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    report = soak(scene, agents=2, seconds=MEMORY_SECONDS)
    told(report, capsys)
    assert report.errors == {}
    assert report.memory_at(MEMORY_SECONDS) < 1.1 * report.memory_at(60)

"""When a refresh starts, gives up, and gives its lock back."""

from pathlib import Path

import duckdb
import pytest

from engine.errors import Refused, Unavailable
from handler.lambda_refresh import refresh
from handler.local_app import LocalApp
from handler.settings import Settings
from handler.settings_table import CorpusSettings, SourceSettings
from handler.wiring import build_app, system_clock


class HeldInMemory:
    """A lock that remembers what was asked of it."""

    def __init__(self) -> None:
        self.asked: list[float | str] = []

    def take(self, seconds: float, owner: str) -> None:
        self.asked += [seconds, owner]

    def release(self) -> None:
        self.asked.append("released")


class HeldByAnother(HeldInMemory):
    def take(self, seconds: float, owner: str) -> None:
        raise Refused("refresh_running", f"another than {owner} has {seconds:.0f} s")


@pytest.fixture
def app(tmp_path: Path) -> LocalApp:
    table = tmp_path / "messages.csv"
    table.write_text("conversation,native_id,sent_at,author,body\na,1,2026-01-01T00:00:00Z,ada,hello there\n")
    settings = Settings(
        corpus=CorpusSettings(root=str(tmp_path / "root")),
        sources=(SourceSettings(format="csv", location=str(table), name="messages"),),
    )
    return build_app(settings, system_clock)


def test_a_refresh_holds_the_lock_for_as_long_as_it_may_run(app: LocalApp) -> None:
    lock = HeldInMemory()
    report = refresh(app, lock, lambda: 900.0, "event", force=False)
    assert (report["published"], report["messages"]) == (True, 1)
    assert lock.asked == [900.0, "event", "released"]


def test_a_refresh_gives_up_in_time_and_publishes_nothing(app: LocalApp) -> None:
    lock = HeldInMemory()
    left = iter([40.0, 19.9])
    with pytest.raises(Unavailable, match=r"time ran out while .*; nothing was published"):
        refresh(app, lock, lambda: next(left), "event", force=False)
    assert lock.asked == [40.0, "event", "released"]
    assert refresh(app, lock, lambda: 900.0, "event", force=False)["published"] is True


def test_a_refresh_does_not_start_without_time(app: LocalApp) -> None:
    lock = HeldInMemory()
    with pytest.raises(Unavailable, match="29 s are too few"):
        refresh(app, lock, lambda: 29.4, "event", force=False)
    assert lock.asked == []


def test_a_refresh_that_finds_another_says_so_and_is_no_failure(app: LocalApp) -> None:
    assert refresh(app, HeldByAnother(), lambda: 900.0, "event", force=False) == {
        "refreshed": False,
        "why": {"code": "refresh_running", "message": "another than event has 900 s"},
    }


def test_a_build_that_takes_too_long_is_interrupted_in_the_middle_of_a_step(
    app: LocalApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    def endless(connection: duckdb.DuckDBPyConnection, *_: object) -> None:
        # From here on no step asks how much time is left.
        left.append(19.0)
        connection.execute(
            "SELECT count(*) FROM range(1_000_000) a, range(1_000_000) b WHERE hash(a.range, b.range) = 7"
        )

    left = [900.0]
    monkeypatch.setattr("engine.refresh.write", endless)
    lock = HeldInMemory()
    with pytest.raises(Unavailable, match="time ran out while reading messages; nothing was published"):
        refresh(app, lock, lambda: left[-1], "event", force=False)
    assert lock.asked == [900.0, "event", "released"]

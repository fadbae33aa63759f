"""Every call ends in time: with an answer, an error of what failed, or one that says what became of it."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from engine.answer import Answer
from engine.deadline import check_deadline, seconds_left
from engine.errors import Unavailable
from engine.limits import Limits
from engine.ports import Progress
from engine.requests import CountRequest, Criteria, Request, SearchRequest, UnseenRequest
from engine.sight import Caller
from engine.tally import add, counting
from handler.deadline import TimedApp
from handler.settings import Settings
from handler.wiring import build_counted_app, system_clock

CALLER = Caller("tests")
COUNT = CountRequest(Criteria(query="docker"))


class Inner:
    """An application that does what a test says."""

    def __init__(self, work: Callable[[], Answer], seconds: float = 0.05) -> None:
        self._work = work
        self._seconds = seconds

    @property
    def limits(self) -> Limits:
        return replace(Limits(), call_seconds=self._seconds)

    def call(self, request: Request, caller: Caller, *, brute: bool = False) -> Answer:
        del request, caller, brute
        return self._work()

    def instructions(self, caller: Caller) -> str:
        return self.call(COUNT, caller).text

    def corpus(self, caller: Caller) -> dict[str, object]:
        return self.call(COUNT, caller).object

    def finish_export(self, export_id: str) -> dict[str, object]:
        return {"export": export_id, "left": seconds_left()}

    def refresh(self, progress: Progress | None = None, *, force: bool = False) -> dict[str, object]:
        return {"progress": progress, "force": force, "left": seconds_left()}

    def verify(self, progress: Progress | None = None) -> dict[str, object]:
        return {"progress": progress, "left": seconds_left()}


@pytest.fixture
def stuck() -> Iterator[tuple[Callable[[], Answer], threading.Event]]:
    """Work that does not end until the test does, and what then becomes of it."""
    go_on, refused = threading.Event(), threading.Event()

    def work() -> Answer:
        assert go_on.wait(20)
        try:
            check_deadline()
        except Unavailable:
            refused.set()
            raise
        return Answer("late", {})

    yield work, refused
    go_on.set()
    assert refused.wait(20)


def test_an_answer_in_time_comes_as_it_is_and_counts_for_its_call() -> None:
    def work() -> Answer:
        add("statements")
        return Answer("found", {"left": 0 < seconds_left() <= 20})

    app = TimedApp(Inner(work, 20))
    with counting() as tally:
        assert app.call(COUNT, CALLER) == Answer("found", {"left": True})
    assert tally.counts["statements"] == 1
    assert (app.instructions(CALLER), app.corpus(CALLER)) == ("found", {"left": True})


def test_an_error_in_time_comes_as_it_is() -> None:
    failure = Unavailable("store_unreachable", "no answer")

    def work() -> Answer:
        raise failure

    with pytest.raises(Unavailable) as caught:
        TimedApp(Inner(work, 20)).call(COUNT, CALLER)
    assert caught.value is failure


def test_a_call_that_does_not_end_is_told_and_begins_nothing_more(
    stuck: tuple[Callable[[], Answer], threading.Event],
) -> None:
    with pytest.raises(Unavailable) as caught:
        TimedApp(Inner(stuck[0]), grace_seconds=0).call(COUNT, CALLER)
    assert caught.value.to_object() == {
        "code": "too_slow",
        "message": "the call was stopped after 0.05 seconds",
        "next": "call again; if it stays so, narrow it by a filter or a rarer word",
    }


def test_a_caller_that_pages_is_told_how_to_lose_nothing(stuck: tuple[Callable[[], Answer], threading.Event]) -> None:
    request = UnseenRequest(SearchRequest(Criteria(query="docker"), session="h"))
    with pytest.raises(Unavailable) as caught:
        TimedApp(Inner(stuck[0]), grace_seconds=0).call(request, CALLER)
    assert caught.value.next_step == (
        "call again with after_batch, the last batch received, or what this call may record is never shown"
    )


def test_refreshing_verifying_and_finishing_an_export_have_no_end() -> None:
    app = TimedApp(Inner(lambda: Answer("", {})))
    endless = float("inf")
    assert app.refresh(force=True) == {"progress": None, "force": True, "left": endless}
    assert app.verify() == {"progress": None, "left": endless}
    assert app.finish_export("e") == {"export": "e", "left": endless}


@pytest.mark.parametrize(("seconds", "timed"), [(25, True), (0, False)])
def test_served_calls_end_in_time_unless_the_setting_says_otherwise(
    tmp_path: Path, seconds: int, *, timed: bool
) -> None:
    settings = Settings.model_validate({"corpus": {"root": str(tmp_path)}, "limits": {"call_seconds": seconds}})
    assert isinstance(build_counted_app(settings, system_clock), TimedApp) is timed

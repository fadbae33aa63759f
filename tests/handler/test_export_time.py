"""How long a call waits for its export, and what becomes of one that takes longer."""

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.errors import Unavailable
from engine.ports import Export, ExportSink
from engine.requests import Criteria, ExportRequest
from engine.sight import Caller
from handler.lambda_invoke import SPARE_SECONDS, Remaining, answer
from handler.local_app import LocalApp, Patience
from infra.localdir import LocalExports
from tests.handler.wired_app import NOON, wired_app

ASKED = ExportRequest(Criteria(query="docker"))
ADA = Caller("key:ada")
EVENT = {"tool": "export_messages", "arguments": {"query": "docker"}, "caller": "ada"}


class Held(LocalExports):
    """Exports whose files wait until they are let go."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.root = root
        self.let_go = threading.Event()

    def sink(self, export: Export) -> Any:
        made: ExportSink = super().sink(export)
        self.let_go.wait(60)
        return made

    def ended(self) -> list[tuple[str, int]]:
        """State and number of files of every export, once all threads that write one are over."""
        self.let_go.set()
        for thread in threading.enumerate():
            if thread.name == "export":
                thread.join(60)
        records = (self.root / "exports" / "records").iterdir()
        files = len(list(self.root.glob("exports/*/*/*.jsonl")))
        return [(json.loads(path.read_text("utf-8"))["state"], files) for path in records]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> LocalApp:
    made = wired_app(tmp_path_factory.mktemp("corpus"))
    assert isinstance(made, LocalApp)
    return made


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Held]:
    made = Held(tmp_path)
    yield made
    made.let_go.set()


def impatient(
    corpus: LocalApp, held: Held, *, lasting: bool = False, later: Callable[[str], None] | None = None
) -> LocalApp:
    """An application that does not wait at all."""
    patience = Patience(lambda: 0.0, lasting=lasting)
    return LocalApp(replace(corpus._parts, exports=held, patience=patience, later=later))


def test_an_export_that_outlasts_a_container_ends_as_failed(corpus: LocalApp, held: Held) -> None:
    with pytest.raises(Unavailable) as caught:
        impatient(corpus, held).call(ASKED, ADA)
    assert caught.value.to_text() == "export_failed: the export takes longer than there is time; narrow it by a filter"
    assert held.ended() == [("failed", 0)]


def test_an_export_by_another_program_has_the_time_of_its_event(corpus: LocalApp, held: Held) -> None:
    class Context:
        def get_remaining_time_in_millis(self) -> int:
            held.let_go.set()  # time is looked at when the file has been begun
            return 900_000

    remaining = Remaining()
    assert remaining.for_export() == -SPARE_SECONDS
    remaining.begin(Context())
    assert remaining.for_export() == 900 - SPARE_SECONDS
    patience = Patience(remaining.for_export, lasting=False)
    app = LocalApp(replace(corpus._parts, exports=held, patience=patience))
    assert answer(app, EVENT)["rows"] == 120
    assert held.ended() == [("done", 1)]


def test_an_export_handed_over_is_left_to_the_other(corpus: LocalApp, held: Held) -> None:
    given: list[str] = []
    told = impatient(corpus, held, later=given.append).call(ASKED, ADA).object
    assert (told["running"], given) == (True, [told["export"]])
    assert held.ended() == [("running", 0)]
    assert answer(LocalApp(replace(corpus._parts, exports=held)), {"export": given[0]})["state"] == "done"
    assert held.ended() == [("done", 1)]


@pytest.mark.parametrize("state", [("failed", 0), ("done", 1)])
def test_an_export_that_cannot_be_handed_over_goes_on_only_where_the_process_does(
    corpus: LocalApp, held: Held, state: tuple[str, int]
) -> None:
    def unreachable(_: str) -> None:
        raise Unavailable("store_unreachable", "nobody answers")

    with pytest.raises(Unavailable, match="nobody answers"):
        impatient(corpus, held, lasting=state[0] == "done", later=unreachable).call(ASKED, ADA)
    assert held.ended() == [state]


def test_a_laptop_goes_on_by_itself(corpus: LocalApp, held: Held) -> None:
    assert impatient(corpus, held, lasting=True).call(ASKED, ADA).object["running"] is True
    assert held.ended() == [("done", 1)]


def test_the_rest_of_an_export_that_outlasts_its_event_ends_as_failed(corpus: LocalApp, held: Held) -> None:
    export_id = impatient(corpus, held, later=lambda _: None).call(ASKED, ADA).object["export"]
    assert answer(impatient(corpus, held), {"export": export_id}) == {"export": export_id, "state": "failed", "rows": 0}
    assert held.ended() == [("failed", 0)]
    # What Lambda tries again may still succeed.
    assert answer(LocalApp(replace(corpus._parts, exports=held)), {"export": export_id})["state"] == "done"


def test_a_call_waits_from_its_beginning(corpus: LocalApp, held: Held) -> None:
    # Ten seconds have passed of the nine it would wait.
    clock = iter([NOON, NOON + 10_000_000])
    parts = replace(corpus._parts, exports=held, export_wait_seconds=9.0, clock=lambda: next(clock))
    assert LocalApp(parts).call(ASKED, ADA).object["running"] is True
    assert held.ended() == [("done", 1)]

"""Exports that outlast their call: they are written all the same, or there is word of why not."""

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from engine.deadline import check_deadline, ending_in
from engine.errors import BadInput, EngineError, Unavailable
from engine.ports import Export, ExportSink
from engine.requests import Criteria, ExportRequest
from engine.sight import Caller
from engine.tally import add, counting
from handler.app import App
from handler.cli.entry import main
from handler.cli.shell import Shell
from handler.local_app import LocalApp
from handler.settings import Settings
from handler.wiring import build_app
from infra.localdir import LocalExports
from tests.handler.wired_app import NOON, wired_settings

ANN = Caller("ann")
ALL = ExportRequest(Criteria("docker"))


@dataclass
class Slow:
    """A sink that first does what the test wants."""

    inner: ExportSink
    first: Callable[[], None]

    def write(self, piece: bytes) -> None:
        self.first()
        self.inner.write(piece)

    def commit(self) -> None:
        self.inner.commit()

    def abort(self) -> None:
        self.inner.abort()


class SlowExports(LocalExports):
    """Exports that wait before every piece."""

    first: Callable[[], None]

    def sink(self, export: Export) -> Any:
        return Slow(super().sink(export), self.first)


@pytest.fixture(scope="module")
def refreshed(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    settings = wired_settings(tmp_path_factory.mktemp("exports"))
    app = build_app(settings, lambda: NOON)
    app.refresh()
    app.close()
    return settings


@pytest.fixture
def apps(refreshed: Settings) -> Iterator[Callable[[Callable[[], None], float | None], LocalApp]]:
    made: list[LocalApp] = []

    def app_with(first: Callable[[], None], seconds: float | None) -> LocalApp:
        exports = SlowExports(Path(refreshed.corpus.root))
        exports.first = first
        parts = build_app(refreshed, lambda: NOON)._parts
        made.append(LocalApp(replace(parts, exports=exports, export_wait_seconds=seconds)))
        return made[-1]

    yield app_with
    for app in made:
        app.close()


Apps = Callable[[Callable[[], None], float | None], LocalApp]


def test_an_export_over_fifteen_seconds_died_with_its_process(apps: Apps) -> None:
    go_on = threading.Event()
    app = apps(lambda: assert_set(go_on), 0.01)
    told = app.call(ALL, ANN).object
    assert (told["running"], told["rows"]) == (True, 0)
    assert [thread.daemon for thread in threading.enumerate() if thread.name == "export"] == [False]
    go_on.set()
    app.close()
    assert app.call(ExportRequest(export=told["export"]), ANN).object["rows"] == 120


def assert_set(event: threading.Event) -> None:
    assert event.wait(30)


def test_what_an_export_read_after_its_call_was_counted_for_another_caller(apps: Apps) -> None:
    go_on = threading.Event()

    def write() -> None:
        assert_set(go_on)
        add("export_bytes")

    app = apps(write, 0.01)
    with counting() as own:
        app.call(ALL, ANN)
    with counting() as others:
        go_on.set()
        app.close()
    assert (own.counts["export_bytes"] > 0, others.counts) == (True, {})


def test_an_export_that_goes_on_has_time_when_its_call_has_none(apps: Apps) -> None:
    go_on, passed = threading.Event(), [0.0]

    def write() -> None:
        assert_set(go_on)
        check_deadline()

    app = apps(write, 0.01)
    with ending_in(5, lambda: passed[0]):
        told = app.call(ALL, ANN).object
        passed[0] = 5
        go_on.set()
        app.close()
    assert app.call(ExportRequest(export=told["export"]), ANN).object["rows"] == 120


def test_of_two_exports_begun_at_once_the_end_of_the_process_may_have_waited_for_one(apps: Apps) -> None:
    go_on, at_once = threading.Event(), threading.Barrier(2)
    app = apps(lambda: assert_set(go_on), 0.01)

    def export(_: int) -> str:
        at_once.wait(30)
        return str(app.call(ALL, ANN).object["export"])

    with ThreadPoolExecutor(2) as callers:
        begun = list(callers.map(export, range(2)))
    assert len(app._writing) == 2
    go_on.set()
    app.close()
    assert app._writing == set()
    assert [app.call(ExportRequest(export=each), ANN).object["rows"] for each in begun] == [120, 120]


def test_a_command_waits_for_its_export_and_a_server_does_not(tmp_path: Path) -> None:
    waits: list[int] = []

    def build(settings: Settings) -> App:
        waits.append(settings.limits.export_wait_seconds)
        raise BadInput("bad_setting", "enough is known")

    (tmp_path / "hayfork.toml").write_text("", "utf-8")
    for command in (("export", "docker"), ("serve", "--stdio")):
        assert main(["--config", str(tmp_path / "hayfork.toml"), *command], Shell(build=build)) == 2
    assert waits == [0, 15]


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (Unavailable("store_unreachable", "the store is away"), "store_unreachable: the store is away"),
        (OSError("no space"), "internal error, reference "),
    ],
)
def test_a_failure_after_the_wait_left_no_word(
    apps: Apps, caplog: pytest.LogCaptureFixture, error: Exception, line: str
) -> None:
    go_on = threading.Event()

    def fail() -> None:
        assert_set(go_on)
        raise error

    app = apps(fail, 0.01)
    told = app.call(ALL, ANN).object
    go_on.set()
    app.close()
    assert f"an export failed after its call had been answered: {line}" in caplog.text
    with pytest.raises(EngineError) as raised:
        app.call(ExportRequest(export=told["export"]), ANN)
    assert raised.value.code == "export_failed"


def test_a_failure_within_the_wait_is_the_calls_own(apps: Apps, caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise Unavailable("store_unreachable", "the store is away")

    with pytest.raises(Unavailable):
        apps(fail, None).call(ALL, ANN)
    assert not caplog.text


def test_an_interrupted_export_stops_and_says_so(apps: Apps, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.export_rows._PIECE_BYTES", 1)
    begun: list[Any] = []

    def interrupt() -> None:
        begun.append(next(iter(app._writing))._job)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        assert_set(begun[0].cancelled)

    app = apps(interrupt, None)
    with pytest.raises(KeyboardInterrupt):
        app.call(ALL, ANN)
    with pytest.raises(Unavailable) as raised:
        app.call(ExportRequest(export=begun[0].export.export_id), ANN)
    assert (raised.value.code, len(begun)) == ("export_failed", 1)

"""Exports that outlast their call: they are written all the same, or there is word of why not."""

import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from engine.errors import BadInput, EngineError, Unavailable
from engine.ports import Export, ExportSink
from engine.requests import Criteria, ExportRequest
from engine.sight import Caller
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
        begun.append(app._writing[0]._job)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        assert_set(begun[0].cancelled)

    app = apps(interrupt, None)
    with pytest.raises(KeyboardInterrupt):
        app.call(ALL, ANN)
    with pytest.raises(Unavailable) as raised:
        app.call(ExportRequest(export=begun[0].export.export_id), ANN)
    assert (raised.value.code, len(begun)) == ("export_failed", 1)

"""Faults that were found and mended, each by the name of what went wrong."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from engine.errors import Unavailable
from engine.ports import Export
from engine.requests import ExportRequest
from engine.snapshot.scratch import scratch
from infra.layout import EXPORT_RECORDS
from tests.faults.bench import CALLER, Corpus, Scene, asking, folder_stores, plain, plant_snapshots


@pytest.fixture
def scene(corpus: Corpus, work: Path) -> Iterator[Scene]:
    stores = folder_stores(work / "root")
    plant_snapshots(stores, corpus)
    with Scene(stores, corpus.table, work).closing() as each:
        yield each


@contextmanager
def slow_look(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """The store answers where the current snapshot is only when told to; gives the event that says a look has begun."""
    begun, go_on = threading.Event(), threading.Event()
    store = scene.stores.snapshots
    real = store.current

    def current() -> str | None:
        begun.set()
        assert go_on.wait(20)
        return real()

    with monkeypatch.context() as patch:
        patch.setattr(store, "current", current)
        try:
            yield begun
        finally:
            go_on.set()


def test_a_slow_look_at_the_store_delayed_every_other_call(
    scene: Scene, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.app.call(asking("count", None), CALLER)
    scene.clock.now += 60_000_000
    with ThreadPoolExecutor(1) as pool:
        with slow_look(scene, monkeypatch) as begun:
            looking = pool.submit(scene.app.call, asking("count", None), CALLER)
            assert begun.wait(20)
            other = scene.app.call(asking("count", None), CALLER)
            assert not looking.done()
        assert plain(looking.result()) == plain(other) == corpus.right[corpus.newer]["count"]


class _Counted:
    """A lock that tells of each who comes for it."""

    def __init__(self, come: threading.Semaphore) -> None:
        self._lock = threading.Lock()
        self._come = come

    def acquire(self, *, blocking: bool = True) -> bool:
        self._come.release()
        return self._lock.acquire(blocking)

    def release(self) -> None:
        self._lock.release()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def test_calls_that_waited_for_a_store_that_is_gone_each_waited_for_it_anew(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []
    come = threading.Semaphore(0)

    def current() -> str | None:
        looks.append(1)
        assert all(come.acquire(timeout=20) for _ in range(4))
        raise Unavailable("store_unreachable", "no answer")

    def call(_: int) -> str:
        with pytest.raises(Unavailable) as caught:
            scene.app.call(asking("count", None), CALLER)
        return caught.value.code

    monkeypatch.setattr(scene.stores.snapshots, "current", current)
    monkeypatch.setattr(scene.app._parts.reader, "_looking", _Counted(come))
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(call, range(4))) == ["store_unreachable"] * 4
    assert looks == [1]


def test_an_export_whose_process_was_killed_said_running_until_it_expired(scene: Scene) -> None:
    scene.app.call(asking("export", None), CALLER)
    (name,) = [each for each in scene.stores.names() if each.startswith(EXPORT_RECORDS)]
    export = Export(**json.loads(scene.stores.fetch(name)))
    scene.stores.exports.put(replace(export, state="running"))
    asked = ExportRequest(export=export.export_id)
    assert scene.app.call(asked, CALLER).object["running"] is True
    scene.clock.now += 1_801_000_000
    with pytest.raises(Unavailable) as caught:
        scene.app.call(asked, CALLER)
    assert (caught.value.code, caught.value.next_step) == ("export_failed", "call again with the query and filters")


def test_a_temporary_folder_is_not_swept_while_its_process_lives(tmp_path: Path) -> None:
    code = "import sys; from pathlib import Path; from engine.snapshot.scratch import scratch\n"
    code += "print(scratch(Path(sys.argv[1])), flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)],
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ},
        cwd=Path(__file__).parents[2],
    ) as process:
        assert process.stdout is not None
        theirs = Path(process.stdout.readline().strip())
        ours = scratch(tmp_path)
        assert theirs != ours
        assert theirs.is_dir()
    assert not theirs.exists()
    assert scratch(tmp_path) == ours

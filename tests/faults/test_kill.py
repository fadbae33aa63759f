"""`kill -9` at every step of a refresh and of an export, over both stores: readers never see half of anything."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pytest

from engine.ports import Export
from engine.snapshot.scratch import scratch
from infra.layout import EXPORT_RECORDS, export_name
from tests.faults.bench import CALLER, Corpus, Deployment, Scene, asking, folder_stores, plain, plant_snapshots
from tests.faults.kill_worker import KILLED

pytestmark = pytest.mark.deep

ROOT = Path(__file__).parents[2]


@dataclass
class Place:
    """A root with both snapshots, a process over it that is well, and how to start one that is killed."""

    scene: Scene
    temp: Path
    command: list[str]

    @contextmanager
    def worker(self) -> Iterator["subprocess.Popen[str]"]:
        command = [sys.executable, "-m", "tests.faults.kill_worker", *self.command]
        with subprocess.Popen(
            command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ}
        ) as process:
            yield process
            assert process.stdin is not None
            process.stdin.close()


@pytest.fixture(params=["localdir", pytest.param("s3", marks=pytest.mark.aws)])
def place(request: pytest.FixtureRequest, corpus: Corpus, work: Path) -> Iterator[Place]:
    if request.param == "localdir":
        stores = folder_stores(work / "root")
        arguments = ["localdir", str(work / "root")]
    else:
        deployments: dict[str, Deployment] = request.getfixturevalue("deployments")
        prefix = f"killed-{os.urandom(4).hex()}/"
        stores = deployments["refresh"].stores(prefix)
        arguments = ["s3", deployments["refresh"].bucket, prefix, deployments["refresh"].s3.endpoint]
    plant_snapshots(stores, corpus)
    temp = work / "killed"
    with Scene(stores, corpus.table, work).closing() as scene:
        yield Place(scene, temp, [str(corpus.table), str(temp), *arguments])


def ended(process: "subprocess.Popen[str]", tool: str, step: int) -> int:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{tool} {step}\n")
    process.stdin.flush()
    return int(process.stdout.readline())


def test_a_refresh_killed_at_any_step_leaves_readers_on_the_old_snapshot(place: Place, corpus: Corpus) -> None:
    store = place.scene.stores.snapshots
    right = corpus.right[corpus.newer]["count"]
    with place.worker() as process:
        step = 1
        while (how := ended(process, "refresh", step)) == KILLED:
            if store.current() == corpus.newer:
                place.scene.clock.now += 60_000_000
                assert plain(place.scene.app.call(asking("count", None), CALLER)) == right
            else:
                place.scene.app.verify()
            step += 1
        assert how == 0
    assert step > 10
    assert place.scene.app.refresh(force=True)["published"]
    place.scene.app.verify()


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_an_export_killed_at_any_step_leaves_no_half_file_that_can_be_fetched(place: Place, form: str) -> None:
    with place.worker() as process:
        step = 1
        while (how := ended(process, form, step)) == KILLED:
            assert all(whole(place.scene))
            # An export looks at the records of all others, so that each left here would be one step more.
            for name in [each for each in place.scene.stores.names() if each.startswith("exports/")]:
                place.scene.stores.plant(name, None)
            step += 1
        assert how == 0
    assert step > 2
    assert whole(place.scene) == [True]


def test_what_a_killed_process_left_in_the_temporary_folder_goes_with_the_next_one(place: Place) -> None:
    with place.worker() as process:
        assert [ended(process, "refresh", step) for step in (1, 2, 3)] == [KILLED] * 3
        assert ended(process, "refresh", 10_000) == 0
    scratch(place.temp)
    left = [path for path in place.temp.iterdir() if path.suffix != ".lock"]
    assert left == [scratch(place.temp)]


def whole(scene: Scene) -> list[bool]:
    """Of each export a caller can fetch, whether its file is what its record says."""
    records = [name for name in scene.stores.names() if name.startswith(EXPORT_RECORDS)]
    exports = [Export(**json.loads(scene.stores.fetch(name))) for name in records]
    return [
        sha256(scene.stores.fetch(export_name(export))).hexdigest() == export.sha256
        for export in exports
        if export.state == "done"
    ]

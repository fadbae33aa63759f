"""`kill -9` at every step of a refresh and of an export, over both stores: readers never see half of anything."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from engine.ports import Export
from engine.snapshot.scratch import scratch
from infra.layout import EXPORT_RECORDS, export_name
from tests.faults.bench import CALLER, Corpus, Deployment, Scene, asking, folder_stores, plant_snapshots
from tests.faults.kill_worker import KILLED

ROOT = Path(__file__).parents[2]


@dataclass
class Place:
    """A root with both snapshots, a process over it that is well, and one whose children are killed."""

    scene: Scene
    temp: Path
    process: "subprocess.Popen[str]"

    def ended(self, tool: str, step: int) -> int:
        """How a child ended that was to be killed before this step."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{tool} {step}\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())


@pytest.fixture(scope="module", params=["localdir", pytest.param("s3", marks=pytest.mark.aws)])
def place(request: pytest.FixtureRequest, corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    work = tmp_path_factory.mktemp("kills")
    if request.param == "localdir":
        stores = folder_stores(work / "root")
        arguments = ["localdir", str(work / "root")]
    else:
        deployments: dict[str, Deployment] = request.getfixturevalue("deployments")
        prefix = f"killed-{os.urandom(4).hex()}/"
        stores = deployments["refresh"].stores(prefix)
        arguments = ["s3", deployments["refresh"].bucket, prefix, deployments["refresh"].s3.endpoint]
    plant_snapshots(stores, corpus)
    temp, built = work / "killed", corpus.root / "snapshots" / corpus.newer
    command = [sys.executable, "-m", "tests.faults.kill_worker", str(corpus.table), str(temp), str(built), *arguments]
    with (
        Scene(stores, corpus.table, work).closing() as scene,
        subprocess.Popen(
            command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ}
        ) as process,
    ):
        yield Place(scene, temp, process)
        assert process.stdin is not None
        process.stdin.close()


def test_a_refresh_killed_at_any_step_of_publishing_leaves_readers_on_a_whole_snapshot(
    place: Place, corpus: Corpus
) -> None:
    store = place.scene.stores.snapshots
    held = store.current()
    step = 1
    while (how := place.ended("publish", step)) == KILLED:
        place.scene.clock.now += 60_000_000
        if store.current() == held:
            assert answer_now(place) == corpus.right[corpus.newer]["count"]["found"]
        else:
            place.scene.app.verify()
        step += 1
    assert how == 0
    assert step > 10
    assert place.scene.app.refresh(force=True)["published"]
    place.scene.app.verify()


def test_a_refresh_killed_while_it_builds_changes_nothing(place: Place, corpus: Corpus) -> None:
    store = place.scene.stores.snapshots
    before = (store.current(), place.scene.stores.names())
    # Its first step, the middle of it, and its last but one note of progress.
    assert [place.ended("refresh", step) for step in (1, 4, 7)] == [KILLED] * 3
    assert (store.current(), place.scene.stores.names()) == before
    assert answer_now(place) == corpus.right[corpus.newer]["count"]["found"]


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_an_export_killed_at_any_step_leaves_no_half_file_that_can_be_fetched(place: Place, form: str) -> None:
    step = 1
    while (how := place.ended(form, step)) == KILLED:
        assert all(whole(place.scene))
        forget_exports(place.scene)
        step += 1
    assert how == 0
    assert step > 2
    assert whole(place.scene) == [True]
    forget_exports(place.scene)


def test_what_a_killed_process_left_in_the_temporary_folder_goes_with_the_next_one(place: Place) -> None:
    assert [place.ended("publish", step) for step in (1, 2, 3)] == [KILLED] * 3
    assert place.ended("publish", 10_000) == 0
    scratch(place.temp)
    left = [path for path in place.temp.iterdir() if path.suffix != ".lock"]
    assert left == [scratch(place.temp)]


def answer_now(place: Place) -> dict[str, Any]:
    """What is found by a process that goes on."""
    found: dict[str, Any] = place.scene.app.call(asking("count", None), CALLER).object["found"]
    return found


def forget_exports(scene: Scene) -> None:
    """An export looks at the records of all others, so that each left here would be one step more."""
    for name in [each for each in scene.stores.names() if each.startswith("exports/")]:
        scene.stores.plant(name, None)


def whole(scene: Scene) -> list[bool]:
    """Of each export a caller can fetch, whether its file is what its record says."""
    records = [name for name in scene.stores.names() if name.startswith(EXPORT_RECORDS)]
    exports = [Export(**json.loads(scene.stores.fetch(name))) for name in records]
    return [
        sha256(scene.stores.fetch(export_name(export))).hexdigest() == export.sha256
        for export in exports
        if export.state == "done"
    ]

"""A process that refreshes or exports, and is killed at the step named: SIGKILL, as an out-of-memory kill is.

Called as `kill_worker.py TABLE TEMP BUILT ADAPTER ARGUMENT…`. For each line `TOOL STEP` it forks a child that does TOOL
and kills itself before its STEPth step: a note of progress, or a change of a folder or piece sent to a server. Prints
how the child ended: -9, or 0 when it got through. `refresh` does all of one; `publish` is one that finds its files
built, in the folder BUILT, since all steps of building are the same to readers.
"""

import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from engine import refresh
from engine.requests import Criteria, ExportRequest
from engine.snapshot.format import MANIFEST, Manifest
from engine.snapshot.write import Stamp
from infra.aws import AwsSettings
from infra.dynamodb import DynamoSeen
from infra.s3 import BucketSettings
from infra.s3_exports import S3Exports
from infra.s3_snapshots import S3Snapshots
from tests.faults.bench import CALLER, Scene, Stores, folder_stores, load_unchecked

__all__ = ["KILLED"]

KILLED = -signal.SIGKILL

_STEPS = {"os.link", "os.rename", "os.mkdir", "os.rmdir", "fcntl.flock", "http.client.send"}


class _Countdown:
    """Kills this process at a step."""

    def __init__(self, steps: int) -> None:
        self._left = steps

    def step(self) -> None:
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def hook(self, event: str, _: tuple[object, ...]) -> None:
        if event in _STEPS:
            self.step()


def _aws(bucket: str, prefix: str, endpoint: str) -> Stores:
    settings = BucketSettings(bucket, prefix, aws=AwsSettings(endpoint_url=endpoint))
    snapshots, exports = S3Snapshots(settings), S3Exports(settings, "https://hayfork.example")
    # Made before the fork, which takes time but no connection, so that each child need not.
    assert snapshots._bucket.client
    assert exports._bucket.client
    nothing: list[str] = []
    return Stores(
        snapshots, DynamoSeen("none"), exports, lambda: nothing, lambda _name, _data: None, lambda name: name.encode()
    )


def _find_built(built: Path) -> None:
    """Have this process find the files of a snapshot that are there already, under the new one's name."""
    manifest = Manifest.from_bytes((built / MANIFEST).read_bytes())

    def write(_: object, folder: Path, stamp: Stamp, _progress: object) -> tuple[Manifest, int]:
        shutil.copytree(built, folder, dirs_exist_ok=True)
        own = replace(manifest, snapshot_id=stamp.snapshot_id, created_at=stamp.created_at, sources=stamp.sources)
        (folder / MANIFEST).write_bytes(own.to_bytes())
        return own, 0

    def stage(*_: object) -> Iterator[int]:
        return iter(())

    vars(refresh).update(stage=stage, write=write)


def _do(scene: Scene, tool: str, built: Path, countdown: _Countdown) -> None:
    if tool == "publish":
        _find_built(built)
    if tool in {"publish", "refresh"}:
        scene.app.refresh(lambda _step, _done, _total: countdown.step(), force=True)
    else:
        scene.app.call(ExportRequest(Criteria(query="docker"), format=tool), CALLER)


def _ended(work: Callable[[_Countdown], None], steps: int) -> int:
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        countdown = _Countdown(steps)
        sys.addaudithook(countdown.hook)
        work(countdown)
        os._exit(0)
    finally:
        os._exit(1)


def _serve(table: Path, temp: Path, built: Path, adapter: str, *arguments: str) -> None:
    load_unchecked(pytest.MonkeyPatch())
    stores = folder_stores(Path(arguments[0])) if adapter == "localdir" else _aws(*arguments)
    scene = Scene(stores, table, temp)
    for line in sys.stdin:
        tool, steps = line.split()
        sys.stdout.write(f"{_ended(partial(_do, scene, tool, built), int(steps))}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _serve(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), *sys.argv[4:])

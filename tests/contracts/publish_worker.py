"""A process that publishes a snapshot and may be made to die at any step that others could see.

Called as `publish_worker.py FOLDER EXPECTED ADAPTER ARGUMENT…`. For each line `STEP SNAPSHOT` it publishes FOLDER
in a child that dies before its STEPth change of a folder or piece sent to a server, and prints how the child
ended: DEAD, or 0 when it got through.
"""

import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from engine.ports import SnapshotStore
from infra.aws import AwsSettings
from infra.localdir import LocalSnapshots
from infra.s3 import BucketSettings
from infra.s3_snapshots import S3Snapshots

__all__ = ["DEAD"]

DEAD = 9

_LOCAL_STEPS = {"open", "os.link", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "fcntl.flock"}
_REMOTE_STEPS = {"http.client.send"}


def _s3(bucket: str, prefix: str, endpoint: str) -> SnapshotStore:
    store = S3Snapshots(BucketSettings(bucket, prefix, aws=AwsSettings(endpoint_url=endpoint)))
    # Made before the fork, which takes time but no connection, so that each child need not.
    assert store._bucket.client
    return store


def _die_at(step: int, steps: set[str]) -> None:
    left = step

    def hook(event: str, _: tuple[object, ...]) -> None:
        nonlocal left
        if event in steps:
            left -= 1
            if left == 0:
                os._exit(DEAD)

    sys.addaudithook(hook)


def _exit_code(publish: Callable[[], None], step: int, steps: set[str]) -> int:
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        _die_at(step, steps)
        publish()
        os._exit(0)
    finally:
        os._exit(1)


def _serve(folder: Path, expected: str, adapter: str, *arguments: str) -> None:
    if adapter == "localdir":
        store: SnapshotStore = LocalSnapshots(Path(arguments[0]))
        steps = _LOCAL_STEPS
    else:
        store = _s3(*arguments)
        steps = _REMOTE_STEPS
    for line in sys.stdin:
        step, snapshot_id = line.split()
        ended = _exit_code(partial(store.publish, snapshot_id, folder, expected), int(step), steps)
        sys.stdout.write(f"{ended}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _serve(Path(sys.argv[1]), *sys.argv[2:])

"""A process that publishes a snapshot and may be made to die at any step that others could see.

Called as `publish_worker.py STEP SNAPSHOT FOLDER EXPECTED ADAPTER ARGUMENT…`: it exits with DEAD before its
STEPth change of a folder or request to a server, or with 0 when it gets through. An empty EXPECTED is none.
"""

import os
import sys
from pathlib import Path

from infra.localdir import LocalSnapshots

__all__ = ["DEAD"]

DEAD = 9

_STEPS = {
    "open",
    "os.link",
    "os.rename",
    "os.mkdir",
    "os.remove",
    "os.rmdir",
    "fcntl.flock",
    "http.client.send",
}
_ADAPTERS = {"localdir": lambda root: LocalSnapshots(Path(root))}


def _die_at(step: int) -> None:
    left = step

    def hook(event: str, _: tuple[object, ...]) -> None:
        nonlocal left
        if event in _STEPS:
            left -= 1
            if left == 0:
                os._exit(DEAD)

    sys.addaudithook(hook)


if __name__ == "__main__":
    step, snapshot_id, folder, expected, adapter, *arguments = sys.argv[1:]
    store = _ADAPTERS[adapter](*arguments)
    _die_at(int(step))
    store.publish(snapshot_id, Path(folder), expected or None)

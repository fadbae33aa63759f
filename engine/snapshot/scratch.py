"""Temporary folders that belong to one process, and are swept by another when that one was killed.

Decides who may use a folder: its owner holds a lock on a file beside it, which the system lets go however the process
ends. Two DuckDB instances that spill into one folder overwrite each other's pages and crash, so nothing temporary is
ever shared. Must never know what is kept.
"""

import atexit
import fcntl
import os
import shutil
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

__all__ = ["scratch"]

_PREFIX = "hayfork-"
_LOCK = ".lock"

_own: dict[tuple[int, Path], Path] = {}
_one_at_a_time = threading.Lock()


def scratch(parent: Path | None = None) -> Path:
    """This process's own folder below `parent` (`None`: the system's temporary folder), made on first use.

    It goes when the process ends. What processes that were killed left below `parent` is removed on the way.

    Raises:
        OSError: nothing can be written there.
    """
    base = (parent or Path(tempfile.gettempdir())).absolute()
    key = (os.getpid(), base)
    with _one_at_a_time:
        found = _own.get(key)
        if found is None or not found.is_dir():
            base.mkdir(parents=True, exist_ok=True)
            _sweep(base)
            found = _own[key] = _made(base)
        return found


def _made(base: Path) -> Path:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base))
        # Held open until the process ends: closing it would give the folder up.
        lock = os.open(_lock_of(folder), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        if folder.is_dir() and _lock_of(folder).exists():
            atexit.register(_end, folder, os.getpid())
            return folder
        os.close(lock)  # a sweep came between folder and lock


def _end(folder: Path, pid: int) -> None:
    # A forked child runs its parent's exit functions, and must not take the parent's folder away.
    if os.getpid() == pid:
        _remove(folder)


def _sweep(base: Path) -> None:
    for folder in base.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if not folder.is_dir():
                continue
            lock = os.open(_lock_of(folder), os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(folder)
            finally:
                os.close(lock)


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    _lock_of(folder).unlink(missing_ok=True)


def _lock_of(folder: Path) -> Path:
    return folder.with_name(folder.name + _LOCK)

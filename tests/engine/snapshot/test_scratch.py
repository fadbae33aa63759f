"""Temporary folders: whose they are, and when they go."""

import fcntl
import os
import shutil
from pathlib import Path

import pytest

from engine.snapshot import scratch as module
from engine.snapshot.scratch import scratch


def test_a_folder_goes_with_its_process_and_not_with_a_child_of_it(tmp_path: Path) -> None:
    folder = scratch(tmp_path)
    module._end(folder, os.getpid() + 1)
    assert folder.is_dir()
    module._end(folder, os.getpid())
    assert list(tmp_path.iterdir()) == []
    assert scratch(tmp_path) != folder


def test_what_is_no_folder_is_left_alone(tmp_path: Path) -> None:
    stray = tmp_path / "hayfork-stray"
    stray.write_text("x")
    scratch(tmp_path)
    assert stray.read_text() == "x"


def test_the_folder_of_a_process_that_was_killed_is_swept(tmp_path: Path) -> None:
    dead = tmp_path / "hayfork-dead"
    dead.mkdir()
    (dead / "spilt").write_text("x")
    module._lock_of(dead).touch()
    scratch(tmp_path)
    assert not dead.exists()
    assert not module._lock_of(dead).exists()


def test_a_folder_that_a_sweep_took_before_it_was_locked_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = fcntl.flock
    swept: list[Path] = []

    def sweep_first(handle: int, how: int) -> None:
        if not swept:
            swept.extend(path for path in tmp_path.iterdir() if path.is_dir())
            shutil.rmtree(swept[0])
        lock(handle, how)

    monkeypatch.setattr("engine.snapshot.scratch.fcntl.flock", sweep_first)
    folder = scratch(tmp_path)
    assert folder.is_dir()
    assert swept != [folder]

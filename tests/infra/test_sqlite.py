"""What is particular to SQLite: what lies on disk, forks, broken files, sweeping."""

import os
import sqlite3
from pathlib import Path

import pytest

from engine.errors import Unavailable
from engine.ports import Batch
from infra.sqlite import SqliteSeen

HANDLE = "h4Jx0qk2TzW9bN7cVfY1Lg"
FAR = 2**52


def a_batch(number: int) -> Batch:
    return Batch(number, number - 1, "me", "d", 1, 1, b"12345678")


def test_handle_of_a_session_is_nowhere_on_disk(tmp_path: Path) -> None:
    store = SqliteSeen(tmp_path / "seen.sqlite")
    assert store.claim(HANDLE, a_batch(1), FAR)
    files = list(tmp_path.iterdir())
    assert files
    assert not [p for p in files if HANDLE.encode() in p.read_bytes()]
    store.close()


def test_file_is_only_its_owner_s(tmp_path: Path) -> None:
    store = SqliteSeen(tmp_path / "seen.sqlite")
    assert store.claim(HANDLE, a_batch(1), FAR)
    assert {p.stat().st_mode & 0o777 for p in tmp_path.iterdir()} == {0o600}
    store.close()


def test_new_session_sweeps_what_has_expired(tmp_path: Path) -> None:
    path = tmp_path / "seen.sqlite"
    store = SqliteSeen(path, clock=lambda: 100)
    for number in (1, 2):
        assert store.claim("old", a_batch(number), 100)
    assert store.claim("young", a_batch(1), 101)
    store.close()
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT count(*), min(expires_at) FROM batches").fetchall() == [(1, 101)]
    connection.close()


@pytest.mark.parametrize("content", [b"this is no database" * 100, b"SQLite format 3\x00" + b"\xff" * 5_000])
def test_broken_file_is_a_clear_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "seen.sqlite"
    path.write_bytes(content)
    store = SqliteSeen(path)
    for _ in range(2):
        with pytest.raises(Unavailable) as caught:
            store.batches(HANDLE)
        assert caught.value.code == "store_unreachable"
        with pytest.raises(Unavailable):
            store.claim(HANDLE, a_batch(1), FAR)
    assert path.read_bytes() == content


def test_folder_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(Unavailable):
        SqliteSeen(tmp_path / "file" / "seen.sqlite").batches(HANDLE)


def test_another_s_long_transaction_is_a_clear_error_after_the_wait(tmp_path: Path) -> None:
    path = tmp_path / "seen.sqlite"
    store = SqliteSeen(path, busy_seconds=0.05)
    assert store.claim(HANDLE, a_batch(1), FAR)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Unavailable):
        store.claim(HANDLE, a_batch(2), FAR)
    assert store.batches(HANDLE) == [a_batch(1)]
    other.close()
    assert store.claim(HANDLE, a_batch(2), FAR)
    store.close()


def test_new_file_that_another_holds_is_waited_for_and_then_a_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "seen.sqlite"
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("CREATE TABLE theirs (x)")
    other.execute("BEGIN EXCLUSIVE")
    store = SqliteSeen(path, busy_seconds=0.05)
    with pytest.raises(Unavailable) as caught:
        store.claim(HANDLE, a_batch(1), FAR)
    assert caught.value.detail == "OperationalError"
    other.close()
    assert store.claim(HANDLE, a_batch(1), FAR)
    store.close()


def test_forked_child_opens_its_own_connection(tmp_path: Path) -> None:
    store = SqliteSeen(tmp_path / "seen.sqlite")
    assert store.claim(HANDLE, a_batch(1), FAR)
    child = os.fork()
    if child == 0:
        os._exit(0 if store.claim(HANDLE, a_batch(2), FAR) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert store.batches(HANDLE) == [a_batch(1), a_batch(2)]
    store.close()


def test_closed_store_opens_again(tmp_path: Path) -> None:
    store = SqliteSeen(tmp_path / "seen.sqlite")
    assert store.claim(HANDLE, a_batch(1), FAR)
    store.close()
    store.close()
    assert store.batches(HANDLE) == [a_batch(1)]
    store.close()

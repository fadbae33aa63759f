"""The guard of the tests' traffic: what it lets through, what it refuses, and where it holds."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.loopback.sitecustomize import ATTEMPTS, MAY_DOWNLOAD, TOLD_IN, is_here

ELSEWHERE = "192.0.2.1"
"""An address that documents use and nothing has."""


@pytest.mark.parametrize("host", [None, "", "localhost", b"localhost", "127.0.0.1", "127.8.9.1", "::1", "a.localhost"])
def test_this_machine_is_let_through(host: str | bytes | None) -> None:
    assert is_here(host)


@pytest.mark.parametrize("host", ["example.com", ELSEWHERE, "10.0.0.1", "169.254.169.254", "localhost.example.com"])
def test_everything_else_is_not(host: str) -> None:
    assert not is_here(host)


def test_a_test_that_reaches_beyond_this_machine_is_refused() -> None:
    with pytest.raises(PermissionError), socket.socket() as made:
        made.connect((ELSEWHERE, 80))
    with pytest.raises(PermissionError):
        socket.getaddrinfo("example.com", 80)
    assert ATTEMPTS == [ELSEWHERE, "example.com"]
    ATTEMPTS.clear()
    Path(os.environ[TOLD_IN]).write_text("", "utf-8")


def test_a_process_that_a_test_starts_is_refused_and_tells(tmp_path: Path) -> None:
    told_in = tmp_path / "told"
    program = f"import socket; socket.socket().connect(('{ELSEWHERE}', 80))"

    env = {**os.environ, TOLD_IN: str(told_in)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert f"a test reaches beyond this machine: socket.connect {ELSEWHERE}" in done.stderr
    assert told_in.read_text("utf-8") == f"['-c'] socket.connect {ELSEWHERE}\n"
    assert MAY_DOWNLOAD not in os.environ

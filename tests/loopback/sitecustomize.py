"""Refuses traffic beyond this machine in every Python process of the tests that finds this folder on its path.

Python imports a module of this name when it starts; tests/conftest.py puts the folder on the path. Decides what is
this machine, and that an attempt is both refused and noted, since a library may take the refusal for a bad moment.
What is not Python's own socket (DuckDB's reader, SeaweedFS) is out of its reach. It imports next to nothing: every
start pays for it. Must never know a test.
"""

import os
import sys

__all__ = ["ATTEMPTS", "MAY_DOWNLOAD", "TOLD_IN", "guard", "is_here"]

TOLD_IN = "TESTS_TRAFFIC_TOLD_IN"
"""Variable with the name of the file that an attempt is noted in."""

MAY_DOWNLOAD = "TESTS_MAY_DOWNLOAD"
"""Variable that lets a process through: the build's pip fetches packages."""

ATTEMPTS: list[str] = sys.__dict__.setdefault("_hayfork_attempts", [])
"""Hosts beyond this machine that this process has tried to reach: one list for all copies of this module."""

_HERE = frozenset({"", "localhost", "::", "::1", "0.0.0.0"})  # noqa: S104 - where one connects to, not listens
_ADDRESSED = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})
_LOOKED_UP = frozenset({"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"})


def is_here(host: object) -> bool:
    """Whether a host, as calls of `socket` take it, is this machine by loopback."""
    name = host.decode("ascii", "replace") if isinstance(host, bytes) else str(host or "")
    return name in _HERE or name.startswith(("127.", "::ffff:127.")) or name.endswith(".localhost")


def _refuse(event: str, args: tuple[object, ...]) -> None:
    host: object
    if event in _ADDRESSED:
        # Of a socket of this machine alone the address is a path.
        host = args[1][0] if isinstance(args[1], tuple) and len(args[1]) >= 2 else ""
    elif event in _LOOKED_UP:
        host = args[0]
    else:
        return
    if is_here(host) or os.environ.get(MAY_DOWNLOAD):
        return
    ATTEMPTS.append(str(host))
    if told_in := os.environ.get(TOLD_IN):
        with open(told_in, "a", encoding="utf-8") as file:  # noqa: PTH123 - nothing is imported at every start for this
            file.write(f"{sys.argv[:1]} {event} {host}\n")
    raise PermissionError(f"a test reaches beyond this machine: {event} {host}")


def guard() -> None:
    """Refuse from now on, once a process."""
    if not getattr(sys, "_hayfork_guarded", False):
        sys._hayfork_guarded = True  # type: ignore[attr-defined]  # one mark for all copies of this module
        sys.addaudithook(_refuse)


if __name__ == "sitecustomize":
    guard()

"""The standard-stream edge: one client, one process, every era of the protocol.

Decides that nothing but protocol messages reaches standard output. Must never know a tool.
"""

import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from typing import Any, BinaryIO

import anyio
from mcp.server.stdio import stdio_server

from engine.sight import Caller
from handler.app import App
from handler.mcp_server import LOCAL_CALLER, build_server
from handler.metering.prices import FREE, Prices
from handler.wire import mend_surrogates

__all__ = ["serve_stdio"]


def serve_stdio(app: App, *, caller: Caller = LOCAL_CALLER, threads: int = 8, prices: Prices = FREE) -> None:
    """Serve the process's standard streams until the client closes its end.

    Meanwhile standard input is empty and standard output goes to standard error for everything else in the
    process, so that a stray print does not break a message.
    """
    with _claimed_streams() as (wire_in, wire_out):
        anyio.run(_serve, app, caller, threads, prices, wire_in, wire_out)


async def _serve(app: App, caller: Caller, threads: int, prices: Prices, wire_in: BinaryIO, wire_out: BinaryIO) -> None:
    server = build_server(app, caller_of=lambda _: caller, threads=threads, prices=prices)
    stdin: Any = _MendedLines(wire_in)
    stdout = anyio.wrap_file(TextIOWrapper(wire_out, encoding="utf-8", newline="\n"))
    async with stdio_server(stdin, stdout) as (received, sent):
        await server.run(received, sent, server.create_initialization_options())


class _MendedLines:
    """Lines of a binary stream as text, with halves of surrogate pairs marked.

    The library drops a line it cannot parse and its sender would wait for ever.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = anyio.wrap_file(stream)

    async def __aiter__(self) -> AsyncIterator[str]:
        async for line in self._stream:
            yield mend_surrogates(line).decode("utf-8", "replace")


@contextmanager
def _claimed_streams() -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Private copies of the standard streams, while the public ones lead nowhere and to standard error."""
    sys.stdout.flush()
    private_in, private_out = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    try:
        with (
            # A reading thread may outlive the loop: its descriptor must not be given to another file.
            os.fdopen(private_in, "rb", closefd=False) as wire_in,
            os.fdopen(private_out, "wb", closefd=False) as wire_out,
        ):
            yield wire_in, wire_out
    finally:
        sys.stdout.flush()
        os.dup2(private_in, 0)
        os.dup2(private_out, 1)

"""A proxy of the tests between our adapters and a real server: it passes HTTP on, and breaks what it is told to.

It knows requests by method and path only, hands on bytes as they came, so that signatures hold, and keeps a count of
what it saw. Loopback only. Faults may be set and lifted while connections are open.
"""

import asyncio
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

__all__ = ["Fault", "Kind", "Proxy", "Seen", "proxy_to"]

Kind = Literal["answer", "cut", "cut after", "hang", "hang after", "late", "trickle", "truncate"]
"""What happens to a request that a fault matches.

`answer`: it gets `status` and `body`, the server nothing. `cut`: the connection is reset before, `cut after`: once
the server has done it. `hang`, `hang after`: likewise, but nothing comes and nothing closes. `late`: the answer's
first byte comes `seconds` later. `trickle`: its body comes byte by byte, `seconds` apart. `truncate`: half of the
answer's body comes, then the connection ends.
"""


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known of a request. `target` is the action of a DynamoDB request, else the path with its query."""

    method: str
    target: str
    head: bytes

    @property
    def key(self) -> str:
        """The access key that signed it, empty without a signature."""
        return self.head.partition(b"Credential=")[2].partition(b"/")[0].decode()


@dataclass(slots=True)
class Fault:
    """One kind of fault for the requests it `matches`, after the first `skip`, `times` over (`None`: until lifted)."""

    kind: Kind
    matches: Callable[[Seen], bool] = lambda _: True
    times: int | None = None
    skip: int = 0
    status: int = 503
    body: bytes = b""
    content_type: str = "application/xml"
    seconds: float = 0.0
    hit: int = field(default=0, init=False)

    def takes(self, seen: Seen) -> bool:
        """Whether this request is to fail now."""
        if not self.matches(seen):
            return False
        self.hit += 1
        number = self.hit - self.skip
        return number > 0 and (self.times is None or number <= self.times)


@dataclass
class Proxy:
    """Where it listens, the faults in force, and the requests it has seen with what became of each."""

    endpoint: str
    log: list[tuple[Seen, str]] = field(default_factory=list)
    _faults: list[Fault] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _close_all: Callable[[], None] = lambda: None

    @contextmanager
    def failing(self, *faults: Fault) -> Iterator[None]:
        """These faults, and no others, until the block ends; what hangs then is cut."""
        self.set(*faults)
        try:
            yield
        finally:
            self.set()

    def set(self, *faults: Fault) -> None:
        """From now on these faults; connections that stood open are closed, as of a server that comes back."""
        with self._lock:
            self._faults[:] = faults
        self._close_all()

    def judge(self, seen: Seen) -> Fault | None:
        """The fault that takes this request, if any; called once for each request."""
        with self._lock:
            fault = next((each for each in self._faults if each.takes(seen)), None)
            self.log.append((seen, fault.kind if fault else "passed"))
            return fault


@contextmanager
def proxy_to(server: str) -> Iterator[Proxy]:
    """A proxy in front of `server`, an endpoint `http://host:port`, until the block ends."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="proxy", daemon=True)
    thread.start()
    upstream = urlsplit(server)
    proxy = Proxy("")
    relay = _Relay(proxy, str(upstream.hostname), int(upstream.port or 80))
    listening = asyncio.run_coroutine_threadsafe(asyncio.start_server(relay.serve, "127.0.0.1", 0), loop).result()
    proxy.endpoint = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    proxy._close_all = lambda: asyncio.run_coroutine_threadsafe(relay.close_all(), loop).result()
    try:
        yield proxy
    finally:
        asyncio.run_coroutine_threadsafe(_stop(listening, relay), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _stop(listening: asyncio.Server, relay: "_Relay") -> None:
    listening.close()
    await relay.close_all()


class _Closed(Exception):
    """The other side is gone, or a fault ended the connection."""


class _Relay:
    """Serves connections, each with one of its own to the server."""

    def __init__(self, proxy: Proxy, host: str, port: int) -> None:
        self._proxy = proxy
        self._host = host
        self._port = port
        self._tasks: set[asyncio.Task[None]] = set()

    async def close_all(self) -> None:
        """End every connection; their clients see them closed."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        server: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        try:
            while True:
                head, body = await _request(reader, writer)
                fault = self._proxy.judge(_seen(head))
                if fault is not None and not fault.kind.endswith("after"):
                    await _before(fault, writer)
                    if fault.kind == "answer":
                        continue
                if server is None:
                    server = await asyncio.open_connection(self._host, self._port)
                answer, content = await _exchange(server, head, body)
                if fault is not None and fault.kind == "trickle":
                    await _trickle(writer, answer, content, fault.seconds)
                    continue
                if fault is not None:
                    content = await _after(fault, writer, content)
                writer.write(answer + content)
                await writer.drain()
                if fault is not None and fault.kind == "truncate":
                    return
        except (_Closed, OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            for each in (writer, *([server[1]] if server else [])):
                each.close()


async def _before(fault: Fault, writer: asyncio.StreamWriter) -> None:
    if fault.kind == "answer":
        head = (
            f"HTTP/1.1 {fault.status} Fault\r\nContent-Type: {fault.content_type}\r\n"
            f"Content-Length: {len(fault.body)}\r\nx-amzn-RequestId: fault\r\n\r\n"
        )
        writer.write(head.encode() + fault.body)
        await writer.drain()
    elif fault.kind == "cut":
        _reset(writer)
        raise _Closed
    elif fault.kind == "hang":
        await asyncio.Event().wait()


async def _after(fault: Fault, writer: asyncio.StreamWriter, content: bytes) -> bytes:
    if fault.kind == "cut after":
        _reset(writer)
        raise _Closed
    if fault.kind == "hang after":
        await asyncio.Event().wait()
    if fault.kind == "late":
        await asyncio.sleep(fault.seconds)
    return content[: len(content) // 2] if fault.kind == "truncate" else content


async def _trickle(writer: asyncio.StreamWriter, answer: bytes, content: bytes, seconds: float) -> None:
    writer.write(answer)
    for byte in content:
        writer.write(bytes((byte,)))
        await writer.drain()
        await asyncio.sleep(seconds)


def _reset(writer: asyncio.StreamWriter) -> None:
    sock = writer.get_extra_info("socket")
    with suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def _request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> tuple[bytes, bytes]:
    """A whole request: its head and its body as they came."""
    head = await reader.readuntil(b"\r\n\r\n")
    if _header(head, b"expect"):
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        await writer.drain()
    return head, await _body(reader, head)


async def _exchange(
    server: tuple[asyncio.StreamReader, asyncio.StreamWriter], head: bytes, body: bytes
) -> tuple[bytes, bytes]:
    reader, writer = server
    writer.write(head + body)
    await writer.drain()
    answer = await reader.readuntil(b"\r\n\r\n")
    while answer.split(b" ", 2)[1].startswith(b"1"):
        answer = await reader.readuntil(b"\r\n\r\n")
    if head.startswith(b"HEAD ") or answer.split(b" ", 2)[1] in {b"204", b"304"}:
        return answer, b""
    return answer, await _body(reader, answer)


async def _body(reader: asyncio.StreamReader, head: bytes) -> bytes:
    if _header(head, b"transfer-encoding").lower() == b"chunked":
        out = b""
        while True:
            line = await reader.readuntil(b"\r\n")
            size = int(line.split(b";")[0], 16)
            out += line + await reader.readexactly(size + 2)
            if not size:
                return out
    return await reader.readexactly(int(_header(head, b"content-length") or 0))


def _header(head: bytes, name: bytes) -> bytes:
    for line in head.split(b"\r\n")[1:]:
        key, _, value = line.partition(b":")
        if key.strip().lower() == name:
            return value.strip()
    return b""


def _seen(head: bytes) -> Seen:
    method, path, _ = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ", 2)
    action = _header(head, b"x-amz-target").decode().rpartition(".")[2]
    return Seen(method, action or path, head)

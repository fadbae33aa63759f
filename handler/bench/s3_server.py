"""A local S3 server for the benchmark, and a proxy before it that counts what passes.

SeaweedFS comes with the development packages. Both listen on loopback only, on ports that were free. The proxy hands
requests on unchanged, with their signatures, and never looks into them. Must never know who asks.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from engine.errors import Unavailable

__all__ = ["KEY", "SECRET", "Counted", "CountingProxy", "counting_proxy", "seaweedfs"]

KEY, SECRET = "AKIDLOCALBENCH", "a-secret-for-a-local-bench"

_START_SECONDS = 60
_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length"})


@contextmanager
def seaweedfs(folder: Path) -> Iterator[str]:
    """SeaweedFS with its data in `folder`, until the block ends; gives its S3 endpoint.

    Raises:
        Unavailable: `bench_failed` when its program is not installed or does not start.
    """
    beside = Path(sys.executable).with_name("weed")
    program = str(beside) if beside.is_file() else shutil.which("weed")
    if program is None:
        raise Unavailable(
            "bench_failed",
            "measuring over S3 needs SeaweedFS, whose program weed is not installed",
            next_step="run make setup, or leave --s3 out",
        )
    parts = ("s3", "master", "volume", "filer", "admin")
    ports = _free_ports(2 * len(parts))
    (folder / "data").mkdir(parents=True)
    identity = {
        "name": "bench",
        "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
        "actions": ["Admin", "Read", "Write", "List"],
    }
    config = folder / "s3.json"
    config.write_text(json.dumps({"identities": [identity]}), "utf-8")
    command = [program, "mini", f"-dir={folder / 'data'}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"]
    command += [f"-s3.config={config}", f"-s3.localSocket={folder / 's3.sock'}", "-s3.iam=false"]
    command += [f"-filer.localSocket={folder / 'filer.sock'}", "-master.telemetry=false", "-webdav=false"]
    command += ["-admin.ui=false", "-s3.port.iceberg=0", "-s3.port.lance=0"]
    for part, port, grpc_port in zip(parts, ports[::2], ports[1::2], strict=True):
        command += [f"-{part}.port={port}", f"-{part}.port.grpc={grpc_port}"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "TMPDIR": str(folder)}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(  # noqa: S603 - a program of the development packages, no words of a caller
            command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=folder, env=environment
        )
    try:
        _wait_for(process, ports[0])
        yield f"http://127.0.0.1:{ports[0]}"
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(5)
        process.kill()
        process.wait()


def _wait_for(process: subprocess.Popen[bytes], port: int) -> None:
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        with suppress(OSError, HTTPException), closing(HTTPConnection("127.0.0.1", port, timeout=2)) as connection:
            connection.request("GET", "/healthz")
            if connection.getresponse().status < 500:
                return
        time.sleep(0.1)
    raise Unavailable("bench_failed", "SeaweedFS did not start")


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


@dataclass(frozen=True, slots=True)
class Counted:
    """Requests that passed, and bytes of the bodies that came back."""

    requests: int
    bytes: int

    def __sub__(self, earlier: "Counted") -> "Counted":
        return Counted(self.requests - earlier.requests, self.bytes - earlier.bytes)


class CountingProxy:
    """What a proxy has counted; `endpoint` is where it listens."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._lock = threading.Lock()
        self._counted = Counted(0, 0)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def counted(self) -> Counted:
        """All until now."""
        with self._lock:
            return self._counted

    def serve(self) -> None:
        """Until `stop`."""
        self._server.serve_forever(poll_interval=0.1)

    def stop(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()

    def _passed(self, size: int) -> None:
        with self._lock:
            self._counted = Counted(self._counted.requests + 1, self._counted.bytes + size)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        target, passed = self._target.removeprefix("http://"), self._passed

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                super().setup()
                self._onward = HTTPConnection(target, timeout=30)

            def finish(self) -> None:
                self._onward.close()
                super().finish()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's signature
                pass

            def _pass_on(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                # The signature covers the host the client named, so it must arrive as it was sent.
                self._onward.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
                for name, value in self.headers.items():
                    self._onward.putheader(name, value)
                self._onward.endheaders(body)
                answer = self._onward.getresponse()
                content = answer.read()
                self.send_response_only(answer.status, answer.reason)
                for name, value in answer.getheaders():
                    if name.lower() not in _HOP:
                        self.send_header(name, value)
                # The answer to HEAD tells a length and has no body.
                told = answer.getheader("Content-Length") if self.command == "HEAD" else None
                self.send_header("Content-Length", told or str(len(content)))
                # Counted before the client can know: it may ask for the count as soon as it has read.
                passed(len(content))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _pass_on  # noqa: N815 - the library's names

        return Handler


@contextmanager
def counting_proxy(target: str) -> Iterator[CountingProxy]:
    """A proxy before `target`, until the block ends."""
    proxy = CountingProxy(target)
    thread = threading.Thread(target=proxy.serve, name="proxy", daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.stop()
        thread.join()

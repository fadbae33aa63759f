"""The built artifact run as Lambda runs it: by the real runtime client, in its own Python, against a Runtime API.

The server here is the part of Lambda that the client talks to: it hands out one event after another and takes the
answers. No development package is on the process's path, and of this process's environment nothing is passed on.
"""

import json
import os
import queue
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from uuid import uuid4

from infra.deploy.build_artifact import PYTHON_VERSION, find_python
from tests.loopback.sitecustomize import TOLD_IN

_GUARD = Path(__file__).parents[1] / "loopback" / "sitecustomize.py"
"""What keeps a container's traffic on this machine; `-S` looks for no module of that name."""

__all__ = ["Function", "FunctionError", "RestoreGate", "lambda_function", "runtime_python"]

ROOT = Path(__file__).resolve().parents[2]
RUNTIME = ROOT / "build" / "runtime"

TRACE = "Root=1-00000000-000000000000000000000000;Parent=0000000000000001;Sampled=1"
"""What Lambda says of the trace an event belongs to."""

_PREFIX = "/2018-06-01/runtime"
_START_SECONDS = 60.0


class FunctionError(Exception):
    """The handler raised, or the container died; holds what Lambda would give its caller."""


def runtime_python() -> str:
    """A Python of the runtime's version.

    Raises:
        FileNotFoundError: there is none, or `make aws-tools` was not run.
    """
    python = find_python()
    if python is None:
        raise FileNotFoundError(f"python{PYTHON_VERSION} is needed: install it, or put it on PATH")
    if not RUNTIME.is_dir():
        raise FileNotFoundError("the runtime client is not installed: run make aws-tools")
    return python


class RestoreGate:
    """Where a snapshot would be taken: initialisation is over, the restore hooks have not run."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.open = threading.Event()


class Function:
    """One container of a function. Events are answered one at a time, as in Lambda."""

    def __init__(self, timeout_seconds: float, gate: RestoreGate | None) -> None:
        self.timeout_seconds = timeout_seconds
        self.gate = gate
        self.events: queue.Queue[tuple[str, bytes, float]] = queue.Queue()
        self.answers: queue.Queue[tuple[bool, bytes]] = queue.Queue()
        self.process: subprocess.Popen[bytes] | None = None
        self.log = Path()
        self.address = ""
        self._lock = threading.Lock()

    def invoke(self, event: Any, timeout_seconds: float | None = None, request_id: str = "") -> Any:
        """The handler's answer to an event; Lambda tries one again under the `request_id` it had.

        Raises:
            FunctionError: it raised, did not start, or did not answer in time.
        """
        seconds = self.timeout_seconds if timeout_seconds is None else timeout_seconds
        with self._lock:
            self.events.put((request_id or str(uuid4()), json.dumps(event).encode(), seconds))
            deadline = time.monotonic() + seconds + _START_SECONDS
            while True:
                with suppress(queue.Empty):
                    ok, body = self.answers.get(timeout=0.2)
                    break
                died = self.process is not None and self.process.poll() is not None
                if (died and self.answers.empty()) or time.monotonic() > deadline:
                    code = self.process.poll() if self.process is not None else None
                    raise FunctionError(f"no answer (exit code {code}); the log ends in: {self.output()[-3_000:]}")
        answer = json.loads(body or b"null")
        if not ok:
            raise FunctionError(json.dumps(answer)[:3_000])
        return answer

    def output(self) -> str:
        """Everything the process wrote."""
        return self.log.read_text("utf-8", "replace")


def _server(function: Function) -> ThreadingHTTPServer:
    class RuntimeApi(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Without these two every answer waits 40 ms for the other side's acknowledgement, twice a call.
        wbufsize = -1
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            if self.path == f"{_PREFIX}/restore/next":
                if function.gate is not None:
                    function.gate.reached.set()
                    function.gate.open.wait()
                self._send(200, b"")
                return
            request_id, body, seconds = function.events.get()
            headers = {
                "Content-Type": "application/json",
                "Lambda-Runtime-Aws-Request-Id": request_id,
                "Lambda-Runtime-Deadline-Ms": str(int((time.time() + seconds) * 1_000)),
                "Lambda-Runtime-Invoked-Function-Arn": "arn:aws:lambda:us-east-1:000000000000:function:test:live",
                "Lambda-Runtime-Trace-Id": TRACE,
            }
            self._send(200, body, headers)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            if "chunked" in self.headers.get("Transfer-Encoding", ""):
                raise AssertionError("an answer in chunks is not expected")
            function.answers.put((self.path.endswith("/response"), body))
            self._send(202, b'{"status":"OK"}')

        def _send(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing: the function's own log is what counts."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """Nothing: a container is killed in the middle of a request for its next event."""

    server = Server(("127.0.0.1", 0), RuntimeApi)
    server.daemon_threads = True
    return server


@contextmanager
def lambda_function(
    artifact: Path,
    handler: str,
    environment: Mapping[str, str],
    *,
    memory_mb: int = 1_769,
    timeout_seconds: float = 29.0,
    gate: RestoreGate | None = None,
    preload: str = "",
) -> Iterator[Function]:
    """A container that runs `handler` of `artifact`, until the block ends.

    With a `gate` it is one of a function with SnapStart. `preload` is Python that runs before the runtime does.
    """
    function = Function(timeout_seconds, gate)
    server = _server(function)
    function.address = f"127.0.0.1:{server.server_port}"
    serving = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    serving.start()
    with tempfile.TemporaryDirectory(prefix="hayfork-lambda-") as folder:
        own = {
            "PATH": os.defpath,
            "LANG": "en_US.UTF-8",
            "TZ": ":UTC",
            "PYTHONPATH": f"{artifact}{os.pathsep}{RUNTIME}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "AWS_LAMBDA_RUNTIME_API": function.address,
            "AWS_LAMBDA_INITIALIZATION_TYPE": "snap-start" if gate is not None else "on-demand",
            "AWS_LAMBDA_FUNCTION_NAME": "test",
            "AWS_LAMBDA_FUNCTION_VERSION": "1",
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(memory_mb),
            "AWS_LAMBDA_LOG_GROUP_NAME": "test",
            "AWS_LAMBDA_LOG_STREAM_NAME": "test",
            "AWS_LAMBDA_LOG_FORMAT": "JSON",
            "AWS_LAMBDA_LOG_LEVEL": "INFO",
            "AWS_EXECUTION_ENV": f"AWS_Lambda_python{PYTHON_VERSION}",
            "LAMBDA_TASK_ROOT": str(artifact),
            "HAYFORK_DUCKDB_TEMP_FOLDER": f"{folder}/duckdb",
            "TMPDIR": folder,
            TOLD_IN: os.environ.get(TOLD_IN, os.devnull),
            **environment,
        }
        guard = f"exec(open({str(_GUARD)!r}).read(), {{'__name__': 'sitecustomize'}})"
        run = f"import sys\nfrom awslambdaric.__main__ import main\nmain(['awslambdaric', {handler!r}])"
        start = f"{guard}\n{preload}\n{run}"
        function.log = Path(folder) / "log"
        with function.log.open("wb") as log:
            # -S: no site-packages of this machine; -P: nor the working folder.
            function.process = subprocess.Popen(
                [runtime_python(), "-S", "-P", "-c", start],
                env=own,
                cwd=artifact,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            yield function
        finally:
            function.process.kill()
            function.process.wait()
            if gate is not None:
                gate.open.set()
            server.shutdown()
            server.server_close()
            serving.join()

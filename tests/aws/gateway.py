"""An HTTP server that passes requests to a function as an HTTP API or a Function URL does.

The events have the shape of those in tests/fixtures/events, which are also those for `sam local invoke`.
"""

import base64
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import urlopen

from infra.deploy.build_artifact import ROOT
from tests.aws.runtime_api import Function

__all__ = ["Kind", "event_of", "fetched", "gateway"]

Kind = Literal["http-api", "function-url"]

EVENTS = ROOT / "tests" / "fixtures" / "events"


def event_of(
    kind: Kind,
    method: str = "POST",
    path: str = "/mcp",
    headers: dict[str, str] | None = None,
    body: bytes | None = None,
) -> dict[str, Any]:
    """The event of a request; what is not given is as in the fixture."""
    event: dict[str, Any] = json.loads((EVENTS / f"{kind}.json").read_text("utf-8"))
    split = urlsplit(path)
    event["rawPath"], event["rawQueryString"] = split.path, split.query
    event["requestContext"]["http"] |= {"method": method, "path": split.path}
    event["headers"] |= {name.lower(): value for name, value in (headers or {}).items()}
    event["headers"]["host"] = event["requestContext"]["domainName"]
    if split.path.startswith("/exports/"):
        if kind == "http-api":
            event["routeKey"] = event["requestContext"]["routeKey"] = "GET /exports/{id}"
            event["pathParameters"] = {"id": split.path.removeprefix("/exports/")}
        del event["requestContext"]["authorizer"]
    if body is not None:
        event["body"], event["isBase64Encoded"] = base64.b64encode(body).decode(), True
    if method in {"GET", "HEAD"}:
        del event["body"]
        event["isBase64Encoded"] = False
    return event


def fetched(url: str) -> tuple[int, bytes, Mapping[str, str]]:
    """Status, body and headers of a plain GET."""
    try:
        with urlopen(url, timeout=30) as response:  # noqa: S310 - an address of a server of these tests
            return response.status, response.read(), dict(response.headers)
    except HTTPError as error:
        with error:
            return error.code, error.read(), dict(error.headers)


@contextmanager
def gateway(function: Function, kind: Kind = "http-api") -> Iterator[str]:
    """The address of a server in front of `function`, until the block ends."""

    class Gateway(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            self._pass(body)

        def do_GET(self) -> None:
            self._pass(None)

        def do_HEAD(self) -> None:
            self._pass(None)

        def do_DELETE(self) -> None:
            self._pass(None)

        def _pass(self, body: bytes | None) -> None:
            answer = function.invoke(event_of(kind, self.command, self.path, dict(self.headers.items()), body))
            sent = answer.get("body") or ""
            raw = base64.b64decode(sent) if answer.get("isBase64Encoded") else sent.encode()
            self.send_response(answer["statusCode"])
            for name, value in answer["headers"].items():
                if name.lower() != "content-length":
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(raw)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Gateway)
    server.daemon_threads = True
    serving = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    serving.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        serving.join()

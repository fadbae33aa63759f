"""A real server on a free loopback port, and raw requests to it in every era of the protocol."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from handler.app import App
from handler.http import HttpOptions, build_http
from handler.mcp_server import LOCAL_CALLER, CallerOf

__all__ = ["MODERN", "VERSIONS", "Reply", "exchange", "running", "served"]

MODERN = "2026-07-28"
VERSIONS = ("2025-06-18", "2025-11-25", MODERN)

_NAME_PARAMETERS = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


@contextmanager
def running(
    app: App, options: HttpOptions | None = None, caller_of: CallerOf = lambda _: LOCAL_CALLER
) -> Iterator[int]:
    """The port of a server over `app`, until the block ends."""
    with served(build_http(app, options, caller_of=caller_of)) as port:
        yield port


@contextmanager
def served(http: ASGIApp) -> Iterator[int]:
    """The port of a server of this ASGI app, until the block ends."""
    config = uvicorn.Config(http, port=0, log_level="error", lifespan="on", ws="none")
    server = uvicorn.Server(config)
    socket = config.bind_socket()
    thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]})
    thread.start()
    try:
        # The socket listens from here on, so a request waits in its queue until the loop takes it.
        socket.listen()
        yield socket.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()
        socket.close()


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def result_bytes(self) -> int:
        """Bytes of the result as it was sent, without the envelope of the exchange."""
        raw = json.dumps(self.json["result"], ensure_ascii=False, separators=(",", ":"))
        assert raw.encode() in self.body
        return len(raw.encode())


def exchange(
    port: int,
    method: str,
    params: Mapping[str, Any] | None = None,
    *,
    version: str = MODERN,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    verb: str = "POST",
    path: str = "/mcp",
) -> Reply:
    """One request, well-formed for `version` unless `headers` or `body` say otherwise."""
    sent: dict[str, Any] = dict(params or {})
    all_headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": version,
    }
    if version == MODERN:
        sent["_meta"] = {
            **sent.get("_meta", {}),
            "io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        }
        all_headers["mcp-method"] = method
        if method in _NAME_PARAMETERS:
            all_headers["mcp-name"] = str(sent.get(_NAME_PARAMETERS[method]))
    elif method == "initialize":
        sent |= {
            "protocolVersion": version,
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        }
    if body is None:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": sent}).encode()
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(verb, path, body, all_headers | dict(headers or {}))
        response = connection.getresponse()
        return Reply(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
    finally:
        connection.close()

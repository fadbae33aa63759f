"""Requests to the Lambda entry, in this process: real events, the real container, a real application."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn

from handler.app import App
from handler.auth.gate import Gate, caller_of, with_gate
from handler.http import HttpOptions, build_http
from handler.lambda_mcp import Container, behind_doors
from tests.handler.wired_app import wired_app

__all__ = ["ADDRESS", "asked", "container", "event", "guarded", "tools_call"]

ADDRESS = "https://hayfork.example"

_EVENT = Path(__file__).parents[2] / "fixtures" / "events" / "http-api.json"


def container(folder: Path, gate: Gate) -> Container:
    """A container over 120 messages, behind a gate, as `handler.lambda_mcp` puts one together."""
    app = wired_app(folder)
    options = HttpOptions(allowed_hosts=("*",), body=gate.body)
    http = build_http(app, options, caller_of=caller_of)
    made = Container(lambda _: behind_doors(http, gate, lambda *_: None, options))
    made.start(ADDRESS)
    return made


def tools_call(name: str, arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments or {}}}


def event(
    body: Any = None,
    headers: Mapping[str, str] | None = None,
    *,
    signed_by: str | None = None,
    method: str = "POST",
    path: str = "/mcp",
) -> dict[str, Any]:
    """The event of an HTTP API; nobody has signed it unless `signed_by` is their ARN."""
    made: dict[str, Any] = json.loads(_EVENT.read_text("utf-8"))
    context = made["requestContext"]
    made["rawPath"] = path
    context["http"] |= {"method": method, "path": path}
    if signed_by is None:
        del context["authorizer"]
    else:
        context["authorizer"]["iam"]["userArn"] = signed_by
    made["headers"] |= dict(headers or {})
    made["body"] = json.dumps(body if body is not None else tools_call("count_messages"))
    return made


def asked(made: Container, request: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
    """Status, headers and body of the answer, the body as JSON where it is."""
    answer = made.answer(request, None)
    body = answer["body"]
    return answer["statusCode"], dict(answer["headers"]), json.loads(body) if body else None


@contextmanager
def guarded(app: App, gate: Gate, port: int) -> Iterator[None]:
    """A server over `app` behind a gate on a loopback port, until the block ends."""
    served = with_gate(build_http(app, caller_of=caller_of), gate)
    server = uvicorn.Server(uvicorn.Config(served, port=port, log_level="error", lifespan="on", ws="none"))
    socket = server.config.bind_socket()
    thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]})
    thread.start()
    try:
        # The socket listens from here on, so a request waits in its queue until the loop takes it.
        socket.listen()
        yield
    finally:
        server.should_exit = True
        thread.join()
        socket.close()

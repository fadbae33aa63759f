"""The HTTP edge: one ASGI app for every era of the protocol, and a server to run it on a laptop.

Decides what is refused before the protocol library sees it, and that bodies leave as compact UTF-8. Must
never know a tool. The server library is imported only when a server is started: hosts with their own do not
carry it.
"""

import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import TYPE_CHECKING

from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from engine.errors import BadInput, quoted
from handler.answer_headers import with_cors, with_security_headers
from handler.app import App
from handler.bodies import BodyLimits, BodyRefused, read_body, replayed
from handler.mcp_server import LOCAL_CALLER, CallerOf, build_server
from handler.metering.prices import FREE, Prices
from handler.wire import compact, mend_surrogates, recode

if TYPE_CHECKING:
    from handler.payment.desk import Desk

__all__ = ["HEALTH_PATH", "HttpOptions", "Places", "at_host", "build_http", "refuse", "serve_http"]

HEALTH_PATH = "/health"

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """How the edge behaves.

    `allowed_hosts` are values of the Host header accepted beside loopback (`name`, `name:port` or
    `name:*`), a single `*` accepts all, for hosts behind a gateway that checks. `allowed_origins` likewise,
    with scheme. With `cors` pages of `allowed_origins`
    may read answers in a browser. `threads` how many calls are answered at
    once. `prices` are what callers are told that calls cost; at the `desk` those without an account pay it.
    """

    path: str = "/mcp"
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    body: BodyLimits = field(default_factory=BodyLimits)
    cors: bool = False
    threads: int = 8
    prices: Prices = FREE
    desk: "Desk | None" = None


def at_host(options: HttpOptions, host: str) -> HttpOptions:
    """The options of a server that listens on `host`: an address of its own is accepted as Host."""
    if host in {*_LOOPBACK, "::1", "0.0.0.0", "::", ""}:  # noqa: S104 - compared, not bound
        return options
    named = f"[{host}]" if ":" in host else host
    return replace(options, allowed_hosts=(*options.allowed_hosts, named, f"{named}:*"))


def build_http(
    app: App, options: HttpOptions | None = None, *, caller_of: CallerOf = lambda _: LOCAL_CALLER
) -> ASGIApp:
    """The ASGI app over `app`: POST on the path, and `/health`. Its lifespan must be entered once."""
    options = options or HttpOptions()
    server = build_server(app, caller_of=caller_of, threads=options.threads, prices=options.prices, desk=options.desk)
    inner = server.streamable_http_app(
        streamable_http_path=options.path,
        stateless_http=True,
        json_response=True,
        max_request_body_size=options.body.max_bytes,
        # Checked before: the library writes what it refuses into the log, word for word.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    places = Places(options)

    async def edge(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await inner(scope, receive, send)
        elif scope["path"] == HEALTH_PATH:
            await _respond(send, HTTPStatus.OK, {"status": "ok"})
        elif (refused := places.refused(Headers(scope=scope))) is not None:
            await refuse(send, *refused)
        elif scope["path"] == options.path and scope["method"] != "POST":
            # The library holds a GET of the handshake eras open for ever, and there is no session to DELETE.
            await refuse(send, HTTPStatus.METHOD_NOT_ALLOWED, "only POST is served here", allow="POST")
        else:
            await _exchange(inner, scope, receive, send, options.body)

    return edge


class Places:
    """Where a request may have been sent, and from which pages of the web: all others are refused (DNS rebinding).

    Loopback and what is named, loopback on any port; a name without port stands for itself alone.
    """

    def __init__(self, options: HttpOptions) -> None:
        loopback = [form for name in _LOOPBACK for form in (name, f"{name}:*")]
        self._any_host = "*" in options.allowed_hosts
        self._hosts = [*loopback, *options.allowed_hosts]
        # Behind a gateway loopback is somebody else's.
        pages = [] if self._any_host else [f"{scheme}://{form}" for scheme in ("http", "https") for form in loopback]
        self._origins = [*pages, *options.allowed_origins]

    def refused(self, headers: Headers) -> tuple[HTTPStatus, str] | None:
        """Status and words for a request that is out of place."""
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if not self._any_host and (len(hosts) != 1 or not _among(hosts[0], self._hosts)):
            return HTTPStatus.MISDIRECTED_REQUEST, "this host is not served here"
        if any(not _among(origin, self._origins) for origin in origins):
            return HTTPStatus.FORBIDDEN, "pages of this origin may not ask"
        return None


def _among(value: str, allowed: list[str]) -> bool:
    """Whether `value` is one of `allowed`, of which `name:*` is the name with any port."""
    name, _, port = value.rpartition(":")
    return value in allowed or (port.isdigit() and f"{name}:*" in allowed)


async def _exchange(inner: ASGIApp, scope: Scope, receive: Receive, send: Send, limits: BodyLimits) -> None:
    """One request with its body whole and mended, and its answer recoded."""
    try:
        body = await read_body(scope, receive, limits)
    except BodyRefused as error:
        await refuse(send, error.status, error.message, **error.headers)
        return
    await inner(scope, replayed(mend_surrogates(body), receive), _recoding(send))


def _recoding(send: Send) -> Send:
    """Holds a JSON answer back until it is whole, and sends it as compact UTF-8; anything else passes."""
    held: list[Message] = []
    body = bytearray()

    async def recode_and_send(message: Message) -> None:
        if message["type"] == "http.response.start":
            if Headers(raw=message["headers"]).get("content-type", "").startswith("application/json"):
                held.append(message)
                return
        elif message["type"] == "http.response.body" and held:
            body.extend(message.get("body", b""))
            if message.get("more_body", False):
                return
            start = held.pop()
            sent = recode(bytes(body))
            MutableHeaders(raw=start["headers"])["content-length"] = str(len(sent))
            await send(start)
            await send({"type": "http.response.body", "body": sent, "more_body": False})
            return
        await send(message)

    return recode_and_send


async def refuse(send: Send, status: HTTPStatus, message: str, **headers: str) -> None:
    """Answer that a request was not looked at, in the protocol's form of an error."""
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": message}}
    await _respond(send, status, error, **headers)


async def _respond(send: Send, status: HTTPStatus, value: object, **headers: str) -> None:
    body = compact(value)
    raw = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    raw += [(name.encode(), text.encode()) for name, text in headers.items()]
    await send({"type": "http.response.start", "status": int(status), "headers": raw})
    await send({"type": "http.response.body", "body": body, "more_body": False})


def serve_http(
    app: App,
    host: str,
    port: int,
    *,
    options: HttpOptions | None = None,
    caller_of: CallerOf = lambda _: LOCAL_CALLER,
    guard: Callable[[ASGIApp], ASGIApp] = lambda inner: inner,
    ready: Callable[[int], None] | None = None,
) -> None:
    """Serve until interrupted. Port 0 takes a free one; `ready` is told the port when requests are answered.

    `guard` puts what decides who may ask in front of the app.

    An address other than loopback and the wildcards is accepted as Host beside the named ones.

    Raises:
        BadInput: `cannot_listen` when the address is taken or not this machine's.
    """
    import uvicorn  # noqa: PLC0415 - other hosts bring their own server and do not carry this one

    options = at_host(options or HttpOptions(), host)
    try:
        listener = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise BadInput(
            "cannot_listen",
            f"cannot listen on {quoted(host)} port {port}: {error.strerror}",
            next_step="choose another host or port",
        ) from None
    http = guard(build_http(app, options, caller_of=caller_of))
    served = with_security_headers(with_cors(http, options.allowed_origins if options.cors else ()))
    config = uvicorn.Config(
        _announcing(served, ready, listener.getsockname()[1]),
        log_level="warning",
        access_log=False,
        lifespan="on",
        ws="none",
        server_header=False,
        timeout_graceful_shutdown=5,
    )
    # The server library has shut down in order by the time it lets the interrupt through.
    with listener, suppress(KeyboardInterrupt):
        uvicorn.Server(config).run(sockets=[listener])


def _announcing(inner: ASGIApp, ready: Callable[[int], None] | None, port: int) -> ASGIApp:
    """`inner`, telling `ready` when its lifespan has started: from then on the socket's queue is served."""

    async def announcing(scope: Scope, receive: Receive, send: Send) -> None:
        async def watch(message: Message) -> None:
            await send(message)
            if message["type"] == "lifespan.startup.complete" and ready is not None:
                ready(port)

        await inner(scope, receive, watch if scope["type"] == "lifespan" else send)

    return announcing

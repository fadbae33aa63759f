"""The MCP server behind an HTTP API (payload 2.0) or a Function URL.

Decides what is made once per container, and when: the application, its lifespan entered in a task on the
event loop that Mangum runs requests on, and all of it anew after a restore from a snapshot. Must never know a
tool.
"""

import asyncio
import gc
import random
from collections.abc import Callable
from functools import cache
from http import HTTPStatus
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from mangum import Mangum
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from engine.errors import BadInput
from engine.query.stems import load_stemmers
from handler.answer_headers import with_cors, with_security_headers
from handler.auth.gate import Gate, caller_in, caller_of, with_gate
from handler.bodies import body_limits
from handler.exports_route import PresignedOf, with_exports
from handler.http import HttpOptions, build_http, refuse
from handler.lambda_settings import at_start, lambda_settings
from handler.local_app import Patience
from handler.metering.prices import shown_prices
from handler.metering.usage_route import with_usage
from handler.signals import Signals
from handler.wiring import (
    build_counted_app,
    build_desk,
    build_export_links,
    build_gate,
    build_usage_reports,
    system_clock,
)

__all__ = ["Container", "behind_doors", "handler"]


class Container:
    """One container's application, behind Mangum.

    `make` builds the ASGI app for the address that links begin with, again after a restore. An empty address
    is replaced by that of the first request: a function cannot be told its own URL, which is made after it.
    """

    def __init__(self, make: Callable[[str], ASGIApp]) -> None:
        self._make = make
        self._address = ""
        self._mangum: Mangum | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lifespan: asyncio.Task[None] | None = None

    def start(self, address: str) -> None:
        """Build the application and enter its lifespan, on an event loop that stays this thread's.

        Mangum's own ways do not fit a server that starts once: "auto" would enter the lifespan with every
        request, and "off" never.
        """
        app = self._make(address)
        self._address = address
        self._loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self._loop)
        started: asyncio.Future[None] = self._loop.create_future()
        self._lifespan = self._loop.create_task(_live(app, started))
        self._loop.run_until_complete(started)

        async def asgi(scope: Scope, receive: Receive, send: Send) -> None:
            await app(scope, receive, send)  # Mangum wants a coroutine, an ASGI app may be any awaitable

        self._mangum = Mangum(asgi, lifespan="off")

    def stop(self) -> None:
        """Leave the lifespan and close the loop; nothing happens before `start`."""
        if self._loop is not None and self._lifespan is not None:
            self._lifespan.cancel()
            self._loop.run_until_complete(asyncio.gather(self._lifespan, return_exceptions=True))
            self._loop.close()
        self._mangum = self._loop = self._lifespan = None

    def restart(self) -> None:
        """After a restore: clients, credentials and random numbers of a snapshot belong to all its copies."""
        random.seed()
        self.stop()
        self.start(self._address)

    def answer(self, event: dict[str, Any], context: Any) -> dict[str, Any]:
        """The gateway's response to its event."""
        if self._mangum is None or not self._address:
            self.stop()
            self.start(self._address or _address_of(event))
        if self._mangum is None:
            raise RuntimeError("the application did not start")
        return self._mangum(event, context)


def _address_of(event: dict[str, Any]) -> str:
    """The gateway's own address, which it names itself: no header of the request is believed."""
    return f"https://{event.get('requestContext', {}).get('domainName', 'localhost')}"


async def _live(app: ASGIApp, started: "asyncio.Future[None]") -> None:
    """The ASGI lifespan: entered at once, left when the task is cancelled."""
    leaving = asyncio.Event()
    entered = False

    async def receive() -> Message:
        nonlocal entered
        if entered:
            await leaving.wait()
            return {"type": "lifespan.shutdown"}
        entered = True
        return {"type": "lifespan.startup"}

    async def send(message: Message) -> None:
        if message["type"] == "lifespan.startup.complete":
            started.set_result(None)
        elif message["type"] == "lifespan.startup.failed":
            started.set_exception(RuntimeError("the application did not start"))

    scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": {}}
    try:
        await app(scope, receive, send)
    except asyncio.CancelledError:
        raise
    except Exception as error:
        if not started.done():
            started.set_exception(error)
        raise


def _make(address: str) -> ASGIApp:
    settings = lambda_settings()
    settings = settings.model_copy(update={"aws": settings.aws.model_copy(update={"public_url": address})})
    # Of an address that is not known yet nothing is served: the first request makes all of this anew.
    gate = build_gate(settings, system_clock, address or "https://localhost")
    if gate is None:
        raise BadInput(
            "bad_setting",
            "auth.modes is none, and a function is open to the world",
            next_step="set HAYFORK_AUTH_MODES to api_key, oauth, iam or several of them",
        )
    options = HttpOptions(
        allowed_hosts=("*",),
        allowed_origins=settings.server.allowed_origins,
        body=body_limits(settings.server),
        cors=settings.server.cors,
        threads=settings.server.threads,
        prices=shown_prices(settings),
        desk=build_desk(settings, system_clock),
    )
    # A container stands still between two requests: nothing is finished there.
    app = build_counted_app(settings, system_clock, _signals().called, patience=Patience(lasting=False))
    http = build_http(app, options, caller_of=caller_of)
    report_of = build_usage_reports(settings, system_clock)
    if report_of is not None:
        http = with_usage(http, report_of, caller_in, options)
    return behind_doors(http, gate, build_export_links(settings, system_clock), options)


def behind_doors(http: ASGIApp, gate: Gate, presigned_of: PresignedOf, options: HttpOptions) -> ASGIApp:
    """`http` and everything that stands in front of it here, as it is deployed."""
    served = with_exports(with_gate(http, gate), presigned_of)
    return with_security_headers(
        _with_own_host(with_cors(served, options.allowed_origins if options.cors else ())), https=True
    )


def _with_own_host(inner: ASGIApp) -> ASGIApp:
    """`inner`, for requests to the host that the gateway says it is: nobody else's links begin with another."""

    async def own(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            gateway = scope["aws.event"].get("requestContext", {}).get("domainName", "")
            hosts = Headers(scope=scope).getlist("host")
            if [host.partition(":")[0].lower() for host in hosts] != [gateway.lower()]:
                await refuse(send, HTTPStatus.MISDIRECTED_REQUEST, "this host is not served here")
                return
        await inner(scope, receive, send)

    return own


@cache
def _signals() -> Signals:
    return Signals(lambda_settings().signals, system_clock)


_container = Container(_make)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Answer one HTTP request."""
    with _signals().invocation(context):
        return _container.answer(event, context)


def _before_snapshot() -> None:
    # A container that starts without a snapshot loads them when a question first needs them.
    load_stemmers()
    gc.collect()


def _restored() -> None:
    _signals().restored()
    _container.restart()


def _start() -> None:
    _signals().install()
    _container.start(lambda_settings().aws.public_url)
    # Part of Lambda's own image only.
    if find_spec("snapshot_restore_py") is not None:
        hooks = import_module("snapshot_restore_py")
        hooks.register_before_snapshot(_before_snapshot)
        hooks.register_after_restore(_restored)


at_start(_start)

"""Direct invocation by another program: one tool call, or the rest of an export.

    {"tool": "count_messages", "arguments": {...}, "caller": "billing"}   the answer's object, or {"error"}
    {"export": "<id>"}                                                    how far the export is then
    {"canary": "<query>"}                                                 {"found"}, or an error raised for an alarm

Decides what an event must hold, and that an export ends, written or failed, before the event's time does. Who may
invoke the function may call as anyone: the caller is not checked but must be named, since sessions and exports belong
to it, and its policy applies. Must never know a protocol.
"""

from datetime import UTC
from functools import cache
from typing import Any, Protocol

from engine.errors import BadInput, EngineError, NotFound, Refused, Unavailable, quoted
from engine.sight import Caller
from handler.app import App
from handler.arguments import parse_arguments
from handler.auth.identity import Identity
from handler.auth.policies import Policies
from handler.faults import tell
from handler.lambda_settings import at_start, lambda_settings
from handler.local_app import Patience
from handler.signals import Signals
from handler.tools.table import TOOLS
from handler.wiring import build_counted_app, build_policies, system_clock

__all__ = ["LambdaContext", "Remaining", "answer", "handler"]

_FIELDS = frozenset({"tool", "arguments", "caller"})
_SHAPE = 'send {"tool", "arguments", "caller"}, {"export"} or {"canary"}'
_CANARY = Caller("canary")

SPARE_SECONDS = 20.0
"""Kept back of an event's time: for the part of a file that is on its way, the record, and the answer."""

EVERYBODY = Policies((), UTC, {})
"""Without policies all callers see everything."""


def answer(app: App, event: Any, policies: Policies = EVERYBODY) -> dict[str, Any]:
    """What the event asks for, as an object, as far as the policy of its caller goes.

    Raises:
        EngineError: the event is not of either shape, or as the call itself raises.
    """
    if not isinstance(event, dict):
        raise BadInput("bad_event", "the event is no JSON object", next_step=_SHAPE)
    if "export" in event:
        if set(event) != {"export"} or not isinstance(event["export"], str):
            raise BadInput("bad_event", "export stands alone and is an id", next_step=_SHAPE)
        return app.finish_export(event["export"])
    if "canary" in event:
        return _canary(app, event)
    for name in event:
        if name not in _FIELDS:
            raise BadInput("bad_event", f"an event has no field {quoted(name)}", next_step=_SHAPE)
    tool, arguments, caller = event.get("tool"), event.get("arguments", {}), event.get("caller")
    if not isinstance(tool, str) or not tool:
        raise BadInput("bad_event", "tool is missing", next_step=_SHAPE)
    if not isinstance(arguments, dict):
        raise BadInput("bad_event", "arguments is no JSON object", next_step=_SHAPE)
    if not isinstance(caller, str) or not caller:
        raise BadInput("bad_event", "caller is missing", next_step="name who asks: sessions belong to a caller")
    known = policies.caller(Identity((f"invoke:{caller}",)))
    if known is None:
        raise Refused("not_allowed", "no policy is for this caller", next_step="name it in a policy, as invoke:NAME")
    if not known.has(tool):
        tools = ", ".join(name for name in TOOLS if known.has(name))
        raise BadInput("unknown_tool", f"no tool is called {quoted(tool)}", next_step=f"use {tools}")
    return app.call(parse_arguments(tool, arguments, app.limits), known).object


def _canary(app: App, event: dict[str, Any]) -> dict[str, Any]:
    """Count and read what is known to be there, as an agent would, and remember nothing of it."""
    query = event["canary"]
    if set(event) != {"canary"} or not isinstance(query, str):
        raise BadInput("bad_event", "canary stands alone and is a query", next_step=_SHAPE)
    counted = app.call(parse_arguments("count_messages", {"query": query}, app.limits), _CANARY)
    found = counted.object["found"]["messages"]
    if not found:
        raise NotFound("unknown_message", "the canary's query finds nothing", next_step="name one that does")
    return {"found": found}


class LambdaContext(Protocol):
    """What is used of the runtime's context."""

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until the function is killed."""
        ...


class Remaining:
    """The time of the event in hand; a container has one at a time."""

    def __init__(self) -> None:
        self._context: LambdaContext | None = None

    def begin(self, context: LambdaContext) -> None:
        """Another event has come."""
        self._context = context

    def for_export(self) -> float:
        """Seconds an export may still take: nothing else goes on with it."""
        left = self._context.get_remaining_time_in_millis() / 1_000 if self._context is not None else 0.0
        return left - SPARE_SECONDS


_remaining = Remaining()


@cache
def _app() -> App:
    patience = Patience(_remaining.for_export, lasting=False)
    return build_counted_app(lambda_settings(), system_clock, _signals().called, patience=patience)


@cache
def _policies() -> Policies:
    return build_policies(lambda_settings())


@cache
def _signals() -> Signals:
    return Signals(lambda_settings().signals, system_clock)


def handler(event: Any, context: LambdaContext) -> dict[str, Any]:
    """Answer one event. What a caller can mend comes back as `{"error": {"code", "message", "next"}}`."""
    _remaining.begin(context)
    with _signals().invocation(context):
        canary = isinstance(event, dict) and "canary" in event
        try:
            told = answer(_app(), event, _policies())
        except EngineError as error:
            words = tell(error)
            if canary or (isinstance(error, Unavailable) and isinstance(event, dict) and "export" in event):
                # Both are invoked asynchronously: what is returned is lost, what is raised is counted and tried again.
                _failed(canary=canary)
                raise RuntimeError(words) from None
            return {"error": error.to_object()}
        except Exception as error:  # noqa: BLE001 - the one catch-all: Lambda would log and return the message
            _failed(canary=canary)
            raise RuntimeError(tell(error)) from None
        if canary:
            _signals().canary(failed=False)
        return told


def _failed(*, canary: bool) -> None:
    if canary:
        _signals().canary(failed=True)


def _start() -> None:
    _signals().install()
    _policies()
    _app()


at_start(_start)

"""`GET /usage`: the caller's own month, behind the same proof as the server."""

import asyncio
import json
from datetime import UTC
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from engine.errors import Unavailable
from engine.sight import EVERYTHING, Caller, Sight
from engine.usage import Grant, Month
from handler.auth.api_key import ApiKeys, mint_key
from handler.auth.gate import Gate, caller_in, caller_of, with_gate
from handler.auth.policies import Policies
from handler.http import HttpOptions, build_http
from handler.metering.quotas import Quotas
from handler.metering.report import month_row, named_month, usage_report
from handler.metering.usage_route import with_usage
from handler.settings_money import QuotaSettings
from infra.sqlite_keys import SqliteKeys
from infra.sqlite_usage import SqliteUsage
from tests.handler.metering.bench import ADA, COUNT, NOON, SECOND, Clock, metered
from tests.handler.running import served
from tests.handler.small_app import SmallApp

QUOTA = QuotaSettings(prepaid=True, calls_per_minute=9, calls_per_month=100, bytes_per_month=1_000, spend_per_month=500)


def asked(port: int, path: str, key: str = "", method: str = "GET", **headers: str) -> tuple[int, Any]:
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    proof = {"authorization": f"Bearer {key}"} if key else {}
    connection.request(method, path, headers={**proof, **headers})
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response.status, json.loads(body) if body else None


def test_a_caller_reads_their_own_usage_and_no_other(tmp_path: Path) -> None:
    clock = Clock()
    keys, store = SqliteKeys(tmp_path / "keys.sqlite"), SqliteUsage(tmp_path / "usage.sqlite")
    app = metered(store, QUOTA, clock=clock)
    credentials = {}
    for name in ("ada", "bob"):
        key, credentials[name] = mint_key(name, NOON, None)
        keys.add(key)
        store.grant(Grant(f"key:{name}", "first", 100, NOON))
    for caller in (ADA, ADA, Caller("key:bob")):
        app.call(COUNT, caller)

    def report_of(caller_id: str, month: str) -> dict[str, Any]:
        return usage_report(store, Quotas((QUOTA,)), caller_id, named_month(month, clock()), clock())

    gate = Gate(Policies((), UTC, {}), keys=ApiKeys(keys, clock))
    http = with_gate(with_usage(build_http(app, caller_of=caller_of), report_of, caller_in), gate)
    with served(http) as port:
        assert asked(port, "/usage")[0] == 401
        status, told = asked(port, "/usage", credentials["ada"])
        assert (status, told) == (
            200,
            {
                "caller_id": "key:ada",
                "month": "2016-11",
                "calls": 2,
                "free": 0,
                "errors": 0,
                "refunds": 0,
                "spend_micros": 20,
                "milliseconds": 0,
                "rows_scanned": 0,
                "bytes_scanned": 0,
                "bytes_returned": 34,
                "s3_requests": 0,
                "dynamodb_requests": 0,
                "credit": {"balance_micros": 80, "held_micros": 0},
                "quotas": {
                    "calls_per_minute": {"limit": 9},
                    "calls_per_month": {"limit": 100, "used": 2, "resets": "2016-12-01T00:00:00Z"},
                    "bytes_per_month": {"limit": 1_000, "used": 34, "resets": "2016-12-01T00:00:00Z"},
                    "spend_per_month": {"limit": 500, "used": 20, "resets": "2016-12-01T00:00:00Z"},
                },
            },
        )
        _, other = asked(port, "/usage?caller=key:ada&caller_id=key:ada", credentials["bob"])
        assert (other["caller_id"], other["calls"]) == ("key:bob", 1)
        clock.now += 86_400 * SECOND
        _, new = asked(port, "/usage", credentials["ada"])
        assert (new["month"], new["calls"], new["credit"]["balance_micros"]) == ("2016-12", 0, 80)
        _, old = asked(port, "/usage?month=2016-11", credentials["ada"])
        assert (old["month"], old["calls"], old["quotas"]) == ("2016-11", 2, {"calls_per_minute": {"limit": 9}})
        status, told = asked(port, "/usage?month=2016-13", credentials["ada"])
        assert (status, told["error"]["code"]) == (400, "bad_time")
        assert asked(port, "/usage", credentials["ada"], "POST")[0] == 405
        assert asked(port, "/usage", credentials["ada"], host="elsewhere.example")[0] == 421
    store.close()


def _always(caller: Caller, _: Any) -> Caller:
    return caller


def test_what_calls_read_of_hidden_messages_is_not_told() -> None:
    def report_of(caller_id: str, month: str) -> dict[str, Any]:
        return {"caller_id": caller_id, **month_row(Month(caller_id, month, calls=3, rows_scanned=9, bytes_scanned=8))}

    told = []
    for sight in (EVERYTHING, Sight(deny=("closed",))):
        bob = Caller("key:bob", sight)
        http = with_usage(build_http(SmallApp()), report_of, partial(_always, bob))
        with served(http) as port:
            told.append(asked(port, "/usage?month=2016-11")[1])
    whole, part = told
    assert (whole["rows_scanned"], whole["bytes_scanned"]) == (9, 8)
    assert part == {k: v for k, v in whole.items() if k not in {"rows_scanned", "bytes_scanned", "s3_requests"}}


@pytest.mark.parametrize("path", ["/usage", "/usage?month="])
def test_a_store_that_is_down_is_told_as_such(path: str) -> None:
    def fail(*_: str) -> dict[str, Any]:
        raise Unavailable("store_unreachable", "the store did not answer as it should")

    http = with_usage(build_http(SmallApp()), fail, lambda _: ADA, HttpOptions())
    with served(http) as port:
        assert asked(port, path) == (503, {"message": "the store did not answer"})
        assert asked(port, "/health")[0] == 200


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_head_tells_how_long_the_answer_is_and_sends_none_of_it(method: str) -> None:
    """Behind a function nothing takes the body away, as a server does."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    http = with_usage(build_http(SmallApp()), lambda *_: {"calls": 3}, partial(_always, ADA), HttpOptions())
    headers = [(b"host", b"localhost")]
    scope = {"type": "http", "method": method, "path": "/usage", "query_string": b"", "headers": headers}

    async def answered() -> None:
        await http(scope, receive, send)

    asyncio.run(answered())
    started, body = sent
    assert (started["status"], dict(started["headers"])[b"content-length"]) == (200, b"11")
    assert body["body"] == (b'{"calls":3}' if method == "GET" else b"")

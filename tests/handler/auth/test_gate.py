"""Who gets past the gate, by real events through the container of the Lambda entry."""

import json
import logging
import random
import secrets
import string
from collections import Counter
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path
from typing import Any

import anyio
import pytest

from handler.auth.api_key import ApiKeys, mint_key
from handler.auth.gate import Gate, caller_of, with_gate
from handler.auth.policies import Policies
from handler.bodies import BodyLimits
from handler.http import HttpOptions, build_http
from handler.lambda_mcp import Container
from handler.settings_table import PolicySettings
from handler.tools.table import TOOLS
from infra.sqlite_keys import SqliteKeys
from tests.handler.auth.events import asked, container, event, tools_call
from tests.handler.auth.stores import NOON, SECOND, Asked, Clock
from tests.handler.wired_app import wired_app, wired_settings

ROLE = "arn:aws:sts::123456789012:assumed-role/Agents/session"

POLICIES = [
    PolicySettings(callers=("key:narrow",), tools=("count_messages", "search_messages"), allow=("support",)),
    PolicySettings(callers=("key:wide", "iam:*")),
]

UNIFORM = (
    401,
    'Bearer error="invalid_token", error_description="Authentication required"',
    {"error": "invalid_token", "error_description": "Authentication required"},
)


class Desk:
    """A container behind a gate, the keys it knows, and the time."""

    def __init__(self, folder: Path) -> None:
        self.clock = Clock()
        self.store = Asked(SqliteKeys(folder / "keys.sqlite"))
        settings = wired_settings(folder)
        gate = Gate(
            Policies(POLICIES, settings.corpus.zone, {}),
            ApiKeys(self.store, self.clock),
            iam=True,
            body=BodyLimits(max_bytes=65_536),
        )
        self.container: Container = container(folder, gate)

    def made(self, name: str, **changes: Any) -> str:
        key, credential = mint_key(name, self.clock.now, changes.get("expires_at"))
        assert self.store.add(key)
        return credential

    def ask(self, body: Any = None, headers: dict[str, str] | None = None, **more: Any) -> tuple[int, str, Any]:
        """Status, challenge and body."""
        status, answered, said = asked(self.container, event(body, headers, **more))
        return status, answered.get("www-authenticate", ""), said


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    yield made
    made.container.stop()


def bearer(credential: str) -> dict[str, str]:
    return {"authorization": f"Bearer {credential}"}


def text_of(said: Any) -> str:
    text: str = said["result"]["content"][0]["text"]
    return text


@pytest.mark.parametrize("scheme", ["Bearer ", "bearer ", "BEARER  "])
def test_a_key_is_taken_from_either_header(desk: Desk, scheme: str) -> None:
    key = desk.made("wide")
    for headers in ({"authorization": scheme + key}, {"x-api-key": key}):
        status, _, said = desk.ask(headers=headers)
        assert status == 200
        assert "found: 120 messages" in text_of(said)


def test_a_signature_that_the_gateway_checked_is_taken_and_headers_that_claim_one_are_not(desk: Desk) -> None:
    assert desk.ask(signed_by=ROLE)[0] == 200
    claims = {"x-amzn-iam-user-arn": ROLE, "authorization": "AWS4-HMAC-SHA256 Credential=AKIA/x, Signature=0"}
    assert desk.ask(headers=claims) == UNIFORM
    assert desk.ask(signed_by="arn:aws:sts::123456789012:federated-user/Agents") == UNIFORM


def test_two_proofs_at_once_are_none(desk: Desk) -> None:
    one, two = desk.made("wide"), desk.made("narrow")
    assert desk.ask(headers={**bearer(one), "x-api-key": two}) == UNIFORM
    assert desk.ask(headers=bearer(one), signed_by=ROLE) == UNIFORM
    assert desk.ask(headers={"authorization": f"Bearer {one}, Bearer {two}"}) == UNIFORM


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/mcp"),
        ("DELETE", "/mcp"),
        ("OPTIONS", "/mcp"),
        ("POST", "/mcp/"),
        ("GET", "/"),
        ("GET", "/docs"),
        ("GET", "/.well-known/oauth-protected-resource/mcp"),
        ("GET", "/.well-known/oauth-authorization-server"),
        ("GET", "/health/"),
        ("GET", "//health"),
    ],
)
def test_without_proof_nothing_is_answered(desk: Desk, method: str, path: str) -> None:
    assert desk.ask(method=method, path=path) == UNIFORM


def test_health_says_nothing_and_an_unknown_export_is_not_there(desk: Desk) -> None:
    assert desk.ask(method="GET", path="/health") == (200, "", {"status": "ok"})
    assert desk.ask(method="GET", path=f"/exports/{'k' * 43}")[0] == 404


def test_a_key_without_a_policy_is_known_and_given_nothing(desk: Desk) -> None:
    status, _, said = desk.ask(headers=bearer(desk.made("stranger")))
    assert (status, said["error"]) == (403, "access_denied")


def test_a_store_out_of_reach_is_told_of_every_key_alike(desk: Desk) -> None:
    key = desk.made("wide")
    desk.store.gone = True
    for credential in (key, key[:-3] + "AAA", mint_key("x", NOON)[1]):
        assert desk.ask(headers=bearer(credential)) == (503, "", {"error": "temporarily_unavailable"})


def test_tools_that_a_policy_does_not_give_are_absent_and_unknown(desk: Desk) -> None:
    headers = bearer(desk.made("narrow"))
    listed = desk.ask({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, headers)[2]["result"]["tools"]
    assert [tool["name"] for tool in listed] == ["count_messages", "search_messages"]
    hidden, unknown = (
        desk.ask(tools_call(name, {"query": "x"}), headers)[2]["error"]
        for name in ("export_messages", "exprt_messages")
    )
    assert hidden["code"] == unknown["code"]
    assert hidden["message"].replace("export_messages", "exprt_messages") == unknown["message"]
    assert not [tool for tool in TOOLS if tool in hidden["message"].split("use ")[1] and tool not in str(listed)]


def test_what_a_policy_hides_is_in_no_answer_instructions_or_resource(desk: Desk) -> None:
    narrow, wide = bearer(desk.made("narrow")), bearer(desk.made("wide"))
    start = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    requests = (
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": start},
        {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "hayfork://corpus"}},
        tools_call("count_messages"),
        tools_call("search_messages", {"conversation": ["общи"]}),
    )
    for request in requests:
        shown, held = (json.dumps(desk.ask(request, headers)[2], ensure_ascii=False) for headers in (wide, narrow))
        assert "общий" in shown
        assert "общий" not in held


def test_sessions_belong_to_the_name_and_outlive_its_key(desk: Desk) -> None:
    first, second, other = desk.made("wide"), desk.made("wide"), desk.made("narrow")
    session = text_of(desk.ask(tools_call("search_messages", {"query": "docker"}), bearer(first))[2])
    handle = session.split("session ")[1].split()[0]
    again = tools_call("search_messages", {"query": "docker", "session": handle})
    assert f"session {handle} batch 2" in text_of(desk.ask(again, bearer(second))[2])
    foreign, unknown = (
        text_of(desk.ask(tools_call("search_messages", {"query": "docker", "session": each}), bearer(other))[2])
        for each in (handle, "A" * 22)
    )
    assert foreign == unknown
    assert foreign.startswith("unknown_session: ")


CREDENTIALS = 10_000


def test_of_ten_thousand_bad_credentials_none_is_answered(
    desk: Desk, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(6)
    good = [desk.made("wide") for _ in range(5)]
    expired = [desk.made("wide", expires_at=NOON + SECOND) for _ in range(5)]
    revoked = [desk.made("wide") for _ in range(5)]
    for credential in revoked:
        desk.store.revoke(credential.split("_")[1], NOON)
    foreign = [mint_key("wide", NOON)[1] for _ in range(200)]
    desk.clock.pass_seconds(2)
    alphabet = string.ascii_letters + string.digits + "_-"

    def wrong() -> str:
        credential = list(chance.choice(good))
        at = chance.randrange(20, len(credential))
        credential[at] = chance.choice([c for c in alphabet if c != credential[at]])
        return "".join(credential)

    def truncated() -> str:
        credential = chance.choice(good)
        return credential[: chance.randrange(len(credential))]

    def garbage() -> str:
        return chance.choice(("hf_", "", "ey", "Bearer ", "'; --", "${jndi}", "..%2f", "ÿ")) + secrets.token_urlsafe(
            chance.randrange(60)
        )

    def presented(kind: str) -> dict[str, str]:
        makers = {
            "wrong": wrong,
            "truncated": truncated,
            "foreign": lambda: chance.choice(foreign),
            "expired": lambda: chance.choice(expired),
            "revoked": lambda: chance.choice(revoked),
            "garbage": garbage,
        }
        if kind == "missing":
            return chance.choice(({}, {"authorization": ""}, {"authorization": f"Basic {wrong()}"}, {"x-api-key": ""}))
        credential = makers[kind]()
        return chance.choice((bearer(credential), {"x-api-key": credential}))

    kinds = ("wrong", "truncated", "foreign", "expired", "revoked", "garbage", "missing")
    answers: Counter[str] = Counter()
    sent: list[str] = []
    body = tools_call("count_messages")
    for n in range(CREDENTIALS):
        headers = presented(kinds[n % len(kinds)])
        sent += [value for value in headers.values() if len(value) > 20]
        answers[json.dumps(desk.ask(body, headers))] += 1
    assert answers == {json.dumps(UNIFORM): CREDENTIALS}
    assert all(desk.ask(body, bearer(credential))[0] == 200 for credential in good)
    logged = caplog.text + "".join(capfd.readouterr())
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert not [value for value in sent if value in logged]


def test_nothing_but_http_is_served() -> None:
    async def inner(*_: object) -> None:
        raise AssertionError("reached")

    async def connect() -> None:
        unused: Any = None
        await with_gate(inner, Gate(Policies((), UTC, {})))({"type": "websocket", "path": "/mcp"}, unused, unused)

    with pytest.raises(Exception, match="invalid_token"):
        anyio.run(connect)


def test_a_request_that_came_past_the_gate_is_a_fault_and_answers_nothing(tmp_path: Path) -> None:
    http = build_http(wired_app(tmp_path), HttpOptions(allowed_hosts=("*",)), caller_of=caller_of)
    made = Container(lambda _: http)
    made.start("https://hayfork.example")
    try:
        _, _, said = asked(made, event())
    finally:
        made.stop()
    assert "internal error" in said["error"]["message"]

"""What is refused unread, and what every answer says: over a socket and behind the gateway alike."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.types import Message, Receive, Scope, Send

from handler.answer_headers import SECURITY_HEADERS, with_cors, with_security_headers
from handler.auth.api_key import ApiKeys, mint_key
from handler.auth.gate import Gate
from handler.auth.policies import Policies
from handler.bodies import BodyLimits, BodyRefused, deeper_than, read_body
from infra.sqlite_keys import SqliteKeys
from tests.depth import depth
from tests.handler.auth.events import container, event
from tests.handler.auth.stores import Clock
from tests.handler.running import exchange
from tests.handler.wired_app import wired_settings

ROOT = Path(__file__).parents[2]
MAX_BYTES = 20_000
HSTS = "strict-transport-security"
LIST: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


@dataclass(frozen=True, slots=True)
class Answered:
    status: int
    headers: Mapping[str, str]
    body: bytes


Ask = Callable[..., Answered]
"""`ask(body, headers, method=, path=)` at one of the two doors."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of `hayfork serve` as a person starts it."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "hayfork.toml").write_text(
        f'[server]\nport = 0\nmax_body_bytes = {MAX_BYTES}\nbody_seconds = 0.3\nallowed_origins = ["https://app.example"]\n'
    )
    command = [sys.executable, "-m", "handler.cli", "--config", str(folder / "hayfork.toml"), "serve"]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        port = re.search(r":(\d+)/mcp", process.stderr.readline())
        assert port is not None
        yield int(port[1])
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(timeout=20) == 0
        assert set(process.stderr.read().splitlines()) <= {"WARNING:  Invalid HTTP request received."}


@pytest.fixture(scope="module")
def over_a_socket(served: int) -> Ask:
    def ask(body: bytes, headers: Mapping[str, str], method: str = "POST", path: str = "/mcp") -> Answered:
        reply = exchange(served, "tools/list", version="2025-06-18", headers=headers, body=body, verb=method, path=path)
        return Answered(reply.status, reply.headers, reply.body)

    return ask


@pytest.fixture(scope="module")
def behind_the_gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    folder = tmp_path_factory.mktemp("lambda")
    clock, store = Clock(), SqliteKeys(folder / "keys.sqlite")
    key, credential = mint_key("ann", clock.now)
    assert store.add(key)
    policies = Policies([], wired_settings(folder).corpus.zone, {})
    made = container(folder, Gate(policies, ApiKeys(store, clock), body=BodyLimits(max_bytes=MAX_BYTES)))

    def ask(body: bytes, headers: Mapping[str, str], method: str = "POST", path: str = "/mcp") -> Answered:
        request = event(None, {"x-api-key": credential, **headers}, method=method, path=path)
        request["body"] = body.decode("utf-8", "replace")
        answer = made.answer(request, None)
        return Answered(answer["statusCode"], dict(answer["headers"]), answer["body"].encode())

    yield ask
    made.stop()


@pytest.fixture(params=["over_a_socket", "behind_the_gateway"])
def ask(request: pytest.FixtureRequest) -> Ask:
    made: Ask = request.getfixturevalue(request.param)
    return made


def message_of(answered: Answered) -> str:
    told: str = json.loads(answered.body)["error"]["message"]
    return told


def test_a_request_in_order_is_answered(ask: Ask) -> None:
    answered = ask(json.dumps(LIST).encode(), {})
    assert answered.status == 200
    assert len(json.loads(answered.body)["result"]["tools"]) == 5


def test_a_body_over_the_limit_is_refused(ask: Ask) -> None:
    answered = ask(json.dumps(LIST | {"params": {"x": "y" * MAX_BYTES}}).encode(), {})
    assert (answered.status, message_of(answered)) == (413, f"the body is over {MAX_BYTES} bytes")


NESTED = [
    b"[" * 10_000,
    b"[" * 33 + b"]" * 33,
    b'{"a":' * 2_000 + b"1" + b"}" * 2_000,
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"count_messages","arguments":{"query":'
    + b"[" * 9_000 + b"]" * 9_000 + b"}}}",
]  # fmt: skip


@pytest.mark.parametrize("body", NESTED, ids=range(len(NESTED)))
def test_deep_json_is_refused_before_a_parser_sees_it(ask: Ask, body: bytes) -> None:
    answered = ask(body, {})
    assert (answered.status, message_of(answered)) == (400, "the body is nested more than 32 levels deep")


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", ""])
def test_a_wrong_host_is_refused(ask: Ask, host: str) -> None:
    answered = ask(json.dumps(LIST).encode(), {"host": host})
    assert (answered.status, message_of(answered)) == (421, "this host is not served here")


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "https://app.example.evil.example", "https://app.example:8443"]
)
def test_a_wrong_origin_is_refused(ask: Ask, origin: str) -> None:
    answered = ask(json.dumps(LIST).encode(), {"origin": origin})
    assert (answered.status, message_of(answered)) == (403, "pages of this origin may not ask")


def test_a_named_origin_may_ask_and_pages_of_it_still_read_nothing(over_a_socket: Ask) -> None:
    answered = over_a_socket(json.dumps(LIST).encode(), {"origin": "https://app.example"})
    assert answered.status == 200
    assert [name for name in answered.headers if name.startswith("access-control-")] == []


def test_no_page_of_the_web_is_told_that_it_may_ask(ask: Ask) -> None:
    preflight = {"origin": "https://evil.example", "access-control-request-method": "POST"}
    answered = ask(b"", preflight, method="OPTIONS")
    assert answered.status in {401, 403, 405}
    assert [name for name in answered.headers if name.startswith("access-control-")] == []


EVERY_KIND_OF_ANSWER = [
    (json.dumps(LIST).encode(), {}, "POST", "/mcp"),
    (b"", {}, "GET", "/mcp"),
    (b"", {}, "GET", "/health"),
    (b"", {}, "GET", "/nothing"),
    (b"{", {}, "POST", "/mcp"),
    (b"x" * (MAX_BYTES + 1), {}, "POST", "/mcp"),
    (b"[" * 99, {}, "POST", "/mcp"),
    (b"{}", {"content-type": "text/html"}, "POST", "/mcp"),
    (b"{}", {"host": "evil.example"}, "POST", "/mcp"),
    (b"{}", {"origin": "https://evil.example"}, "POST", "/mcp"),
    (b"{}", {"x-api-key": "hf_wrong"}, "POST", "/mcp"),
    (b"", {}, "GET", "/exports/" + "k" * 43),
]


@pytest.mark.parametrize(("body", "headers", "method", "path"), EVERY_KIND_OF_ANSWER)
def test_security_headers_are_on_every_answer(
    ask: Ask, body: bytes, headers: dict[str, str], method: str, path: str
) -> None:
    answered = ask(body, headers, method, path)
    assert {name: answered.headers.get(name) for name in SECURITY_HEADERS} == SECURITY_HEADERS
    assert "server" not in answered.headers


def test_https_is_asked_for_where_it_is_spoken(behind_the_gateway: Ask, over_a_socket: Ask) -> None:
    assert behind_the_gateway(b"{}", {"x-api-key": "no"}).headers[HSTS] == "max-age=31536000"
    assert HSTS not in over_a_socket(b"{}", {}).headers
    assert HSTS in over_a_socket(b"{}", {"x-forwarded-proto": "https"}).headers


def test_a_body_that_does_not_come_is_not_waited_for(served: int) -> None:
    with socket.create_connection(("127.0.0.1", served), timeout=20) as slow:
        slow.sendall(
            b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{"
        )
        told = b""
        while chunk := slow.recv(4_096):
            told += chunk
    head, _, body = told.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408 ")
    assert b"connection: close" in head
    assert json.loads(body)["error"]["message"] == "the body did not come within 0.3 seconds"


async def endless() -> Message:
    await anyio.sleep_forever()
    raise AssertionError("for ever is over")


async def drips() -> Message:
    await anyio.lowlevel.checkpoint()
    return {"type": "http.request", "body": b" ", "more_body": True}


@pytest.mark.parametrize("receive", [endless, drips])
def test_time_bounds_a_body_whether_nothing_comes_or_a_byte_now_and_then(receive: Receive) -> None:
    async def read() -> None:
        await read_body({"type": "http", "headers": []}, receive, BodyLimits(seconds=0.05))

    with pytest.raises(BodyRefused, match=r"did not come within 0\.05 seconds"):
        anyio.run(read)


JSON = st.recursive(
    st.none() | st.integers() | st.text(st.sampled_from('[]{}"\\a,:'), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('[{"\\', max_size=3), inner, max_size=3),
    max_leaves=12,
)


def levels_of(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(levels_of, value.values()), default=0)
    return 1 + max(map(levels_of, value), default=0) if isinstance(value, list) else 0


@settings(max_examples=depth(5_000, 150), deadline=None, derandomize=True)
@given(JSON, st.integers(0, 6))
def test_depth_is_that_of_the_json_whatever_stands_in_its_strings(value: Any, levels: int) -> None:
    assert deeper_than(json.dumps(value).encode(), levels) == (levels_of(value) > levels)


def answered_by(app: Any, headers: Mapping[str, str], method: str = "POST") -> tuple[int, dict[str, str], bytes]:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": method, "path": "/mcp", "scheme": "http", "headers": raw}
    anyio.run(lambda: app(scope, endless, send))
    told = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], told, sent[1]["body"]


async def well(scope: Scope, receive: Receive, send: Send) -> None:
    del scope, receive
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"{}"})


def test_pages_of_named_origins_may_read_once_a_setting_says_so() -> None:
    page = {"origin": "https://app.example"}
    preflight = page | {"access-control-request-method": "POST", "access-control-request-headers": "x-api-key"}
    app = with_cors(well, ("https://app.example",))
    status, told, _ = answered_by(app, preflight, "OPTIONS")
    assert (status, told["access-control-allow-origin"]) == (200, "https://app.example")
    assert "x-api-key" in told["access-control-allow-headers"]
    assert answered_by(app, page)[1]["access-control-allow-origin"] == "https://app.example"
    evil = {"origin": "https://evil.example"}
    assert answered_by(app, preflight | evil, "OPTIONS")[0] == 400
    assert "access-control-allow-origin" not in answered_by(app, evil)[1]
    assert with_cors(well, ()) is well


@pytest.mark.parametrize("begun", [False, True])
def test_a_fault_is_told_by_a_reference_alone(*, begun: bool, caplog: pytest.LogCaptureFixture) -> None:
    async def faulty(scope: Scope, receive: Receive, send: Send) -> None:
        if begun:
            await well(scope, receive, send)
        raise ValueError("a text that somebody wrote")

    status, told, body = answered_by(with_security_headers(faulty), {})
    assert status == (200 if begun else 500)
    assert told.items() >= SECURITY_HEADERS.items()
    assert begun or re.fullmatch(rb'\{"error":"internal error, reference [0-9a-f]{8}"\}', body)
    assert "somebody wrote" not in caplog.text
    assert "builtins.ValueError at" in caplog.text


def test_what_is_no_request_at_all_is_answered_without_a_word_of_it(served: int) -> None:
    with socket.create_connection(("127.0.0.1", served), timeout=20) as odd:
        odd.sendall(b"\x16\x03\x01 not http marker-4711\r\n\r\n")
        told = odd.recv(4_096)
    assert told.startswith(b"HTTP/1.1 400 ")
    assert b"marker-4711" not in told

"""Access tokens of a real authorization server, and the MCP client that gets them by itself."""

import hmac
import json
import socket
import threading
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import anyio
import httpx2
import jwt
import pytest
from joserfc.jwk import RSAKey
from mcp import Client
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from mcp_types import TextContent

from engine.errors import BadInput, Unavailable
from handler.auth.gate import Gate
from handler.auth.jwks import KeySet, check_address, discover, fetch_json
from handler.lambda_mcp import Container
from handler.settings import Settings
from handler.settings_table import AuthSettings, CorpusSettings, PolicySettings
from handler.wiring import build_gate, system_clock
from tests.handler.auth.authorization_server import CLIENT, SECRET, Server, authorization_server, unsigned
from tests.handler.auth.events import ADDRESS, asked, container, event, guarded, tools_call
from tests.handler.auth.stores import NOON, SECOND, Clock
from tests.handler.wired_app import wired_app
from tests.local_aws import free_ports

AT = NOON // SECOND
READ, EXPORT = "messages:read", "messages:export"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with authorization_server() as running:
        running.resource = f"{ADDRESS}/mcp"
        yield running


@pytest.fixture(autouse=True)
def reset(server: Server) -> None:
    server.down = False
    server.requests.clear()
    server.published = [server.signing, server.curve]


def gate_of(server: Server, folder: Path, clock: Callable[[], int], address: str = ADDRESS, **auth: Any) -> Gate:
    settings = Settings(
        corpus=CorpusSettings(root=str(folder / "corpus")),
        auth=AuthSettings(modes=("oauth",), oauth_issuer=server.issuer, **auth),
        policies=(PolicySettings(callers=(f"oauth:{server.issuer}#{CLIENT}",)),),
    )
    gate = build_gate(settings, clock, address)
    assert gate is not None
    return gate


@contextmanager
def serving(server: Server, folder: Path, clock: Callable[[], int], **auth: Any) -> Iterator[Container]:
    made = container(folder, gate_of(server, folder, clock, **auth))
    try:
        yield made
    finally:
        made.stop()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def desk(server: Server, tmp_path: Path, clock: Clock) -> Iterator[Container]:
    with serving(server, tmp_path, clock) as made:
        yield made


def ask(made: Container, token: str, body: Any = None) -> tuple[int, str, Any]:
    status, headers, said = asked(made, event(body, {"authorization": f"Bearer {token}"}))
    return status, headers.get("www-authenticate", ""), said


METADATA = f"{ADDRESS}/.well-known/oauth-protected-resource/mcp"
UNIFORM = (
    401,
    f'Bearer error="invalid_token", error_description="Authentication required", resource_metadata="{METADATA}"',
    {"error": "invalid_token", "error_description": "Authentication required"},
)


def test_a_token_of_the_server_is_taken(server: Server, desk: Container, clock: Clock) -> None:
    token = server.token()
    clock.now = jwt.decode(token, options={"verify_signature": False})["iat"] * SECOND
    assert ask(desk, token)[0] == 200


def test_a_token_signed_on_a_curve_is_taken(server: Server, desk: Container) -> None:
    key = server.curve.as_pem(private=True)
    assert ask(desk, server.forged(AT, {"kid": "ec-1", "alg": "ES256"}, key))[0] == 200


def by_shared_secret(server: Server, secret: bytes) -> str:
    """Signed with HS256, which our own library refuses to do with a public key."""
    claims = jwt.decode(server.forged(AT), options={"verify_signature": False})
    head = unsigned(claims, {"alg": "HS256", "typ": "at+jwt", "kid": "rsa-1"}).rstrip(".")
    digest = hmac.new(secret, head.encode(), sha256).digest()
    return f"{head}.{urlsafe_b64encode(digest).rstrip(b'=').decode()}"


def of_none(server: Server, algorithm: str) -> str:
    claims = jwt.decode(server.forged(AT), options={"verify_signature": False})
    return unsigned(claims, {"alg": algorithm, "typ": "at+jwt", "kid": "rsa-1"})


STRANGER = RSAKey.generate_key(2048)
BAD: dict[str, Callable[[Server], str]] = {
    "expired": lambda s: s.forged(AT - 700),
    "expired by a second beyond the leeway": lambda s: s.forged(AT, exp=AT - 30),
    "not yet valid": lambda s: s.forged(AT, nbf=AT + 60),
    "issued in the future": lambda s: s.forged(AT, iat=AT + 60),
    "never expires": lambda s: s.forged(AT, exp=None),
    "expires in words": lambda s: s.forged(AT, exp="tomorrow"),
    "expires at true": lambda s: s.forged(AT, exp=True),
    "expires at NaN": lambda s: s.forged(AT, exp=float("nan")),
    "wrong audience": lambda s: s.forged(AT, aud="https://another.example/mcp"),
    "audience is a part of ours": lambda s: s.forged(AT, aud=ADDRESS),
    "no audience": lambda s: s.forged(AT, aud=None),
    "wrong issuer": lambda s: s.forged(AT, iss="https://evil.example"),
    "issuer with a slash more": lambda s: s.forged(AT, iss=f"{s.issuer}/"),
    "no issuer": lambda s: s.forged(AT, iss=None),
    "no subject": lambda s: s.forged(AT, sub=None),
    "empty subject": lambda s: s.forged(AT, sub=""),
    "long subject": lambda s: s.forged(AT, sub="x" * 256),
    "subject of two lines": lambda s: s.forged(AT, sub=f"{CLIENT}\n"),
    "none": lambda s: of_none(s, "none"),
    "None": lambda s: of_none(s, "NoNe"),
    "no algorithm": lambda s: of_none(s, ""),
    "HS256 with the public key": lambda s: by_shared_secret(s, s.public),
    "HS256 with nothing": lambda s: by_shared_secret(s, b""),
    "an algorithm that is not allowed": lambda s: s.forged(AT, {"alg": "PS256"}),
    "another's signature": lambda s: s.forged(AT, key=STRANGER.as_pem(private=True)),
    "a key of another kind": lambda s: s.forged(AT, {"kid": "ec-1"}),
    "unknown key id": lambda s: s.forged(AT, {"kid": "rsa-2"}),
    "no key id": lambda s: s.forged(AT, {"kid": None}),
    "key id that is a path": lambda s: s.forged(AT, {"kid": "../../etc/passwd"}),
    "an address for its key": lambda s: s.forged(
        AT, {"kid": "rsa-9", "jku": f"{s.issuer}/keys"}, STRANGER.as_pem(private=True)
    ),
    "its own key inside": lambda s: s.forged(
        AT, {"kid": "rsa-9", "jwk": STRANGER.as_dict(private=False)}, STRANGER.as_pem(private=True)
    ),
    "an extension that must be understood": lambda s: s.forged(AT, {"crit": ["exp"]}),
    "truncated": lambda s: s.forged(AT)[:-1],
    "a part less": lambda s: s.forged(AT).rpartition(".")[0],
    "a part more": lambda s: s.forged(AT) + ".e30",
    "no JSON": lambda _: "bm8.bm8.bm8",
    "huge": lambda s: s.forged(AT, padding="x" * 20_000),
}


@pytest.mark.parametrize("kind", BAD)
def test_whatever_is_wrong_with_a_token_the_answer_is_one(server: Server, desk: Container, kind: str) -> None:
    assert ask(desk, server.forged(AT))[0] == 200
    assert ask(desk, BAD[kind](server)) == UNIFORM


@pytest.mark.parametrize("audience", [[f"{ADDRESS}/mcp"], ["https://another.example", f"{ADDRESS}/mcp"]])
def test_a_token_may_be_for_several(server: Server, desk: Container, audience: list[str]) -> None:
    assert ask(desk, server.forged(AT, aud=audience))[0] == 200


def test_clocks_may_differ_by_a_little(server: Server, desk: Container) -> None:
    assert ask(desk, server.forged(AT, exp=AT - 29, nbf=AT + 30, iat=AT + 30))[0] == 200


def test_a_subject_without_a_policy_is_known_and_given_nothing(server: Server, desk: Container) -> None:
    status, _, said = ask(desk, server.forged(AT, sub="stranger"))
    assert (status, said["error"]) == (403, "access_denied")


def test_a_new_key_is_noticed_and_unknown_ids_cost_one_look_in_a_while(
    server: Server, desk: Container, clock: Clock
) -> None:
    assert ask(desk, server.forged(AT))[0] == 200
    new = RSAKey.generate_key(2048, {"kid": "rsa-2", "use": "sig"})
    token = server.forged(AT, {"kid": "rsa-2"}, new.as_pem(private=True))
    server.published = [server.signing, new]
    assert ask(desk, token) == UNIFORM
    for n in range(50):
        assert ask(desk, server.forged(AT, {"kid": f"guess-{n}"})) == UNIFORM
    assert server.requests["/keys"] == 1
    clock.pass_seconds(30)
    assert ask(desk, token)[0] == 200
    assert server.requests["/keys"] == 2


def test_a_key_that_was_withdrawn_is_forgotten(server: Server, desk: Container, clock: Clock) -> None:
    token = server.forged(AT, exp=AT + 10_000)
    assert ask(desk, token)[0] == 200
    server.published = [server.curve]
    clock.pass_seconds(600)
    assert ask(desk, token) == UNIFORM


def test_a_slow_server_keeps_nobody_waiting_whose_key_is_known() -> None:
    key = RSAKey.generate_key(2048, {"kid": "known"})
    clock, asked_for, go_on = Clock(), threading.Event(), threading.Event()
    fetched: list[int] = []

    def fetch() -> Any:
        fetched.append(clock.now)
        if len(fetched) == 2:
            asked_for.set()
            go_on.wait(20)
        return {"keys": [key.as_dict(private=False)]}

    keys = KeySet(fetch, clock)
    assert keys.key("known", "RS256") is not None
    clock.pass_seconds(30)
    waiting = threading.Thread(target=keys.key, args=("unknown", "RS256"))
    waiting.start()
    try:
        assert asked_for.wait(20)
        assert keys.key("known", "RS256") is not None
        assert keys.key("another", "RS256") is None
    finally:
        go_on.set()
        waiting.join()
    assert fetched == [NOON, NOON + 30 * SECOND]


def test_keys_outlast_their_server_for_a_day(server: Server, desk: Container, clock: Clock) -> None:
    token = server.forged(AT, exp=AT + 1_000_000)
    assert ask(desk, token)[0] == 200
    server.down = True
    clock.pass_seconds(80_000)
    assert ask(desk, token)[0] == 200
    clock.pass_seconds(10_000)
    assert ask(desk, token) == (503, "", {"error": "temporarily_unavailable"})
    server.down = False
    clock.pass_seconds(30)
    assert ask(desk, token)[0] == 200


def test_a_server_that_was_never_reached_is_told_as_such_and_not_asked_without_end(
    server: Server, desk: Container
) -> None:
    server.down = True
    for _ in range(5):
        assert ask(desk, server.forged(AT))[0] == 503
    assert server.requests.total() == 2


def test_the_challenge_leads_to_the_metadata_and_that_to_the_server(
    server: Server, tmp_path: Path, clock: Clock
) -> None:
    with serving(server, tmp_path, clock, oauth_scopes=(READ,), oauth_tool_scopes={"export_messages": EXPORT}) as made:
        status, headers, _ = asked(made, event())
        assert status == 401
        assert f'scope="{READ}"' in headers["www-authenticate"]
        assert f'resource_metadata="{METADATA}"' in headers["www-authenticate"]
        path = METADATA.removeprefix(ADDRESS)
        status, _, metadata = asked(made, event(method="GET", path=path))
    assert status == 200
    assert metadata == {
        "resource": f"{ADDRESS}/mcp",
        "authorization_servers": [server.issuer],
        "scopes_supported": [READ, EXPORT],
        "bearer_methods_supported": ["header"],
        "resource_name": "Hayfork",
    }


def test_pages_of_the_web_may_read_the_metadata_and_nothing_else(server: Server, desk: Container) -> None:
    page, path = {"origin": "https://app.example"}, METADATA.removeprefix(ADDRESS)
    proven = page | {"authorization": f"Bearer {server.forged(AT)}"}
    answers = [
        asked(desk, request)
        for request in (event(None, page, method="GET", path=path), event(None, page), event(None, proven))
    ]
    told = [(status, headers.get("access-control-allow-origin")) for status, headers, _ in answers]
    assert told == [(200, "*"), (401, None), (403, None)]


def test_a_tool_wants_its_scope_and_says_which(server: Server, tmp_path: Path, clock: Clock) -> None:
    export = tools_call("export_messages", {"query": "docker"})
    with serving(server, tmp_path, clock, oauth_scopes=(READ,), oauth_tool_scopes={"export_messages": EXPORT}) as made:
        status, challenge, _ = ask(made, server.forged(AT, scope="profile"))
        assert (status, f'scope="{READ}"' in challenge) == (403, True)
        token = server.forged(AT, scope=READ)
        assert ask(made, token)[0] == 200
        tools = ask(made, token, {"jsonrpc": "2.0", "id": 1, "method": "tools/list"})[2]["result"]["tools"]
        assert "export_messages" in {tool["name"] for tool in tools}
        status, challenge, said = ask(made, token, export)
        assert (status, said["error"]) == (403, "insufficient_scope")
        assert 'error="insufficient_scope"' in challenge
        assert f'scope="{READ} {EXPORT}"' in challenge
        assert ask(made, server.forged(AT, scope=f"{READ} {EXPORT}"), export)[0] == 200
        assert ask(made, server.forged(AT, scope=None, scp=[READ, EXPORT]), export)[0] == 200


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_a_body_that_is_read_otherwise_locks_the_tool_all_the_same(
    server: Server, tmp_path: Path, clock: Clock, encoding: str
) -> None:
    request = event(headers={"authorization": f"Bearer {server.forged(AT)}"})
    raw = json.dumps(tools_call("export_messages", {"query": "docker"})).encode(encoding)
    request |= {"body": urlsafe_b64encode(raw).decode().replace("-", "+").replace("_", "/"), "isBase64Encoded": True}
    with serving(server, tmp_path, clock, oauth_tool_scopes={"export_messages": EXPORT}) as made:
        status, _, said = asked(made, request)
    assert (status, "result" in said and "link" in json.dumps(said)) != (200, True)


class Storage:
    """Tokens of one client, in memory."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """It has its own."""


def test_the_official_client_finds_its_way_in_and_steps_up(server: Server, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    address = f"http://127.0.0.1:{port}"
    resource, server.resource = server.resource, f"{address}/mcp"
    scopes = {"oauth_scopes": (READ,), "oauth_tool_scopes": {"export_messages": EXPORT}}
    gate = gate_of(server, tmp_path, system_clock, address, **scopes)
    storage = Storage()
    provider = ClientCredentialsOAuthProvider(
        f"{address}/mcp", storage, client_id=CLIENT, client_secret=SECRET, issuer=server.issuer
    )

    async def use() -> list[str]:
        async with (
            httpx2.AsyncClient(auth=provider, timeout=30) as http,
            Client(streamable_http_client(f"{address}/mcp", http_client=http)) as client,
        ):
            told = []
            for tool in ("count_messages", "export_messages"):
                first = (await client.call_tool(tool, {"query": "docker"})).content[0]
                assert isinstance(first, TextContent)
                assert storage.tokens is not None
                told.append(f"{first.text.splitlines()[1]} | {storage.tokens.scope}")
            return told

    with guarded(wired_app(tmp_path), gate, port):
        told = anyio.run(use)
    server.resource = resource
    found = "found: 120 messages by 3 authors in 2 conversations, 2016-01-07 to 2016-11-07"
    assert told == [f"{found} | {READ}", f"{found} | {READ} {EXPORT}"]


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ({"oauth_issuer": ""}, "auth.oauth_issuer is empty"),
        ({"oauth_issuer": "http://id.example"}, "auth.oauth_issuer 'http://id.example'"),
        ({"oauth_issuer": "https://id.example", "oauth_jwks_url": "http://10.0.0.1/k"}, "auth.oauth_jwks_url"),
        ({"oauth_issuer": "https://id.example", "oauth_scopes": ('a"b',)}, "is no scope"),
    ],
)
def test_what_is_wrong_with_the_settings_is_told_at_the_start(tmp_path: Path, setting: Any, told: str) -> None:
    settings = Settings(corpus=CorpusSettings(root=str(tmp_path)), auth=AuthSettings(modes=("oauth",), **setting))
    with pytest.raises(BadInput) as error:
        build_gate(settings, system_clock, ADDRESS)
    assert told in error.value.message


@pytest.mark.parametrize("address", ["http://id.example/k", "file:///etc/passwd", "https://", "ftp://127.0.0.1/", "x"])
def test_keys_come_by_tls_or_from_this_machine(address: str) -> None:
    with pytest.raises(BadInput):
        check_address("auth.oauth_jwks_url", address)
    with pytest.raises(Unavailable):
        fetch_json(address)


@pytest.mark.parametrize(
    "answer",
    [
        b"gibberish\r\n\r\n",
        b'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n20\r\n{"keys"',
        b"HTTP/1.1 200 OK\r\nx: " + b"a" * 70_000 + b"\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 200_000,
    ],
    ids=["no HTTP", "cut off", "a header too long", "too deep"],
)
def test_an_answer_of_the_issuer_that_is_none_was_a_fault_of_ours(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(Unavailable):
            fetch_json(f"http://127.0.0.1:{listener.getsockname()[1]}/keys")
        thread.join()


def test_metadata_of_another_issuer_does_not_count(server: Server) -> None:
    answers = {
        f"{server.issuer}/.well-known/oauth-authorization-server/t": {
            "issuer": "https://evil.example",
            "jwks_uri": "x",
        },
        f"{server.issuer}/t/.well-known/openid-configuration": {"issuer": f"{server.issuer}/t", "jwks_uri": "right"},
    }
    assert discover(f"{server.issuer}/t", answers.__getitem__) == "right"
    with pytest.raises(Unavailable):
        discover(server.issuer, lambda _: {"issuer": "https://evil.example", "jwks_uri": "x"})

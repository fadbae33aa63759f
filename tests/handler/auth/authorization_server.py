"""An authorization server on a loopback port: Authlib's, with its metadata, its keys, and client credentials.

It issues what a client asks for, as RFC 9068 writes access tokens. Tokens that it would never issue are made with its
own key, so that only what is meant to be wrong with them is.
"""

import base64
import json
import threading
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl

import jwt
from authlib.oauth2 import AuthorizationServer, OAuth2Request
from authlib.oauth2.rfc6749 import ClientMixin, InvalidClientError
from authlib.oauth2.rfc6749.grants import ClientCredentialsGrant
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload
from authlib.oauth2.rfc9068 import JWTBearerTokenGenerator
from joserfc.jwk import ECKey, KeySet, RSAKey

__all__ = ["CLIENT", "SECRET", "Server", "authorization_server", "unsigned"]

CLIENT, SECRET = "agent", "agent's own secret"


class _Client(ClientMixin):
    def get_client_id(self) -> str:
        return CLIENT

    def get_allowed_scope(self, scope: Collection[str] | str) -> str:
        return scope if isinstance(scope, str) else " ".join(scope)

    def check_client_secret(self, client_secret: str) -> bool:
        return client_secret == SECRET

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        return (method, endpoint) == ("client_secret_basic", "token")

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type == "client_credentials"


class _Tokens(JWTBearerTokenGenerator):
    def __init__(self, server: "Server") -> None:
        super().__init__(server.issuer)
        self._server = server

    def get_jwks(self) -> Any:
        return KeySet([self._server.signing])

    def get_audiences(self, client: Any, user: Any, scope: Any) -> str:
        del client, user, scope
        return self._server.resource


class _Authlib(AuthorizationServer):
    def query_client(self, client_id: str) -> _Client:
        if client_id != CLIENT:
            raise InvalidClientError
        return _Client()

    def save_token(self, token: Any, request: Any) -> None:
        """Access tokens speak for themselves."""

    def create_oauth2_request(self, request: tuple[dict[str, str], str]) -> OAuth2Request:
        headers, body = request
        # It speaks no TLS here, which the library would refuse.
        made = OAuth2Request("POST", "https://loopback/token", headers=headers)
        made.payload = BasicOAuth2Payload(dict(parse_qsl(body)))
        return made

    def handle_response(self, status: int, body: Any, headers: Any) -> tuple[int, Any]:
        del headers
        return status, body

    def send_signal(self, name: str, *args: Any, **kwargs: Any) -> None:
        """Nobody listens."""


@dataclass
class Server:
    """Where it is, whom its tokens are for, its keys, and how often each path was asked for.

    `published` are the keys it shows. `down` makes it fail every request.
    """

    issuer: str
    resource: str = ""
    signing: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "rsa-1", "use": "sig"}))
    curve: ECKey = field(default_factory=lambda: ECKey.generate_key("P-256", {"kid": "ec-1", "use": "sig"}))
    published: list[Any] = field(default_factory=list)
    requests: Counter[str] = field(default_factory=Counter)
    down: bool = False

    def __post_init__(self) -> None:
        self.published = [self.signing, self.curve]

    def token(self, scope: str = "") -> str:
        """An access token as its token endpoint issues it now."""
        return str(_Tokens(self).access_token_generator(_Client(), "client_credentials", None, scope))

    def forged(self, at: int, header: dict[str, Any] | None = None, key: Any = None, **claims: Any) -> str:
        """A token with a valid signature and the claims of a good one, but for what is given; `None` leaves out."""
        good = {
            "iss": self.issuer,
            "aud": self.resource,
            "sub": CLIENT,
            "client_id": CLIENT,
            "iat": at,
            "exp": at + 600,
            "scope": "",
        }
        all_claims = {name: value for name, value in {**good, **claims}.items() if value is not None}
        head = {"typ": "at+jwt", "kid": self.signing.kid, "alg": "RS256", **(header or {})}
        if head["kid"] is None:
            del head["kid"]
        return jwt.encode(all_claims, self.private if key is None else key, algorithm=head.pop("alg"), headers=head)

    @property
    def private(self) -> Any:
        """The signing key as it is kept: to read it from its text again, and examine it, costs more than to sign."""
        return self.signing.private_key

    @property
    def public(self) -> bytes:
        """Its public half, which anybody has."""
        return bytes(self.signing.as_pem(private=False))

    def _answer(self, path: str, headers: dict[str, str], body: str) -> tuple[int, Any]:
        self.requests[path] += 1
        if self.down:
            return 503, {"error": "temporarily_unavailable"}
        if path == "/.well-known/oauth-authorization-server":
            return 200, {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "jwks_uri": f"{self.issuer}/keys",
                "response_types_supported": ["code"],
                "grant_types_supported": ["client_credentials"],
                "token_endpoint_auth_methods_supported": ["client_secret_basic"],
            }
        if path == "/keys":
            return 200, KeySet(self.published).as_dict(private=False)
        if path == "/token":
            server = _Authlib()
            server.register_grant(ClientCredentialsGrant)
            server.register_token_generator("default", _Tokens(self))
            answered: Any = server.create_token_response((headers, body))
            return answered[0], answered[1]
        return 404, {}


@contextmanager
def authorization_server() -> Iterator[Server]:
    """A running server, until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._serve("")

        def do_POST(self) -> None:
            self._serve(self.rfile.read(int(self.headers.get("Content-Length", "0"))).decode())

        def _serve(self, body: str) -> None:
            status, answer = made._answer(self.path, dict(self.headers.items()), body)
            raw = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listening.daemon_threads = True
    made = Server(f"http://127.0.0.1:{listening.server_port}")
    serving = threading.Thread(target=listening.serve_forever, args=(0.05,), daemon=True)
    serving.start()
    try:
        yield made
    finally:
        listening.shutdown()
        listening.server_close()
        serving.join()


def unsigned(claims: dict[str, Any], header: dict[str, Any]) -> str:
    """A token with nothing where the signature belongs."""

    def part(value: dict[str, Any]) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    return f"{part(header)}.{part(claims)}."

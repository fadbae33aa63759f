"""The gate in front of the server: who may not ask gets no further.

Decides what proof a request carries, and what is said when it does not do. Without proof only `/health`, which says
nothing, and the protected resource metadata (RFC 9728) are answered; links of exports are routed before the gate. Every
credential that does not count gets one answer, whatever is wrong with it. Must never know a message.

Where callers may pay instead, a request without any credential is a visitor's, and what it calls is paid for.

    401  missing, unknown, malformed, expired, revoked, foreign, several at once: all alike
    403  known, and lacking a scope (the challenge names the scopes to ask for), or given nothing by any policy
    503  the store of keys or the authorization server cannot be reached; says so of every credential alike
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from anyio import to_thread
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser, BearerAuthBackend
from mcp.server.auth.provider import AccessToken, TokenVerifier
from mcp.server.auth.routes import build_resource_metadata_url, create_protected_resource_routes
from mcp.server.auth.settings import AuthSettings
from pydantic import AnyHttpUrl
from starlette.authentication import AuthCredentials
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from engine.errors import Unavailable
from engine.sight import Caller
from handler.auth.api_key import KEY_PREFIX, ApiKeys
from handler.auth.iam import iam_identity
from handler.auth.identity import Identity
from handler.auth.policies import Policies
from handler.bodies import BodyLimits, BodyRefused, read_body, replayed
from handler.faults import tell
from handler.http import HEALTH_PATH, refuse
from handler.mcp_server import Context
from handler.wire import compact

__all__ = ["Gate", "OAuthServer", "caller_in", "caller_of", "with_gate"]

_CALLER = "hayfork.caller"
"""Where in the scope of a request its caller stands. Only the gate writes there."""

_BEARER = "bearer "

_SOLD = "/mcp"
"""Where a visitor may go: what else there is belongs to somebody."""


@dataclass(frozen=True, slots=True)
class OAuthServer:
    """What OAuth needs: who checks tokens, whose they are, for which address, and which scopes are wanted.

    `scopes` every token must have; `tool_scopes` are wanted beside them by tools.
    """

    verifier: TokenVerifier
    issuer: str
    resource: str
    scopes: tuple[str, ...]
    tool_scopes: Mapping[str, str]

    @property
    def all_scopes(self) -> list[str]:
        """Every scope there is a use for."""
        return list(dict.fromkeys([*self.scopes, *self.tool_scopes.values()]))


@dataclass(frozen=True, slots=True)
class Gate:
    """The kinds of proof a deployment takes; those that are `None` it does not.

    `visitor` is who has no proof, and may pay.
    """

    policies: Policies
    keys: ApiKeys | None = None
    oauth: OAuthServer | None = None
    iam: bool = False
    body: BodyLimits = field(default_factory=BodyLimits)
    visitor: Caller | None = None


def caller_of(ctx: Context) -> Caller:
    """Who the gate found to ask. A request that came past it is a fault of ours."""
    return caller_in(ctx.request.scope if ctx.request is not None else {})


def caller_in(scope: Mapping[str, Any]) -> Caller:
    """The same of a request's scope."""
    caller = scope.get(_CALLER)
    if not isinstance(caller, Caller):
        raise TypeError("a request came past the gate")
    return caller


class _Refused(Exception):
    """`status` with an error's name in the challenge; `scopes` are what a token should have."""

    def __init__(self, status: HTTPStatus, error: str, why: str, scopes: tuple[str, ...] = ()) -> None:
        super().__init__(error)
        self.status = status
        self.error = error
        self.why = why
        self.scopes = scopes


def _unproven() -> _Refused:
    return _Refused(HTTPStatus.UNAUTHORIZED, "invalid_token", "Authentication required")


def with_gate(inner: ASGIApp, gate: Gate) -> ASGIApp:
    """`inner`, reached by requests that prove who asks; their caller is what `caller_of` gives."""
    metadata = _metadata_route(gate.oauth) if gate.oauth is not None else None
    challenge = _Challenge(gate)

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in {"http", "lifespan"}:
            raise _unproven()
        if scope["type"] == "lifespan" or scope["path"] == HEALTH_PATH:
            await inner(scope, receive, send)
            return
        if metadata is not None and scope["path"] == metadata.path:
            await metadata.handle(scope, receive, send)
            return
        try:
            caller, user = await _caller(gate, scope)
            if caller.locked and gate.oauth is not None:
                receive = await _unlocked(gate, gate.oauth, caller, scope, receive)
        except _Refused as refused:
            await challenge.answer(send, refused)
            return
        except BodyRefused as error:
            await refuse(send, error.status, error.message, **error.headers)
            return
        except Unavailable as error:
            tell(error)
            await _answer(
                send, HTTPStatus.SERVICE_UNAVAILABLE, {"error": "temporarily_unavailable"}, ("retry-after", "5")
            )
            return
        known: dict[str, Any] = {_CALLER: caller}
        if user is not None:
            known |= {"user": user, "auth": AuthCredentials(user.scopes)}
        await inner({**scope, **known}, receive, send)

    return guarded


async def _caller(gate: Gate, scope: Scope) -> tuple[Caller, AuthenticatedUser | None]:
    """Who asks, with what exists for them; raises as `_proven`."""
    headers = Headers(scope=scope)
    signed = iam_identity(scope.get("aws.event") or {}) if gate.iam else None
    credentials = _credentials(headers)
    if gate.visitor is not None and scope["path"] == _SOLD and not credentials and signed is None:
        return gate.visitor, None
    identity, user = await _proven(gate, scope, credentials, signed)
    caller = gate.policies.caller(identity)
    if caller is None:
        raise _Refused(HTTPStatus.FORBIDDEN, "access_denied", "No policy is for this caller")
    return caller, user


async def _proven(
    gate: Gate, scope: Scope, credentials: list[str], signed: Identity | None
) -> tuple[Identity, AuthenticatedUser | None]:
    """Who asks, and the SDK's user where a token says so.

    Raises:
        _Refused, Unavailable.
    """
    if len(credentials) + (signed is not None) != 1:
        # Two proofs may be of two callers: which of them asks is not for us to choose.
        raise _unproven()
    if signed is not None:
        return signed, None
    (credential,) = credentials
    if credential.startswith(KEY_PREFIX):
        identity = await to_thread.run_sync(gate.keys.identify, credential) if gate.keys is not None else None
        if identity is None:
            raise _unproven()
        return identity, None
    return await _by_token(gate.oauth, scope)


def _credentials(headers: Headers) -> list[str]:
    """Bearer tokens and keys, in any number; a signature of AWS in the same header is the gateway's to check."""
    found = headers.getlist("x-api-key")
    if any(not key.startswith(KEY_PREFIX) for key in found):
        raise _unproven()
    for value in headers.getlist("authorization"):
        if value.lower().startswith(_BEARER):
            found.append(value[len(_BEARER) :].strip())
    return found


async def _by_token(oauth: OAuthServer | None, scope: Scope) -> tuple[Identity, AuthenticatedUser]:
    if oauth is None:
        raise _unproven()
    backend = BearerAuthBackend(oauth.verifier, resource_server_url=AnyHttpUrl(oauth.resource))
    found = await backend.authenticate(HTTPConnection(scope))
    if found is None:
        raise _unproven()
    _, user = found
    missing = [name for name in oauth.scopes if name not in user.scopes]
    if missing:
        raise _lacking(oauth.scopes)
    return _of_token(user.access_token, oauth.issuer), user


def _of_token(token: AccessToken, issuer: str) -> Identity:
    """The issuer's subject, by way of a client."""
    names = [f"oauth:{issuer}#{token.subject}"]
    if token.client_id:
        names.append(f"oauth-client:{issuer}#{token.client_id}")
    return Identity(tuple(names), frozenset(token.scopes))


def _lacking(scopes: tuple[str, ...]) -> _Refused:
    return _Refused(HTTPStatus.FORBIDDEN, "insufficient_scope", f"Required scope: {' '.join(scopes)}", scopes)


async def _unlocked(gate: Gate, oauth: OAuthServer, caller: Caller, scope: Scope, receive: Receive) -> Receive:
    """The request as it came, unless it calls a tool that wants a scope its token lacks.

    Raises:
        _Refused: with the scopes that suffice for the call, those every token must have included.
        BodyRefused: it is not read.
    """
    body = await read_body(scope, receive, gate.body)
    tool = _tool_called(body)
    if tool is not None and tool in caller.locked and caller.has(tool):
        raise _lacking((*oauth.scopes, oauth.tool_scopes[tool]))
    return replayed(body, receive)


def _tool_called(body: bytes) -> str | None:
    """The name in a tool call. What does not read as one is the server's to judge; it locks tools once more."""
    try:
        found: Any = json.loads(body)
        name = found["params"]["name"] if found["method"] == "tools/call" else None
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return name if isinstance(name, str) else None


def _metadata_route(oauth: OAuthServer) -> Route:
    # Read by the SDK's own settings, which add no slash to an issuer: clients compare it letter by letter.
    issuer = AuthSettings.model_validate(
        {"issuer_url": oauth.issuer, "resource_server_url": oauth.resource, "validate_token_resource": True}
    ).issuer_url
    (route,) = create_protected_resource_routes(
        AnyHttpUrl(oauth.resource), [issuer], oauth.all_scopes or None, "Hayfork"
    )
    return route


class _Challenge:
    """The answer of whoever is refused, with `WWW-Authenticate` as RFC 6750 and RFC 9728 write it."""

    def __init__(self, gate: Gate) -> None:
        self._bearer = gate.oauth is not None or gate.keys is not None or not gate.iam
        self._metadata = (
            str(build_resource_metadata_url(AnyHttpUrl(gate.oauth.resource))) if gate.oauth is not None else ""
        )
        self._scopes = gate.oauth.scopes if gate.oauth is not None else ()

    async def answer(self, send: Send, refused: _Refused) -> None:
        """Refuse."""
        parts = [f'error="{refused.error}"', f'error_description="{refused.why}"']
        scopes = refused.scopes or (self._scopes if refused.status == HTTPStatus.UNAUTHORIZED else ())
        if scopes:
            parts.append(f'scope="{" ".join(scopes)}"')
        if self._metadata:
            parts.append(f'resource_metadata="{self._metadata}"')
        told = f"Bearer {', '.join(parts)}" if self._bearer else "AWS4-HMAC-SHA256"
        body = {"error": refused.error, "error_description": refused.why}
        await _answer(send, refused.status, body, ("www-authenticate", told))


async def _answer(send: Send, status: HTTPStatus, value: object, *headers: tuple[str, str]) -> None:
    body = compact(value)
    all_headers = (
        ("content-type", "application/json"),
        ("content-length", str(len(body))),
        *headers,
    )
    raw = [(name.encode("ascii"), text.encode("ascii")) for name, text in all_headers]
    await send({"type": "http.response.start", "status": int(status), "headers": raw})
    await send({"type": "http.response.body", "body": body, "more_body": False})

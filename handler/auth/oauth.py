"""Access tokens of an OAuth 2.1 authorization server: JWTs, checked here as its resource server.

Decides when a token counts: signed by a key of the configured issuer with an allowed algorithm, issued for this server
(RFC 8707), and valid now. The key is found by the id the token names, never by an address in it. Must never know a
policy.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jwt
from anyio import to_thread
from jwt.exceptions import PyJWTError
from mcp.server.auth.provider import AccessToken, TokenVerifier

from handler.auth.jwks import KeySet

__all__ = ["JwtVerifier", "OAuthRules"]

_LEEWAY_SECONDS = 30
"""Clocks of two machines differ by less."""

_MOST_CHARS = 16_384
"""More than headers hold."""

_SUBJECT_CHARS = 255
"""As OpenID Connect bounds it."""

_JWT = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class OAuthRules:
    """What a token must be: whose, for whom, and how signed."""

    issuer: str
    audience: str
    algorithms: tuple[str, ...]


class JwtVerifier(TokenVerifier):
    """The SDK's port for tokens. `clock` gives microseconds since 1970, UTC."""

    def __init__(self, rules: OAuthRules, keys: KeySet, clock: Callable[[], int]) -> None:
        self._rules = rules
        self._keys = keys
        self._clock = clock

    async def verify_token(self, token: str) -> AccessToken | None:
        """What a token grants, `None` when it does not count.

        Raises:
            Unavailable: the issuer's keys cannot be had.
        """
        return await to_thread.run_sync(self.verified, token)

    def verified(self, token: str) -> AccessToken | None:
        """The same; may block while keys are fetched."""
        if len(token) > _MOST_CHARS or _JWT.fullmatch(token) is None:
            return None
        try:
            claims = self._claims(token)
        except (PyJWTError, ValueError, RecursionError):
            return None
        return None if claims is None else self._granted(token, claims)

    def _claims(self, token: str) -> dict[str, Any] | None:
        header = jwt.get_unverified_header(token)
        key_id, algorithm = header.get("kid"), header.get("alg")
        # An extension that must be understood is not: none is.
        if not isinstance(key_id, str) or algorithm not in self._rules.algorithms or "crit" in header:
            return None
        key = self._keys.key(key_id, algorithm)
        if key is None:
            return None
        claims: dict[str, Any] = jwt.decode(
            token,
            key,
            algorithms=[algorithm],
            audience=self._rules.audience,
            issuer=self._rules.issuer,
            # Times are compared with our own clock, below.
            options={
                "require": ["exp", "iss", "aud", "sub"],
                "verify_exp": False,
                "verify_nbf": False,
                "verify_iat": False,
            },
        )
        return claims if self._is_valid_now(claims) else None

    def _is_valid_now(self, claims: Mapping[str, Any]) -> bool:
        now = self._clock() / 1_000_000
        for name in ("exp", "nbf", "iat"):
            at = claims.get(name)
            if at is None and name != "exp":
                continue
            if isinstance(at, bool) or not isinstance(at, int | float):
                return False
            # Written so that a NaN is refused.
            if not (now < at + _LEEWAY_SECONDS if name == "exp" else at - _LEEWAY_SECONDS <= now):
                return False
        return True

    def _granted(self, token: str, claims: dict[str, Any]) -> AccessToken | None:
        subject = claims["sub"]
        if not isinstance(subject, str) or not 0 < len(subject) <= _SUBJECT_CHARS or not subject.isprintable():
            return None
        client = claims.get("client_id", claims.get("azp"))
        # `expires_at` is left out: the SDK would compare it once more, without leeway and with another clock.
        return AccessToken(
            token=token,
            client_id=client if isinstance(client, str) else "",
            scopes=sorted(_scopes(claims)),
            resource=self._rules.audience,
            subject=subject,
            claims=claims,
        )


def _scopes(claims: Mapping[str, Any]) -> Sequence[str]:
    """`scope` as RFC 9068 writes it, else the list `scp` that some servers write."""
    found = claims.get("scope", claims.get("scp", ""))
    if isinstance(found, str):
        return found.split()
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []

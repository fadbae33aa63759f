"""The public keys of an authorization server, fetched when they are needed.

Decides when to fetch: at the first token, when the keys have grown old, and for a key id that is not among them, which
is how a server's new key is noticed. At most once in a while whatever tokens name, so that nobody can have us ask a
server without end; keys that cannot be renewed are used for a day. Must never know a token.
"""

import json
import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from http.client import HTTPException
from ipaddress import ip_address
from typing import Any
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from jwt import PyJWK
from jwt.exceptions import PyJWTError

from engine.errors import BadInput, Unavailable, quoted

__all__ = ["KeySet", "check_address", "discover", "fetch_json"]

logger = logging.getLogger(__name__)

_MOST_BYTES = 262_144
"""A key set has a few thousand bytes."""

_TIMEOUT_SECONDS = 5.0

_FRESH_MICROSECONDS = 600_000_000
_PAUSE_MICROSECONDS = 30_000_000
"""Between two fetches, whether they went well or not."""

_USABLE_MICROSECONDS = 86_400_000_000
"""A server may be out of reach for a day before its tokens are refused: a key that leaked is withdrawn by then."""

_TYPES: Mapping[str, str] = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}
"""Types of keys by the first letters of the algorithms that use them. A shared secret is no type of ours."""


class KeySet:
    """Keys by id. `fetch` gives the key set's JSON; `clock` microseconds since 1970, UTC. Safe in several threads."""

    def __init__(self, fetch: Callable[[], Any], clock: Callable[[], int]) -> None:
        self._fetch = fetch
        self._clock = clock
        self._lock = threading.Lock()
        self._keys: dict[str, dict[str, Any]] = {}
        self._fetched_at: int | None = None
        self._tried_at: int | None = None

    def key(self, key_id: str, algorithm: str) -> PyJWK | None:
        """The public key of this id for this algorithm, `None` when the server has none such.

        Raises:
            Unavailable: there are no keys to look among, and none can be had now.
        """
        now = self._clock()
        if key_id not in self._keys or not self._within(self._fetched_at, now, _FRESH_MICROSECONDS):
            self._look(now)
        if not self._within(self._fetched_at, now, _USABLE_MICROSECONDS):
            raise Unavailable(
                "store_unreachable", "the authorization server's keys cannot be had", next_step="call again"
            )
        found = self._keys.get(key_id)
        if found is None or found["kty"] != _TYPES[algorithm[:2]] or found.get("alg", algorithm) != algorithm:
            return None
        try:
            return PyJWK(found, algorithm)
        except PyJWTError:
            return None

    def _look(self, now: int) -> None:
        """Fetch, unless that was done just now. One at a time; who has keys to look among does not wait for it."""
        if not self._lock.acquire(blocking=self._fetched_at is None):
            return
        try:
            if not self._within(self._tried_at, now, _PAUSE_MICROSECONDS):
                self._renew(now)
        finally:
            self._lock.release()

    def _renew(self, now: int) -> None:
        self._tried_at = now
        try:
            found = self._fetch()
        except Unavailable as error:
            logger.warning("the authorization server's keys cannot be had: %s", error.detail)
            return
        self._keys, self._fetched_at = dict(_keys(found)), now

    @staticmethod
    def _within(then: int | None, now: int, span: int) -> bool:
        return then is not None and 0 <= now - then < span


def _keys(found: Any) -> Iterable[tuple[str, dict[str, Any]]]:
    """Keys that can check a signature and have an id; what a server keeps for other purposes is passed over."""
    listed = found.get("keys") if isinstance(found, Mapping) else None
    for each in listed if isinstance(listed, list) else ():
        if (
            isinstance(each, dict)
            and isinstance(each.get("kid"), str)
            and each.get("kty") in _TYPES.values()
            and each.get("use", "sig") == "sig"
        ):
            yield each["kid"], each


def discover(issuer: str, fetch: Callable[[str], Any]) -> str:
    """The address of an issuer's key set, by its metadata (RFC 8414, else OpenID Connect Discovery).

    Raises:
        Unavailable: there is no metadata, or it is another issuer's.
    """
    split = urlsplit(issuer)
    path = split.path.rstrip("/")
    places = (
        f"{split.scheme}://{split.netloc}/.well-known/oauth-authorization-server{path}",
        f"{issuer.rstrip('/')}/.well-known/openid-configuration",
    )
    for place in places:
        try:
            metadata = fetch(place)
        except Unavailable:
            continue
        if isinstance(metadata, Mapping) and metadata.get("issuer") == issuer:
            address = metadata.get("jwks_uri")
            if isinstance(address, str):
                return address
    raise Unavailable(
        "store_unreachable", "the authorization server's metadata cannot be had", detail="no metadata of the issuer"
    )


def check_address(setting: str, address: str) -> None:
    """Keys come by TLS, or from this machine.

    Raises:
        BadInput: `bad_setting`.
    """
    split = urlsplit(address)
    if split.scheme == "https" and split.hostname:
        return
    if split.scheme != "http" or not _is_loopback(split.hostname or ""):
        raise BadInput("bad_setting", f"{setting} {quoted(address)}", next_step="give an https address")


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


class _Stay(HTTPRedirectHandler):
    """Follows nothing: the address is what was configured, or what the issuer says itself."""

    def redirect_request(self, *_: Any) -> Request | None:
        return None


def fetch_json(address: str) -> Any:
    """A small JSON document.

    Raises:
        Unavailable: it cannot be had; the detail holds no address.
    """
    try:
        check_address("address", address)
        with build_opener(_Stay).open(Request(address), timeout=_TIMEOUT_SECONDS) as response:  # noqa: S310 - checked above
            raw = response.read(_MOST_BYTES)
        # One cut in the middle does not parse.
        return json.loads(raw)
    except (URLError, OSError, HTTPException, ValueError, RecursionError, BadInput) as error:
        raise Unavailable(
            "store_unreachable", "the authorization server did not answer as it should", detail=type(error).__name__
        ) from error

"""API keys: `hf_<id>_<secret>`, where the id is public and the secret has 256 bits.

Decides how a key is made, and what it takes to recognise one. Of a secret only the SHA-256 is kept: it is random, so no
slow hash is needed. An id that is not there takes the same reads and the same comparison as one that is, and both are
remembered for as long, so that time tells nothing. Must never know what a key opens.
"""

import hmac
import re
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256

from engine.errors import Unavailable
from engine.ports import Key, KeyStore
from handler.auth.identity import Identity

__all__ = ["KEY_NAME", "KEY_PREFIX", "ApiKeys", "mint_key"]

KEY_PREFIX = "hf_"

KEY_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,79}")
"""Whom a key speaks for: what stands in a policy without quotes or patterns."""

_FORM = re.compile(r"hf_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")
_DUMMY = sha256(secrets.token_bytes(32)).digest()

_REMEMBERED_MICROSECONDS = 30_000_000
"""A revocation counts everywhere after so long: half of the minute that is promised."""

_USE_MICROSECONDS = 60_000_000
"""A use is noted once in so long: each is a write."""

_MOST = 4_096
"""Keys remembered: whoever guesses ids fills no memory, and costs others a read at most."""


def mint_key(name: str, now: int, expires_at: int | None = None) -> tuple[Key, str]:
    """A new key and what its holder is given, which is kept nowhere."""
    key_id, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
    return Key(key_id, name, _digest(secret), now, expires_at), f"{KEY_PREFIX}{key_id}_{secret}"


@dataclass(frozen=True, slots=True)
class _Remembered:
    key: Key | None
    read_at: int


class ApiKeys:
    """Recognises keys, in any thread; a call may block. `clock` gives microseconds since 1970, UTC."""

    def __init__(self, store: KeyStore, clock: Callable[[], int]) -> None:
        self._store = store
        self._clock = clock
        self._remembered: OrderedDict[str, _Remembered] = OrderedDict()
        self._lock = threading.Lock()

    def identify(self, credential: str) -> Identity | None:
        """Whom a key speaks for; `None` when it is none of ours, expired or revoked.

        Raises:
            Unavailable: the store cannot be reached.
        """
        found = _FORM.fullmatch(credential)
        if found is None:
            return None
        now = self._clock()
        key = self._key(found[1], now)
        same = hmac.compare_digest(_digest(found[2]), key.digest if key is not None else _DUMMY)
        if key is None or not same or not key.opens(now):
            return None
        self._note_use(key, now)
        return Identity((f"key:{key.name}", f"key-id:{key.key_id}"))

    def _key(self, key_id: str, now: int) -> Key | None:
        with self._lock:
            held = self._remembered.get(key_id)
            if held is not None and 0 <= now - held.read_at < _REMEMBERED_MICROSECONDS:
                self._remembered.move_to_end(key_id)
                return held.key
        key = self._store.get(key_id)
        self._remember(key_id, _Remembered(key, now))
        return key

    def _remember(self, key_id: str, held: _Remembered) -> None:
        with self._lock:
            self._remembered[key_id] = held
            self._remembered.move_to_end(key_id)
            while len(self._remembered) > _MOST:
                self._remembered.popitem(last=False)

    def _note_use(self, key: Key, now: int) -> None:
        if key.used_at is not None and now - key.used_at < _USE_MICROSECONDS:
            return
        with self._lock:
            held = self._remembered.get(key.key_id)
            if held is not None and held.key is not None:
                # What was read and when stays: a use must not put off a revocation, nor undo one read meanwhile.
                self._remembered[key.key_id] = replace(held, key=replace(held.key, used_at=now))
        # A key is good without the note.
        with suppress(Unavailable):
            self._store.used(key.key_id, now)


def _digest(secret: str) -> bytes:
    return sha256(secret.encode("ascii")).digest()

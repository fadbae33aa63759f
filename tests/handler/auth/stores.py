"""A clock that a test moves, and a key store that counts what is asked of it."""

from dataclasses import dataclass, field

from engine.errors import Unavailable
from engine.ports import Key, KeyStore

__all__ = ["NOON", "Asked", "Clock"]

NOON = 1_796_126_400_000_000
"""2026-12-01 12:00 UTC in microseconds."""

SECOND = 1_000_000


@dataclass
class Clock:
    """Microseconds since 1970, UTC."""

    now: int = NOON

    def __call__(self) -> int:
        return self.now

    def pass_seconds(self, seconds: float) -> None:
        self.now += int(seconds * SECOND)


@dataclass
class Asked(KeyStore):
    """A key store in front of another, with the calls it passed on; out of reach when `gone`."""

    inner: KeyStore
    calls: list[str] = field(default_factory=list)
    gone: bool = False

    def add(self, key: Key) -> bool:
        return self.inner.add(key)

    def get(self, key_id: str) -> Key | None:
        self._note("get")
        return self.inner.get(key_id)

    def all_keys(self) -> list[Key]:
        return self.inner.all_keys()

    def revoke(self, key_id: str, at: int) -> bool:
        return self.inner.revoke(key_id, at)

    def used(self, key_id: str, at: int) -> None:
        self._note("used")
        self.inner.used(key_id, at)

    def _note(self, call: str) -> None:
        self.calls.append(call)
        if self.gone:
            raise Unavailable("store_unreachable", "the store is out of reach")

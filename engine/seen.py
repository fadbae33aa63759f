"""Sessions: what one caller has been shown, kept as batches that are claimed one by one.

Decides who may use a handle, when it ends, what counts as seen, and which batch comes next. Must never
know texts, or where batches are kept.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from engine.errors import BadInput, NotFound
from engine.limits import Limits
from engine.ports import Batch, SeenStore
from engine.requests import Request
from engine.times import SECOND

__all__ = ["Session", "claim", "digest", "open_session", "packed", "successor", "unpacked"]

Keys = NDArray[np.uint64]


@dataclass(frozen=True)
class Session:
    """One handle as it was when its batches were read; without batches it exists for nobody yet."""

    handle: str
    caller_id: str
    batches: tuple[Batch, ...] = ()

    @property
    def newest(self) -> int:
        """Number of the newest batch, 0 before the first."""
        return self.batches[-1].number if self.batches else 0

    def before(self, number: int) -> "Session":
        """The session as it was before a batch."""
        return replace(self, batches=tuple(batch for batch in self.batches if batch.number < number))

    @cached_property
    def keys(self) -> Keys:
        """Sorted keys of all messages shown, as hits or around them."""
        return np.unique(unpacked(b"".join(part for batch in self.batches for part in (batch.shown, batch.around))))

    @cached_property
    def groups(self) -> Keys:
        """Sorted keys of all copy groups that a shown hit stood for."""
        return np.unique(unpacked(b"".join(batch.groups for batch in self.batches)))

    def seen(self, message_keys: Keys, copy_keys: Keys) -> NDArray[np.bool_]:
        """For each message whether this session has been shown it, or a hit that stood for it."""
        return np.isin(message_keys, self.keys) | np.isin(copy_keys, self.groups)


def packed(keys: Iterable[int]) -> bytes:
    """Keys as big-endian 8-byte integers, in order."""
    return np.fromiter(keys, dtype=np.uint64).astype(">u8").tobytes()


def unpacked(raw: bytes) -> Keys:
    """What `packed` packed."""
    return np.frombuffer(raw, dtype=">u8").astype(np.uint64)


def open_session(store: SeenStore, handle: str, caller_id: str, now: int, limits: Limits) -> Session:
    """Read a session that this caller began and that has not ended.

    An invented handle, another caller's and one whose time is over are the same error.

    Raises:
        NotFound: `unknown_session`.
        Unavailable: the store cannot be reached.
    """
    batches = tuple(store.batches(handle))
    unknown = NotFound(
        "unknown_session",
        "this session is unknown or expired",
        next_step="call again without session; earlier messages count as unseen",
    )
    if not batches or any(batch.caller_id != caller_id for batch in batches):
        raise unknown
    idle = now - batches[-1].made_at
    age = now - batches[0].started_at
    if idle > limits.session_idle_seconds * SECOND or age > limits.session_max_seconds * SECOND:
        raise unknown
    return Session(handle, caller_id, batches)


def digest(request: Request) -> str:
    """Identifies tool and arguments, without `session` and `after_batch`."""
    plain = asdict(request)
    for part in (plain, plain.get("search", {})):
        part.pop("session", None)
        part.pop("after_batch", None)
    text = json.dumps([type(request).__name__, plain], sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def successor(session: Session, after_batch: int, wanted: str) -> Batch | None:
    """The batch that follows `after_batch`, to be shown again; `None` when it is still to be claimed.

    Raises:
        BadInput: `bad_batch` when there is no such batch yet, or its successor answered other arguments.
    """
    if after_batch > session.newest:
        raise BadInput(
            "bad_batch",
            f"after_batch {after_batch} is not a batch of this session, whose newest is {session.newest}",
            next_step="give the last batch received, or leave after_batch out",
        )
    for batch in session.batches:
        if batch.parent == after_batch:
            if batch.digest == wanted:
                return batch
            raise BadInput(
                "bad_batch",
                f"batch {batch.number} followed batch {after_batch} with other arguments",
                next_step="repeat the very arguments of the lost call, or leave after_batch out to go on",
            )
    return None


def claim(
    store: SeenStore,
    session: Session,
    wanted: str,
    now: int,
    limits: Limits,
    *,
    shown: Sequence[int],
    around: Sequence[int] = (),
    groups: Sequence[int] = (),
) -> Batch | None:
    """Write the session's next batch; `None` when another call took its number.

    Raises:
        Unavailable: the store cannot be reached.
    """
    batch = Batch(
        number=session.newest + 1,
        parent=session.newest,
        caller_id=session.caller_id,
        digest=wanted,
        made_at=now,
        started_at=session.batches[0].started_at if session.batches else now,
        shown=packed(shown),
        around=packed(around),
        groups=packed(groups),
    )
    expires_at = batch.started_at + limits.session_max_seconds * SECOND
    return batch if store.claim(session.handle, batch, expires_at) else None

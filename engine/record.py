"""Recording what a call shows: the session to record in, and the batch that was claimed for it.

Search and thread show again what was seen, so they answer even when the store cannot be reached; they say so. Must
never know how a page was made.
"""

from collections.abc import Sequence

from engine.call import Call
from engine.deadline import check_deadline
from engine.errors import Unavailable
from engine.ports import Batch
from engine.seen import Session, claim, open_session

__all__ = ["UNRECORDED", "record", "reopen", "session_for"]

UNRECORDED = "the session store did not answer: what is shown here is not recorded as seen"


def reopen(call: Call, handle: str) -> Session:
    """The session of a handle as it is now; raises as `open_session`."""
    return open_session(call.seen, handle, call.caller.caller_id, call.now, call.limits)


def session_for(call: Call, handle: str | None) -> Session | None:
    """The session named, a new one where none is, or `None` while the store cannot be reached.

    Raises:
        NotFound: `unknown_session`.
    """
    if handle is None:
        return Session(call.mint(), call.caller.caller_id)
    try:
        return reopen(call, handle)
    except Unavailable:
        return None


def claim_rows(
    call: Call,
    session: Session,
    wanted: str,
    *,
    shown: Sequence[int],
    around: Sequence[int],
    groups: Sequence[int] = (),
) -> Batch | None:
    """Claim the next batch for these rows; `None` when another call was first.

    Raises:
        Unavailable: as `claim`; `too_slow` where the caller has been told so already and would not see them.
    """
    check_deadline()
    corpus = call.view.corpus
    return claim(
        call.seen,
        session,
        wanted,
        call.now,
        call.limits,
        shown=corpus.message_keys_of(shown),
        around=corpus.message_keys_of(around),
        groups=corpus.copy_keys_of(groups),
    )


def record(
    call: Call,
    session: Session,
    wanted: str,
    *,
    shown: Sequence[int],
    around: Sequence[int],
    groups: Sequence[int] = (),
) -> Batch | None:
    """Claim whichever batch comes next; `None` when the store cannot be reached or other calls kept coming first."""
    try:
        for _ in range(call.limits.claim_attempts):
            batch = claim_rows(call, session, wanted, shown=shown, around=around, groups=groups)
            if batch is not None:
                return batch
            session = reopen(call, session.handle)
    except Unavailable:
        pass
    return None

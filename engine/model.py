"""The message, as a source gives it and as a snapshot keeps it, and how its ids are made.

Decides which fields a message has. Must never know how they are stored or searched. Times are integers:
microseconds since 1970 in UTC, everywhere in the engine; text forms of times are made at the edge.
"""

from collections import Counter
from dataclasses import dataclass, field
from hashlib import blake2b

__all__ = [
    "ACTIVITY",
    "BROADCAST",
    "TOMBSTONE",
    "UNKNOWN_ROLE",
    "Message",
    "Problem",
    "SourceMessage",
    "SourceReport",
    "message_id_of",
    "message_key_of",
]

ACTIVITY = "activity"
"""The kind of what nobody said: joins, renames, pins. Stored, searched only when asked for by kind."""

TOMBSTONE = "tombstone"
"""The kind of a deleted root whose replies remain: shown in its thread, never searched nor counted."""

UNKNOWN_ROLE = "unknown"
"""The role of an author no rule knows."""

BROADCAST = "*"
"""The addressee role that matches every `to_role` filter."""


def message_id_of(conversation_id: str, native_id: str) -> str:
    """The stable id of a message: `<conversation_id>:<native id>`."""
    return f"{conversation_id}:{native_id}"


def message_key_of(message_id: str) -> int:
    """First 8 bytes, big endian, of BLAKE2b of the id: what a seen-set stores."""
    return int.from_bytes(blake2b(message_id.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


@dataclass(frozen=True, slots=True)
class SourceMessage:
    """One message as a source yields it, before folding and numbering.

    `native_id` is unique within its conversation; `thread_native_id` is the native id of the thread's
    root, `None` outside a thread. `sent_at` and `edited_at` are microseconds since 1970, UTC.
    `attributes` is a JSON object as text.
    """

    conversation_id: str
    conversation: str
    native_id: str
    sent_at: int
    author_id: str
    author: str
    body: str
    thread_native_id: str | None = None
    from_role: str = UNKNOWN_ROLE
    to_role: str | None = None
    kind: str = "message"
    status: str | None = None
    topic: str = ""
    link: str | None = None
    edited_at: int | None = None
    attributes: str | None = None

    @property
    def message_id(self) -> str:
        """`<conversation_id>:<native id>`."""
        return message_id_of(self.conversation_id, self.native_id)

    @property
    def thread_id(self) -> str:
        """`message_id` of the thread's root; its own id outside a thread."""
        return message_id_of(self.conversation_id, self.thread_native_id or self.native_id)


@dataclass(frozen=True, slots=True)
class Message:
    """One stored message with its original texts, as the snapshot gives it back."""

    row: int
    message_id: str
    conversation_id: str
    conversation: str
    thread_id: str
    sent_at: int
    author_id: str
    author: str
    from_role: str
    to_role: str | None
    kind: str
    status: str | None
    topic: str
    body: str
    link: str | None
    edited_at: int | None
    attributes: str | None


@dataclass(frozen=True, slots=True)
class Problem:
    """Something a refresh could not use: where it stands (a file or row of the source), and why."""

    where: str
    why: str


@dataclass(slots=True)
class SourceReport:
    """What a source read, and what it left out, by reason. Filled while its messages are drawn.

    `read` counts every message-like record met; read = yielded + sum(skipped). `problems` names the
    first `max_problems` of them in full; `problem_count` counts all. `redacted` counts secrets by kind.
    """

    max_problems: int = 100
    read: int = 0
    yielded: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)
    problem_count: int = 0
    redacted: Counter[str] = field(default_factory=Counter)

    def skip(self, reason: str, count: int = 1) -> None:
        """Count `count` records left out for `reason`, a short phrase that is the same each time."""
        self.skipped[reason] += count

    def problem(self, where: str, why: str) -> None:
        """Name something broken. `where` is relative to the source, never an absolute path."""
        self.problem_count += 1
        if len(self.problems) < self.max_problems:
            self.problems.append(Problem(where, why))

"""What a story is made of: planned messages before they have a place in the stream, and the answer key.

Decides shapes only. Must never know which stories there are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from engine.model import message_id_of
from engine.synth.people import Conversation, Person
from engine.synth.talk import Text

__all__ = ["AnswerKey", "Call", "Said", "Story", "moment", "ts_of"]


class Said(NamedTuple):
    """One row of the corpus, in order of time within its conversation.

    `at`, `thread` (the root's time) and `edited` are microseconds since 1970, UTC. `subtype` is Slack's,
    empty for a plain message; `file` and `card` are Slack's objects of a shared file and of a bot's card.
    `text.body` is what a reader of the export makes of all of it; `replies` tells a root how many follow.
    """

    conversation: Conversation
    at: int
    author: Person
    text: Text
    thread: int | None = None
    subtype: str = ""
    replies: int = 0
    edited: int | None = None
    file: Mapping[str, object] | None = None
    card: Mapping[str, object] | None = None

    @property
    def message_id(self) -> str:
        """`<conversation id>:<ts>`."""
        return message_id_of(self.conversation.conversation_id, ts_of(self.at))


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call that helps to answer: the tool's name and its arguments as TOOLS writes them."""

    tool: str
    arguments: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Story:
    """A planted story: a question, calls that answer it, the answer, counts, and the messages that hold it.

    `counts` are exact, and `matches` those of the first call's query. `message_ids` are empty where a story
    is only a count.
    """

    name: str
    question: str
    calls: Sequence[Call]
    answer: str
    counts: Mapping[str, int]
    message_ids: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class AnswerKey:
    """What is known of a corpus.

    `rows` is all it holds, `kinds` how many a reader makes of each kind, `body_bytes` their texts in UTF-8.
    """

    messages: int
    seed: int
    conversations: int
    rows: int
    body_bytes: int
    kinds: Mapping[str, int]
    subtypes: Mapping[str, int]
    stories: Sequence[Story] = field(default_factory=tuple)

    def story(self, name: str) -> Story:
        """The story of that name.

        Raises:
            KeyError: there is none.
        """
        for story in self.stories:
            if story.name == name:
                return story
        raise KeyError(name)


def ts_of(at: int) -> str:
    """Microseconds since 1970 as Slack's `ts`: seconds, a dot, six digits."""
    return f"{at // 1_000_000}.{at % 1_000_000:06d}"


def moment(month: int, day: int, hour: int = 12, minute: int = 0, micro: int = 0) -> int:
    """Microseconds since 1970 of a time in 2025, UTC."""
    return int(datetime(2025, month, day, hour, minute, tzinfo=UTC).timestamp()) * 1_000_000 + micro

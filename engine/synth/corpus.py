"""The whole corpus as a stream: conversation by conversation, each in order of time, stories in their places.

Decides when people speak, who speaks, what is a thread, a copy, an edit. Holds one day of one conversation
and the planted messages in memory, whatever the size. Must never know how a corpus is written down.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from engine.errors import BadInput
from engine.model import ACTIVITY, TOMBSTONE, SourceMessage
from engine.synth.chance import pick, random_for, shares, zipf
from engine.synth.openai import openai_messages, openai_story
from engine.synth.people import Conversation, Person, Workspace, workspace
from engine.synth.planted import Said, Story, moment, ts_of
from engine.synth.shapes import activity, bot_card, deleted, shapes, shared_file
from engine.synth.stories import small_stories
from engine.synth.talk import Talk, Text

__all__ = [
    "DAY",
    "MAX_MESSAGES",
    "MIN_MESSAGES",
    "ZONE_HOURS",
    "Plan",
    "generate",
    "kind_of",
    "local_day",
    "plan",
    "rows",
]

MIN_MESSAGES = 1_000
"""The planted stories take about 330 messages, and should be a needle in something."""
MAX_MESSAGES = 10_000_000
"""Beyond that the few conversations of one workspace are no likeness of anything."""

ZONE_HOURS = -7
"""The workspace's zone: Phoenix, which is seven hours behind UTC all year."""

DAY = 86_400_000_000
_YEAR_DAYS = 365
_START = moment(1, 1, 0) - ZONE_HOURS * 3_600_000_000

_HOURS = tuple(
    hour
    for hour, weight in enumerate((6, 7, 7, 6, 4, 3, 3, 4, 6, 8, 9, 9, 7, 6, 7, 7, 6, 5, 4, 4, 4, 4, 5, 5))
    for _ in range(weight)
)
"""The hour of a talk in the workspace's zone: clients and teammates sit all around the world."""

_WEEK = (20, 22, 21, 4, 3, 19, 21)
"""Weights of the days of a week from 1 January 2025, a Wednesday."""

_ACTIVITIES = zipf(("channel_join", "channel_leave", "pinned_item", "channel_topic", "channel_purpose", "bot_add"), 64)
_FILES = (
    "screenshot.png",
    "report.pdf",
    "trace.log",
    "export.csv",
    "contract.docx",
    "схема.png",
    "見積書.xlsx",
)
_SHY_BOT = "Migration Wren"
"""This bot speaks in its story only."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a corpus will be: the workspace, each conversation's planted messages and number of further ones.

    `planted` is by conversation id and sorted by time; `quotas` are in the workspace's order. `stories` lack
    only what has to be counted on the way.
    """

    messages: int
    seed: int
    place: Workspace
    planted: Mapping[str, Sequence[Said]]
    quotas: Sequence[int]
    stories: Sequence[Story]


def plan(messages: int, seed: int) -> Plan:
    """A checked plan for `messages` rows.

    Raises:
        BadInput: `bad_messages` when there are too few for the stories or too many.
    """
    if not MIN_MESSAGES <= messages <= MAX_MESSAGES:
        raise BadInput(
            "bad_messages",
            f"a corpus of {messages} messages cannot be made",
            next_step=f"give {MIN_MESSAGES} to {MAX_MESSAGES}",
        )
    place = workspace()
    about, doubts = openai_messages(place, seed)
    small, stories = small_stories(place, seed)
    everything = sorted(about + small + shapes(place, seed), key=lambda said: said.at)
    planted: dict[str, list[Said]] = {c.conversation_id: [] for c in place.conversations}
    for said in everything:
        planted[said.conversation.conversation_id].append(said)
    quotas = shares(messages - len(everything), [c.weight for c in place.conversations])
    return Plan(messages, seed, place, planted, quotas, (*openai_story(about, doubts), *stories))


def local_day(at: int) -> int:
    """The day of the year in the workspace's zone, 0 for 1 January."""
    return (at - _START) // DAY


def _times(rng: Random, start: int, count: int, taken: set[int]) -> list[int]:
    """`count` different moments of the day from `start` on, in runs with pauses, none of them `taken`."""
    draw = rng.random
    times: set[int] = set()
    at = left = 0
    while len(times) < count:
        if left == 0:
            left = 1 + int(draw() * 12)
            at = _HOURS[int(draw() * len(_HOURS))] * 3_600_000_000 + int(draw() * 3_600_000_000)
        else:
            slow = draw()
            at += 4_000_000 + int(slow * slow * slow * 420_000_000)
        left -= 1
        moment_ = start + at % DAY
        if moment_ not in taken:
            times.add(moment_)
    return sorted(times)


class _Room:
    """The ordinary talk of one conversation while it is made: open threads, recent texts, what is left."""

    def __init__(self, conversation: Conversation, quota: int, rng: Random) -> None:
        self._conversation = conversation
        self._rng = rng
        self._talk = Talk(conversation, rng)
        self._left = quota
        self._open: list[tuple[int, int]] = []
        self._owed = 0
        self._recent: list[Text] = []
        self._bots = [b for b in conversation.bots if b.real_name != _SHY_BOT]
        busy = conversation.name in {"ci-status", "alerts"}
        self._bot_share = (0.75 if busy else 0.08) if self._bots else 0.0

    def next(self, at: int) -> Said:
        """The message at `at`."""
        draw = self._rng.random
        owed = self._owed
        self._left -= 1
        if owed and (owed > self._left or draw() < 0.4):
            return self._reply(at)
        odd = draw()
        if odd < 0.028 and self._conversation.sort == "channel":
            return activity(self._conversation, at, self._somebody(), pick(self._rng, _ACTIVITIES))
        if odd < 0.032 and self._room_for(2):
            self._opens(at, 2)
            return deleted(self._conversation, at, 2)
        if draw() < self._bot_share:
            return self._bot(at)
        if odd < 0.045:
            return shared_file(
                self._conversation, at, self._somebody(), pick(self._rng, _FILES), self._talk.say(reply=True)
            )
        text = self._words(odd)
        replies = 1 + int(draw() * draw() * 14)
        edited = at + 20_000_000 + int(draw() * 600_000_000) if odd > 0.98 else None
        if draw() < 0.09 and self._room_for(replies):
            self._opens(at, replies)
            return Said(self._conversation, at, self._somebody(), text, thread=at, replies=replies, edited=edited)
        return Said(self._conversation, at, self._somebody(), text, edited=edited)

    def _somebody(self) -> Person:
        members, draw = self._conversation.members, self._rng.random
        return members[int(draw() * draw() * len(members))]

    def _room_for(self, replies: int) -> bool:
        return self._owed + replies <= self._left and self._owed < 60

    def _opens(self, at: int, replies: int) -> None:
        self._open.append((at, replies))
        self._owed += replies

    def _reply(self, at: int) -> Said:
        draw = self._rng.random
        place = len(self._open) - 1 - int(draw() * draw() * len(self._open))
        root, left = self._open[place]
        if left == 1:
            del self._open[place]
        else:
            self._open[place] = (root, left - 1)
        self._owed -= 1
        subtype = "thread_broadcast" if draw() < 0.03 else ""
        return Said(self._conversation, at, self._somebody(), self._talk.say(reply=True), root, subtype)

    def _words(self, odd: float) -> Text:
        """New words, or those of somebody before: exactly, or nearly."""
        if odd < 0.065 and self._recent:
            text = pick(self._rng, self._recent)
            if odd < 0.055:
                return text
            tail = pick(self._rng, (" (again)", " ?", "!!", " fyi"))
            return Text(text.body + tail, None if text.raw is None else text.raw + tail)
        text = self._talk.say(reply=False)
        if odd > 0.9 and len(text.body) > 40:
            self._recent.append(text)
            del self._recent[:-40]
        return text

    def _bot(self, at: int) -> Said:
        bot = pick(self._rng, self._bots)
        text = self._talk.say(reply=True)
        if self._rng.random() < 0.4:
            title = f"{bot.real_name} #{at // 1_000_000 % 100_000}"
            return bot_card(self._conversation, at, bot, title, text.body)
        return Said(self._conversation, at, bot, text, subtype="bot_message")


def _day_shares(quota: int, rng: Random) -> list[int]:
    """How many of `quota` fall on each day: quiet weekends, growth over the year, some busy days."""
    return shares(quota, [_WEEK[day % 7] * (500 + day) * (60 + int(rng.random() * 60)) for day in range(_YEAR_DAYS)])


def _conversation_rows(conversation: Conversation, quota: int, planted: Sequence[Said], rng: Random) -> Iterator[Said]:
    room = _Room(conversation, quota, rng)
    due = 0
    for day, count in enumerate(_day_shares(quota, rng)):
        start = _START + day * DAY
        todays = due
        while due < len(planted) and planted[due].at < start + DAY:
            due += 1
        story = list(planted[todays:due])
        for at in _times(rng, start, count, {s.at for s in story}):
            while story and story[0].at < at:
                yield story.pop(0)
            yield room.next(at)
        yield from story


def rows(made: Plan) -> Iterator[Said]:
    """Every row of the corpus: conversations in the workspace's order, times rising within each."""
    for conversation, quota in zip(made.place.conversations, made.quotas, strict=True):
        rng = random_for(made.seed, made.messages, conversation.conversation_id)
        yield from _conversation_rows(conversation, quota, made.planted[conversation.conversation_id], rng)


_PLAIN = frozenset({"", "me_message", "thread_broadcast", "bot_message", "file_share", "tombstone"})


def kind_of(said: Said) -> str:
    """The kind a reader of the export gives it."""
    if said.subtype == "tombstone":
        return TOMBSTONE
    if said.subtype not in _PLAIN:
        return ACTIVITY
    if said.author.role == "bot":
        return "bot"
    return "file" if said.subtype == "file_share" else "message"


def _attributes(said: Said) -> str | None:
    """What a reader of the export keeps beside the text, as JSON: the subtype and the files."""
    if said.subtype in ("", "tombstone") or (said.subtype == "bot_message" and said.author.signs == "user"):
        return None
    kept: dict[str, object] = {"subtype": said.subtype}
    if said.file is not None:
        kept["files"] = [{"name": said.file["name"], "type": said.file["filetype"], "size": said.file["size"]}]
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":"))


def generate(messages: int, seed: int) -> Iterator[SourceMessage]:
    """The same corpus as messages, without an export on disk: exactly `messages` of them.

    Raises:
        BadInput: `bad_messages`, as `plan`; raised on the first message drawn.
    """
    for said in rows(plan(messages, seed)):
        author, room = said.author, said.conversation
        yield SourceMessage(
            room.conversation_id,
            room.name,
            ts_of(said.at),
            said.at,
            author.author_id,
            author.author,
            said.text.body,
            None if said.thread is None else ts_of(said.thread),
            author.role,
            None,
            kind_of(said),
            edited_at=said.edited,
            attributes=_attributes(said),
        )

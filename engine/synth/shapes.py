"""One of each: messages in every form an export knows, so that even a small corpus holds them all.

Decides the Slack fields of each form. Must never know how common a form is elsewhere.
"""

from collections.abc import Mapping
from random import Random

from engine.synth.chance import ident, pick, random_for
from engine.synth.people import Conversation, Person, Workspace
from engine.synth.planted import Said, moment
from engine.synth.talk import Text, escaped

__all__ = ["SLACKBOT", "activity", "bot_card", "deleted", "shapes", "shared_file"]

SLACKBOT = Person("USLACKBOT", "slackbot", "", "Slackbot", "", "bot", listed=False)
"""Slack's own voice, which no list of users names."""

_ACTIVITY: dict[str, str] = {
    "channel_join": "has joined the channel",
    "channel_leave": "has left the channel",
    "channel_topic": "set the channel topic: who is on call this week",
    "channel_purpose": "set the channel purpose: questions and answers",
    "channel_name": "has renamed the channel from old-name to new-name",
    "channel_archive": "archived the channel",
    "channel_unarchive": "un-archived the channel",
    "pinned_item": "pinned a message to this channel.",
    "bot_add": "added an integration to this channel",
    "reminder_add": "set up a reminder in this channel: drink water",
}
"""What nobody said, as Slack words it after the person's name, the commonest first."""


_SCRIPT = "👨‍👩‍👧‍👦 family day, 🏴󠁧󠁢󠁳󠁣󠁴󠁿 visitors, nai\u0308ve cafe\u0301, ﬁne ﬁles, ＦＵＬＬ width"
"""What tends to be cut or folded wrongly."""


def _called(person: Person) -> Text:
    return Text(f"@{person.author}", f"<@{person.user_id}>")


def activity(conversation: Conversation, at: int, person: Person, subtype: str) -> Said:
    """Something that happened to the room or to who is in it."""
    name = _called(person)
    what = _ACTIVITY[subtype]
    text = Text(f"{name.body} {what}", f"{name.raw} {what}")
    return Said(conversation, at, person, text, subtype=subtype)


def deleted(conversation: Conversation, at: int, replies: int) -> Said:
    """What stands where a message with replies was deleted."""
    text = Text("", "This message was deleted.")
    return Said(conversation, at, SLACKBOT, text, thread=at, subtype="tombstone", replies=replies)


def bot_card(conversation: Conversation, at: int, bot: Person, title: str, text: str) -> Said:
    """A bot's message that has an empty text and says all in an attachment."""
    card: Mapping[str, object] = {
        "title": escaped(title),
        "text": escaped(text),
        "fallback": escaped(title),
        "id": 1,
    }
    return Said(conversation, at, bot, Text(f"{title}\n{text}", ""), subtype="bot_message", card=card)


def shared_file(conversation: Conversation, at: int, person: Person, name: str, text: Text) -> Said:
    """A message with a file, whose links carry a token that no reader may keep."""
    file_id = ident("F", conversation.conversation_id, at)
    file: Mapping[str, object] = {
        "id": file_id,
        "name": name,
        "title": name,
        "filetype": name.rpartition(".")[2],
        "user": person.user_id,
        "size": 4_000 + at % 90_000,
        "mode": "hosted",
        "url_private": f"https://files.brightlake.example/{file_id}/{name}?t=xoxe-0000000000-synthetic",
    }
    body = f"{text.body}\n{name}" if text.body else name
    raw = escaped(text.body) if text.raw is None else text.raw
    return Said(conversation, at, person, Text(body, raw), subtype="file_share", file=file)


def _general(place: Workspace, rng: Random) -> list[Said]:
    room = place.named("general")
    one, two, three = pick(rng, room.members), pick(rng, room.members), pick(rng, room.members)
    at = moment(4, 2, 15, 0, 100)

    def after(minutes: int) -> int:
        return at + minutes * 60_000_007

    lost, asked = after(30), after(50)
    said = [activity(room, after(n), one, subtype) for n, subtype in enumerate(_ACTIVITY)]
    said += [
        deleted(room, lost, 2),
        Said(room, after(31), two, Text("I had quoted that one, pity."), thread=lost),
        Said(room, after(32), three, Text("It was posted in the wrong room."), thread=lost),
        Said(room, asked, one, Text("Which floor is the town hall on?"), thread=asked, replies=3),
        Said(room, after(51), two, Text("Third, by the lifts."), thread=asked),
        Said(room, after(52), three, Text("Moved to the fourth!"), thread=asked, subtype="thread_broadcast"),
        Said(room, after(53), one, Text("Thank you both."), thread=asked),
        Said(room, after(60), two, Text("waves from the balcony"), subtype="me_message"),
        Said(room, after(61), one, Text("@here cake in the kitchen 🎂", "<!here> cake in the kitchen 🎂")),
        Said(room, after(62), two, Text("The list had a typo, mended."), edited=after(64)),
        shared_file(room, after(65), three, "floor-plan.pdf", Text("The plan for the move:")),
        shared_file(room, after(66), one, "whiteboard.png", Text("", "")),
        Said(room, after(67), two, Text("if a < b && b > c:\n```\nprint('<ok>')\n```")),
        Said(room, after(68), three, Text(_SCRIPT)),
        Said(room, after(69), one, Text("notes (https://wiki.brightlake.example/notes?a=1&b=2)",
             "<https://wiki.brightlake.example/notes?a=1&amp;b=2|notes>")),
    ]  # fmt: skip
    return said


def shapes(place: Workspace, seed: int) -> list[Said]:
    """The messages, in no order."""
    rng = random_for(seed, "shapes")
    said = _general(place, rng)
    room = place.named("support")
    at = moment(4, 3, 9, 0, 5)
    guests = [p for p in room.members if not p.listed]
    for n, guest in enumerate(guests):
        said.append(Said(room, at + n * 90_000_001, guest, Text(f"Guest question number {n + 1}: where do I log in?")))
    robin = place.bot("Build Robin")
    ci = place.named("ci-status")
    said.append(bot_card(ci, at, robin, "Build 4711 failed", "linking took 93 s & 2 tests <timed out>"))
    said.append(Said(ci, at + 7_000_003, robin, Text("Build 4712 passed"), subtype="bot_message"))
    return said

"""Ordinary talk: texts as people write them in a chat, drawn from the patterns of `words`.

Decides how long a text is, what fills it, and how Slack would spell it. Must never know of planted stories.
"""

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from engine.synth.chance import pick, random_for, zipf
from engine.synth.people import Conversation, Person
from engine.synth.words import ACKS, EMOJI, PATTERNS, REPLIES, SLOTS, SYLLABLES

__all__ = ["BROAD_WORD", "Talk", "Text", "escaped", "sentence_of"]

BROAD_WORD = "deployment"
"""The word many messages hold: its matches alone are too much to read."""

_BROAD_SHARE = 0.119
"""Share of messages given a sentence with the broad word: just over 1 MB of text in 40,000 messages."""

_BROAD = (
    "The deployment to {place} is {quality}.",
    "Next deployment {when}, please keep the {thing} out of it.",
    "I {did} the deployment of {name} {version}.",
    "Deployment #{ticket} of {name} finished in {number} s.",
    "Before the deployment somebody has to {plan}.",
)

_TYPO_PLACES = 3
"""In how many ways each long word is misspelt; every way takes a single place of the table."""


class Text(NamedTuple):
    """One text twice: `body` as a person reads it, `raw` as Slack spells it (`None`: `body` escaped)."""

    body: str
    raw: str | None = None


class _Pattern(NamedTuple):
    form: str
    slots: tuple[tuple[Sequence[object], int], ...]


def escaped(text: str) -> str:
    """`text` as Slack escapes it."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _misspelt(word: str, place: int) -> str:
    at = 1 + place % (len(word) - 2)
    return word[:at] + word[at + 1] + word[at] + word[at + 2 :]


def _tables() -> dict[str, Sequence[object]]:
    """What each slot draws from. Ranges stand for identifiers: nearly every one of those is rare."""
    tables: dict[str, Sequence[object]] = {}
    for slot, words in SLOTS.items():
        long = [w for w in words if len(w) > 6 and w.isascii() and " " not in w]
        typos = tuple(_misspelt(word, place) for place in range(_TYPO_PLACES) for word in long)
        tables[slot] = zipf(words, 4_096) + typos
    rng = random_for("names")
    names = list(dict.fromkeys("".join(pick(rng, SYLLABLES) for _ in range(2 + n % 3)) for n in range(9_000)))
    tables["name"] = zipf(names)
    tables["host"] = zipf([f"{name}-{n % 40:02d}.int.brightlake.example" for n, name in enumerate(names[:2_000])])
    tables["code"] = zipf([f"E{1000 + n * 7919 % 9000}" for n in range(3_000)])
    tables["version"] = zipf([f"v{n % 7}.{n * 5 % 31}.{n * 11 % 17}" for n in range(600)])
    tables["ticket"] = range(1_000, 100_000)
    tables["number"] = zipf([str(n) for n in range(2, 4_000)])
    tables["millis"] = range(3, 9_000)
    tables["small"] = range(2, 30)
    tables["percent"] = range(1, 100)
    tables["hex"] = range(1 << 28, 1 << 32)
    return tables


_TABLES = _tables()


def _compiled(pattern: str) -> _Pattern:
    """`The {thing} is {quality}` as a `%` form and the tables of its slots, in order."""
    form, slots = "", []
    for piece in pattern.replace("%", "%%").split("{"):
        name, brace, rest = piece.partition("}")
        if not brace:
            form += piece
            continue
        table = _TABLES[name]
        slots.append((table, len(table)))
        form += ("%x" if name == "hex" else "%s") + rest
    return _Pattern(form, tuple(slots))


def sentence_of(rng: Random, pattern: _Pattern) -> str:
    """`pattern` filled."""
    draw = rng.random
    return pattern.form % tuple([table[int(draw() * size)] for table, size in pattern.slots])


_PATTERNS = {theme: tuple(_compiled(p) for p in patterns) for theme, patterns in PATTERNS.items()}
_REPLIES = tuple(_compiled(p) for p in REPLIES)
_BROAD_PATTERNS = tuple(_compiled(p) for p in _BROAD)
_TRACE = _compiled(
    "\n```\nTraceback: {name}.{name} at {host}:{small}\n  {thing} = {name}[{number}] -> <{hex}>\n"
    "{code}: {name} && {name} == null\n```"
)
_DESK = "help@brightlake.example"
_LABELS = ("runbook", "dashboard", "the ticket", "design doc", "build log", "recording")
_URL = _compiled("https://wiki.brightlake.example/{name}/{name}-{ticket}?view={small}&rev={hex}")
_FOREIGN = ("ru",) * 10 + ("ja",) * 6 + ("zh",) * 2 + ("ar",)
"""Languages that turn up in conversations held in another, by how often."""

# How many sentences a text has, by places of 100: short ones prevail, few are long.
_LENGTHS = (
    (0,) * 11 + (1,) * 11 + (2,) * 18 + (3,) * 16 + (4,) * 15 + (5,) * 11 + (6,) * 8 + (8,) * 5 + (12,) * 4 + (18,)
)


class Talk:
    """The talk of one conversation; draws from the generator it is given."""

    def __init__(self, conversation: Conversation, rng: Random) -> None:
        self._rng = rng
        self._conversation = conversation
        self._main = _PATTERNS[conversation.language if conversation.language != "en" else conversation.theme]

    def say(self, *, reply: bool) -> Text:
        """What somebody says next; a reply is shorter."""
        rng = self._rng
        draw = rng.random
        count = _LENGTHS[int(draw() * 100)]
        if reply and count > 2:
            count = count * 2 // 3
        if count == 0:
            return Text(ACKS[int(draw() * draw() * len(ACKS))])
        patterns = self._main
        odd = draw()
        if odd < 0.03:
            patterns = _PATTERNS[pick(rng, _FOREIGN)]
        elif reply and self._conversation.language == "en":
            patterns = _REPLIES
        size = len(patterns)
        parts = [sentence_of(rng, patterns[int(draw() * size)]) for _ in range(count)]
        if draw() < _BROAD_SHARE:
            parts.insert(int(draw() * (count + 1)), sentence_of(rng, _BROAD_PATTERNS[int(draw() * 5)]))
        body = " ".join(parts)
        odd = draw()
        if odd < 0.72:
            return Text(body)
        if odd < 0.77:
            return Text(body + " " + pick(rng, EMOJI))
        if odd < 0.79:
            return Text(body + sentence_of(rng, _TRACE))
        if odd < 0.82:
            return Text(body.lower())
        if odd < 0.83:
            return Text("\n".join(f"• {part}" for part in parts))
        return self._spelt(body, odd)

    def _spelt(self, body: str, odd: float) -> Text:
        """`body` with something Slack spells in a way of its own: a person, a link, a room."""
        rng = self._rng
        raw = escaped(body)
        if odd < 0.925:
            person: Person = pick(rng, self._conversation.members)
            if not person.listed:
                name = person.author if person.profiled else "guest"
                return Text(f"@{name} {body}", f"<@{person.user_id}|guest> {raw}")
            return Text(f"@{person.author} {body}", f"<@{person.user_id}> {raw}")
        if odd < 0.975:
            url = sentence_of(rng, _URL)
            if odd < 0.945:
                return Text(f"{body} {url}", f"{raw} <{escaped(url)}>")
            label = pick(rng, _LABELS)
            return Text(f"{body} {label} ({url})", f"{raw} <{escaped(url)}|{label}>")
        if odd < 0.98:
            return Text(f"@here {body}", f"<!here> {raw}")
        if odd < 0.983:
            return Text(f"@channel {body}", f"<!channel> {raw}")
        if odd < 0.993 and self._conversation.sort == "channel":
            name, room_id = self._conversation.name, self._conversation.conversation_id
            return Text(f"{body} (moved from #{name})", f"{raw} (moved from <#{room_id}|{name}>)")
        return Text(f"{body} {_DESK}", f"{raw} <mailto:{_DESK}|{_DESK}>")

"""What is a secret by its form, and what stands in its place: `[redacted: aws key]`.

Decides by published forms alone: prefixes, lengths, alphabets, check digits. Nothing is guessed from how random a text
looks, so hashes, commit ids and UUIDs stay whole. Must never know where a message goes. The table of forms is in
`engine.secret_forms`; most messages are passed by a few searches for what every form has in common.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b
from itertools import islice
from operator import attrgetter
from typing import Any

from engine.card_numbers import CARDS, card_places, may_hold_card
from engine.model import SourceMessage
from engine.secret_forms import FORMS, Form, may_hold_token, token_places

__all__ = ["FORMS_DIGEST", "mark", "redact", "redacted"]

_CHECKS = 2
"""Raised when what is checked beside the patterns changes: a refresh then reads its sources again."""

FORMS_DIGEST = blake2b(
    repr([_CHECKS, *((form.kind, form.anchors, form.pattern.pattern) for form in (*FORMS, *CARDS))]).encode(),
    digest_size=8,
).hexdigest()
"""Changes with the forms: texts stored under others are to be stored anew."""

_TEXTS = ("topic", "body", "conversation", "author", "link", "from_role", "to_role", "kind", "status")
_IDS = ("conversation_id", "native_id", "thread_native_id", "author_id")
_OWN_TEXTS = ("topic", "body", "attributes", "native_id", "thread_native_id")
_SHARED_TEXTS = ("conversation", "author", "from_role", "to_role", "kind", "status", "conversation_id", "author_id")
_OWN, _SHARED = attrgetter(*_OWN_TEXTS), attrgetter(*_SHARED_TEXTS)
"""All texts of a message but its link, which is looked at apart: most have long paths."""

_TOGETHER = 64
"""Messages looked at as one: a search costs as much to begin as to go through a message."""


_INSIDE = r"[A-Za-z0-9０-９_+/=%.-]"
_UNSEEN = r"[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]"
_PARTED = re.compile(rf"{_UNSEEN}(?<={_INSIDE}{_UNSEEN}){_UNSEEN}*(?={_INSIDE})")
"""What is invisible and left out where a text is shown: a secret that it parts would be read whole.

The pattern begins with the rarest, which a search can skip to.
"""


def mark(kind: str) -> str:
    """What stands in the place of a secret of this kind."""
    return f"[redacted: {kind}]"


def redact(text: str, found: Counter[str]) -> str:
    """`text` with a mark in the place of each secret, counted by kind in `found`."""
    joined = _joined(text)
    if joined != text:
        within: Counter[str] = Counter()
        clean = _redact(joined, within)
        if within:
            found.update(within)
            return clean
    return _redact(text, found)


def _joined(text: str) -> str:
    return text if text.isascii() else _PARTED.sub("", text)


def _redact(text: str, found: Counter[str]) -> str:
    if may_hold_token(text):
        for form in FORMS:
            if form.may_match(text):
                text = _without(form, text, found, "")
    if may_hold_card(text):
        for form in CARDS:
            text = _without(form, text, found, "")
    return text


def redacted(messages: Iterable[SourceMessage], found: Counter[str]) -> Iterator[SourceMessage]:
    """The messages, without the secrets in any of their texts and ids, counted by kind in `found`."""
    drawn = iter(messages)
    while together := list(islice(drawn, _TOGETHER)):
        suspects = _suspects(together)
        for place, message in enumerate(together):
            yield _cleaned(message, found) if place in suspects else message


def _suspects(messages: Sequence[SourceMessage]) -> set[int]:
    """Which of some messages may hold a secret: one look at all, then one at each of the few texts in question."""
    own = [text or "" for message in messages for text in _OWN(message)]
    suspects = {place // len(_OWN_TEXTS) for place in _holders(own)}
    suspects.update(_holders([message.link or "" for message in messages], link=True))
    # What messages share is looked at once.
    shared = list(map(_SHARED, messages))
    distinct = list(dict.fromkeys(shared))
    holders = _holders([text or "" for texts in distinct for text in texts])
    marked = {distinct[place // len(_SHARED_TEXTS)] for place in holders}
    return suspects | {place for place, texts in enumerate(shared) if texts in marked} if marked else suspects


def _holders(texts: Sequence[str], *, link: bool = False) -> Iterator[int]:
    """Which of some texts may hold a secret."""
    joined = _joined("\0".join(texts))
    raw = joined.encode("utf-8", "surrogatepass")
    places: Iterable[int] = {*token_places(joined, raw, link=link), *card_places(raw)}
    # NUL is part of no form. A text that has one itself would be taken for two.
    if raw.count(b"\0") >= len(texts):
        places = range(len(texts))
    for place in places:
        text = _joined(texts[place])
        if may_hold_token(text, link=link) or may_hold_card(text):
            yield place


def _cleaned(message: SourceMessage, found: Counter[str]) -> SourceMessage:
    changed: dict[str, Any] = {}
    for name in _TEXTS:
        text = getattr(message, name)
        if text and (clean := redact(text, found)) != text:
            changed[name] = clean
    for name in _IDS:
        text = getattr(message, name)
        if text and (clean := _redact_id(text, found)) != text:
            changed[name] = clean
    if message.attributes and (clean := _redact_json(message.attributes, found)) != message.attributes:
        changed["attributes"] = clean
    return replace(message, **changed) if changed else message


def _redact_id(text: str, found: Counter[str]) -> str:
    """As `redact`, but two ids stay two: a digest tells them apart.

    No card numbers: a number among ids is an id, and of so few digits a digest would give it away.
    """
    if may_hold_token(text):
        digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
        for form in FORMS:
            if form.may_match(text):
                text = _without(form, text, found, f" {digest}")
    return text


def _redact_json(text: str, found: Counter[str]) -> str:
    """As `redact`, for each value and name of a JSON object: a form must not reach over the edge of a string."""
    joined = _joined(text)
    if not may_hold_token(joined) and not may_hold_card(joined):
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return redact(text, found)
    clean = _redact_value(value, found)
    return text if clean == value else json.dumps(clean, ensure_ascii=False, separators=(",", ":"))


def _redact_value(value: Any, found: Counter[str]) -> Any:
    if isinstance(value, str):
        return redact(value, found)
    if isinstance(value, dict):
        return {redact(name, found): _redact_member(name, part, found) for name, part in value.items()}
    if isinstance(value, list):
        return [_redact_value(part, found) for part in value]
    if isinstance(value, int) and not isinstance(value, bool):
        clean = redact(str(value), found)
        return value if clean == str(value) else clean
    return value


def _redact_member(name: str, value: Any, found: Counter[str]) -> Any:
    """A value beside its name: some forms are known by what a secret is called."""
    if not isinstance(value, str):
        return _redact_value(value, found)
    label = f"{name}="
    beside: Counter[str] = Counter()
    clean = redact(f"{label}{value}", beside)
    if not clean.startswith(label):
        # The name holds one itself, which is counted with the names.
        return redact(value, found)
    found.update(beside)
    return clean.removeprefix(label)


def _without(form: Form, text: str, found: Counter[str], told_apart: str) -> str:
    parts: list[str] = []
    end = 0
    for match in form.pattern.finditer(text):
        if form.check is not None and not form.check(match):
            continue
        start, stop = match.span("secret") if "secret" in form.pattern.groupindex else match.span()
        parts += [text[end:start], mark(f"{form.kind}{told_apart}")]
        end = stop
        found[form.kind] += 1
    return "".join([*parts, text[end:]]) if parts else text

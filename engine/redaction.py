"""What is a secret by its form, and what stands in its place: `[redacted: aws key]`.

Decides by published forms alone: prefixes, lengths, alphabets, check digits. Nothing is guessed from how random a text
looks, so hashes, commit ids and UUIDs stay whole. Must never know where a message goes. The table of forms is in
`engine.secret_forms`; most messages are passed by a few searches for what every form has in common.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from hashlib import blake2b
from typing import Any

from engine.card_numbers import CARDS, may_hold_card
from engine.model import SourceMessage
from engine.secret_forms import FORMS, Form, may_hold_token

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


_INSIDE = r"[A-Za-z0-9０-９_+/=%.-]"
_PARTED = re.compile(rf"(?<={_INSIDE})[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]+(?={_INSIDE})")
"""What is invisible and left out where a text is shown: a secret that it parts would be read whole."""


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
    for message in messages:
        # The common case is one look at all that a message holds. NUL is part of no form.
        texts = "\0".join((
            message.body, message.topic, message.author, message.conversation, message.attributes or "",
            message.from_role, message.kind, message.to_role or "", message.status or "",
            message.conversation_id, message.native_id, message.thread_native_id or "", message.author_id,
        ))  # fmt: skip
        texts = _joined(texts)
        link = message.link or ""
        may_hold = may_hold_token(texts) or may_hold_card(texts)
        if link and not may_hold:
            may_hold = may_hold_token(link, link=True) or may_hold_card(link)
        yield _cleaned(message, found) if may_hold else message


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

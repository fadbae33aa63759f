"""The two forms of one message and of a result's head: an object for programs, lines for a model.

Decides keys, their order, and every word of the text form. No message can start a line: whatever comes from the
corpus passes `inline`. Must never know budgets, sessions or how anything was found.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.choices import DEFAULT_FIELDS
from engine.hits import Found, Searched
from engine.model import Message
from engine.query.bind import WHOLE_ECHO, Echo
from engine.snippet import Snippet
from engine.text import display, one_line
from engine.times import iso, to_date, to_minute

__all__ = [
    "Shown",
    "bounded_notes",
    "chosen_fields",
    "clipped",
    "counted",
    "distinct",
    "found_line",
    "found_object",
    "hint_lines",
    "inline",
    "message_line",
    "message_object",
    "searched_line",
    "searched_object",
    "shortened",
]

_NAME_CHARS = 80
"""Longest name of a conversation or author in a line: longer ones are recognised by their beginning."""

_LONG_CHARS = 600
"""Longest link or attributes: more would push out what was searched for."""


def chosen_fields(fields: Sequence[str] | None) -> frozenset[str]:
    """The fields a request asks for; `thread` brings its size, `text` its full length when cut."""
    if fields is None:
        return frozenset(DEFAULT_FIELDS)
    chosen = set(fields)
    if "headers" in chosen:
        chosen |= set(DEFAULT_FIELDS) - {"text", "truncated"}
    if "thread" in chosen:
        chosen.add("thread_size")
    if "text" in chosen:
        chosen.add("truncated")
    return frozenset(chosen)


@dataclass(frozen=True, slots=True)
class Shown:
    """One message as it will be shown. `text` and `topic` are displayed and marked; sizes and copies are counts.

    `around` marks a message shown for its neighbour's sake; its line starts with a blank.
    `sliced` is set where `text` is a slice, exact to its last blank; `next_offset` where another follows.
    """

    message: Message
    text: Snippet
    topic: str = ""
    thread_size: int = 1
    copies: int = 0
    match: str | None = None
    score: float | None = None
    around: bool = False
    sliced: bool = False
    next_offset: int | None = None


def message_object(shown: Shown, fields: frozenset[str], hoisted: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The object form: keys in the order of the contract, those only that are asked for and say something."""
    m = shown.message
    threaded = shown.thread_size > 1
    values: dict[str, Any] = {
        "sent_at": iso(m.sent_at),
        "conversation": clipped(m.conversation),
        "author": clipped(m.author),
        "from_role": clipped(m.from_role),
        "kind": clipped(m.kind) if m.kind != "message" else None,
        "to_role": clipped(m.to_role) if m.to_role else None,
        "status": clipped(m.status) if m.status else None,
        "thread": m.thread_id if threaded else None,
        "thread_size": shown.thread_size if threaded else None,
        "copies": shown.copies or None,
        "match": shown.match,
        "link": clipped(m.link, _LONG_CHARS) if m.link else None,
        "edited_at": iso(m.edited_at) if m.edited_at is not None else None,
        "score": round(shown.score, 4) if shown.score is not None else None,
        "attributes": clipped(m.attributes, _LONG_CHARS) if m.attributes else None,
        "topic": shown.topic or None,
        "text": shown.text.text,
        "truncated": shown.text.full_length,
    }
    out: dict[str, Any] = {"id": m.message_id}
    if shown.around:
        out["context"] = True
    out |= {name: value for name, value in values.items() if name in fields - hoisted and value is not None}
    if shown.next_offset is not None:
        out["next_offset"] = shown.next_offset
    return out


def message_line(
    shown: Shown, fields: frozenset[str], hoisted: frozenset[str] = frozenset(), *, by_scan: bool = False
) -> str:
    """The text form: one line. `by_scan` marks a scan's hit among those of the index."""
    m = shown.message
    wanted = fields - hoisted
    head = [f"[{one_line(m.message_id)}]"]
    if "sent_at" in wanted:
        head.append(to_minute(m.sent_at))
    if "conversation" in wanted:
        head.append(f"#{inline(m.conversation)}")
    if "author" in wanted:
        head.append(inline(m.author))
    said_role = m.from_role if "from_role" in wanted else ""
    aside = [
        inline(text)
        for name, text in (
            ("from_role", m.from_role),
            ("to_role", f"to {m.to_role}" if m.to_role else ""),
            ("kind", m.kind if m.kind not in ("message", said_role) else ""),
            ("status", m.status or ""),
        )
        if name in wanted and text
    ]
    if aside:
        head.append(f"({', '.join(aside)})")
    line = (" " if shown.around else "") + " ".join(head)
    body = _body(shown, wanted)
    if body:
        line += (": " if len(head) > 1 else " ") + body
    return line + _tail(shown, wanted, by_scan=by_scan)


def _body(shown: Shown, wanted: frozenset[str]) -> str:
    topic = one_line(shown.topic) if "topic" in wanted else ""
    text = ""
    if "text" in wanted:
        text = one_line(shown.text.text)
        if shown.next_offset is not None:
            text += f" …/{shown.text.full_length} next_offset {shown.next_offset}"
        elif shown.text.full_length is not None and not shown.sliced:
            text = f"{text.removesuffix('…').rstrip()} …/{shown.text.full_length}"
    return f"{topic} — {text}" if topic and text else topic or text


def _tail(shown: Shown, wanted: frozenset[str], *, by_scan: bool) -> str:
    m = shown.message
    tail = ""
    if shown.copies and "copies" in wanted:
        tail += f" (+{shown.copies} {'copy' if shown.copies == 1 else 'copies'})"
    if shown.thread_size > 1 and "thread" in wanted:
        tail += f" [thread {one_line(m.thread_id)}, {shown.thread_size}]"
    if m.link and "link" in wanted:
        tail += f" {inline(m.link, _LONG_CHARS)}"
    if m.edited_at is not None and "edited_at" in wanted:
        tail += f" (edited {to_minute(m.edited_at)})"
    if shown.score is not None and "score" in wanted:
        tail += f" (score {shown.score:.4f})"
    if m.attributes and "attributes" in wanted:
        tail += f" {inline(m.attributes, _LONG_CHARS)}"
    return tail + (" (scan)" if by_scan and "match" in wanted else "")


def searched_object(searched: Searched, echo: Echo = WHOLE_ECHO) -> dict[str, Any]:
    """`searched` of the object form."""
    out: dict[str, Any] = {}
    if searched.query.canonical:
        out["query"] = shortened(searched.query.canonical, echo.query_chars)
    if searched.query.conditions:
        out["filters"] = searched.query.filters(echo)
    if searched.hidden_activity is not None:
        out["not_searched"] = {"activity": searched.hidden_activity}
    out["as_of"] = iso(searched.as_of)
    return out


def searched_line(searched: Searched, echo: Echo = WHOLE_ECHO, bucket_zone: str = "") -> str:
    """`searched: …`, the first line. `bucket_zone` names the zone of the result's buckets where it is not UTC."""
    parts = [shortened(searched.query.canonical, echo.query_chars)] if searched.query.canonical else []
    parts += [condition.echo(echo) for condition in searched.query.conditions]
    aside = ["found by scan"] if searched.by_scan else []
    if searched.hidden_activity is not None:
        aside.append(f"activity not searched: {searched.hidden_activity} match")
    aside += [f"times UTC, buckets {bucket_zone}" if bucket_zone else "times UTC", f"as of {to_date(searched.as_of)}"]
    return f"searched: {inline('; '.join(parts) or 'all messages', 600)} ({'; '.join(aside)})"


def found_object(found: Found) -> dict[str, Any]:
    """`found` of the object form: counts, and first and last instant when there are any."""
    out: dict[str, Any] = {
        "messages": found.messages,
        "threads": found.threads,
        "conversations": found.conversations,
        "authors": found.authors,
    }
    if found.first is not None and found.last is not None:
        out |= {"first": iso(found.first), "last": iso(found.last)}
    return out


def found_line(found: Found) -> str:
    """`found: …`, the second line."""
    if found.first is None or found.last is None:
        return "found: 0 messages"
    return (
        f"found: {counted(found.messages, 'message')} by {counted(found.authors, 'author')}"
        f" in {counted(found.conversations, 'conversation')}, {to_date(found.first)} to {to_date(found.last)}"
    )


def counted(number: int, what: str) -> str:
    """`1 message`, `2 messages`."""
    return f"{number} {what}" + ("" if number == 1 else "s")


def hint_lines(hints: Mapping[str, Any]) -> Iterable[str]:
    """The hints of a result without hits."""
    without = hints.get("without", {}) | hints.get("without_part", {})
    if without:
        yield (
            "hint: " + ", ".join(f"without {inline(name)} {count}" for name, count in without.items()) + " would match"
        )
    for term, facts in hints.get("terms", {}).items():
        close = ", ".join(f"{inline(word)} {count}" for word, count in facts.get("close", {}).items())
        yield f"hint: {inline(term)} alone is in {counted(facts['messages'], 'message')}" + (
            f"; close: {close}" if close else ""
        )


def bounded_notes(notes: Iterable[str], most_bytes: int = 1_200) -> list[str]:
    """Each note once, on one line, as many as fit into so many bytes: notes explain a result, no more."""
    room = most_bytes
    out: list[str] = []
    for note in dict.fromkeys(notes):
        text = inline(note, 300)
        room -= len(text.encode())
        if room < 0:
            break
        out.append(text)
    return out


def clipped(text: str, most: int = _NAME_CHARS) -> str:
    """A name as it is shown: displayed, and cut with `…` after so many characters."""
    return shortened(display(text), most)


def shortened(text: str, most: int) -> str:
    """A text cut with `…` after so many characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def distinct(names: Iterable[str], most: int = _NAME_CHARS) -> list[str]:
    """Names as they are shown, each another: those that the cut made equal are told apart by a number."""
    taken: set[str] = set()
    out: list[str] = []
    for name in names:
        first = shown = clipped(name, most)
        number = 1
        while shown in taken:
            number += 1
            shown = f"{first} ({number})"
        taken.add(shown)
        out.append(shown)
    return out


def inline(text: str, most: int = _NAME_CHARS) -> str:
    """A name as it stands in a line: clipped, and without line breaks."""
    return one_line(clipped(text, most))

"""One record of a Slack day file turned into one message, or into the reason why it is none.

Decides ids, times, threads, kinds, links and what of the rest is kept. Must never know files, folders or
archives, or raise over a record's shape.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from engine.model import ACTIVITY, TOMBSTONE, SourceMessage
from engine.sources.slack_blocks import block_text
from engine.sources.slack_people import People
from engine.sources.slack_text import Naming, as_list, as_mapping, as_text, message_text, scrubbed

__all__ = ["BadRecord", "Conversation", "Skipped", "current_version", "instant_of", "message_of"]

_TS = re.compile(r"(\d{1,10})(?:\.(\d{1,6}))?", re.ASCII)
_LATEST_SECONDS = 4_102_444_800
"""The year 2100: a later time is milliseconds or microseconds taken for seconds."""

_ACTIVITY = re.compile(
    r"(?:channel|group|mpim)_(?:join|leave|purpose|topic|name|archive|unarchive|convert_to_private|convert_to_public"
    r"|posting_permissions)"
    r"|(?:un)?pinned_item|bot_(?:add|remove|enable|disable)|file_mention|reminder_\w+"
)
"""Subtypes in which nobody says anything. `me_message` and whatever is not known here are messages."""

_FILE = frozenset({"file_share", "file_comment"})
_EVENTS = frozenset({"message_changed", "message_replied"})


@dataclass(frozen=True, slots=True)
class Conversation:
    """Where records stand. `is_listed` tells a channel's own id from a folder's name in its stead."""

    conversation_id: str
    name: str
    is_listed: bool = True


@dataclass(frozen=True, slots=True)
class Skipped:
    """A record that is rightly no message, and the reason it is counted under."""

    reason: str


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A record that ought to be a message and is broken, and how."""

    why: str


def instant_of(ts: Any) -> int | None:
    """Microseconds since 1970 of Slack's `ts`, exactly; `None` where it is none, or beyond the year 2100."""
    found = _TS.fullmatch(ts) if isinstance(ts, str) else None
    if found is None:
        return None
    seconds = int(found[1])
    if not 0 < seconds < _LATEST_SECONDS:
        return None
    return seconds * 1_000_000 + int((found[2] or "").ljust(6, "0"))


def current_version(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """The message inside a `message_changed` event, edited when the event says; else the record itself."""
    inner = as_mapping(record.get("message"))
    if record.get("subtype") == "message_changed" and instant_of(inner.get("ts")) is not None:
        return {"edited": {"ts": record.get("ts")}, **inner}
    return record


def message_of(
    record: Mapping[str, Any],
    conversation: Conversation,
    people: People,
    naming: Naming,
    workspace_url: str | None = None,
) -> SourceMessage | Skipped | BadRecord:
    """The message that `record` is, with all that is secret struck out; `record` is a current version."""
    ts = record.get("ts")
    sent_at = instant_of(ts)
    if not isinstance(ts, str) or sent_at is None:
        return BadRecord("no ts" if ts is None else "its ts is not a time")
    thread = _thread_of(record, ts)
    subtype = as_text(record.get("subtype"))
    is_tombstone = subtype == TOMBSTONE
    if is_tombstone:
        if not _keeps_replies(record, ts):
            return Skipped("deleted")
    elif subtype == "message_deleted":
        return Skipped("deleted")
    elif subtype in _EVENTS:
        return Skipped("event")
    elif record.get("hidden") is True:
        return Skipped("hidden")
    author = people.author_of(record, conversation.name, conversation.conversation_id)
    return SourceMessage(
        conversation_id=conversation.conversation_id,
        conversation=conversation.name,
        native_id=ts,
        sent_at=sent_at,
        author_id=author.author_id,
        author=author.name,
        body="" if is_tombstone else scrubbed(message_text(record, naming, block_text)),
        thread_native_id=thread,
        from_role=author.role,
        kind=TOMBSTONE if is_tombstone else _kind_of(record, subtype, is_bot=author.is_bot),
        link=_link(workspace_url, conversation, ts, thread) if workspace_url else None,
        edited_at=instant_of(as_mapping(record.get("edited")).get("ts")),
        attributes=None if is_tombstone else _attributes(record, subtype),
    )


def _thread_of(record: Mapping[str, Any], ts: str) -> str | None:
    thread = record.get("thread_ts")
    if not isinstance(thread, str) or instant_of(thread) is None:
        return None
    if thread == ts and not (record.get("replies") or record.get("reply_count")):
        return None
    return thread


def _keeps_replies(record: Mapping[str, Any], ts: str) -> bool:
    if record.get("replies") or record.get("reply_count"):
        return True
    # Slack gives a root its own thread_ts with the first reply; some exports leave the count out.
    return record.get("thread_ts") == ts and "reply_count" not in record


def _kind_of(record: Mapping[str, Any], subtype: str, *, is_bot: bool) -> str:
    if _ACTIVITY.fullmatch(subtype):
        return ACTIVITY
    if is_bot:
        return "bot"
    if subtype in _FILE or (not subtype and any(map(as_mapping, as_list(record.get("files"))))):
        return "file"
    return "message"


def _link(workspace_url: str, conversation: Conversation, ts: str, thread: str | None) -> str | None:
    if not conversation.is_listed:
        return None
    place = quote(conversation.conversation_id, safe="")
    link = f"{workspace_url.rstrip('/')}/archives/{place}/p{ts.replace('.', '')}"
    return link if thread in (None, ts) else f"{link}?thread_ts={thread}&cid={place}"


def _attributes(record: Mapping[str, Any], subtype: str) -> str | None:
    kept: dict[str, Any] = {}
    if subtype:
        kept["subtype"] = scrubbed(subtype)
    reactions: dict[str, int] = {}
    for reaction in map(as_mapping, as_list(record.get("reactions"))):
        count = reaction.get("count")
        name = scrubbed(as_text(reaction.get("name")))
        if name:
            reactions[name] = count if type(count) is int else len(as_list(reaction.get("users")))
    if reactions:
        kept["reactions"] = reactions
    if record.get("files") or record.get("file"):
        listed = [*as_list(record.get("files")), record.get("file")]
        if files := [entry for each in listed if (entry := _file(each))]:
            kept["files"] = files
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":")) if kept else None


def _file(value: Any) -> dict[str, Any]:
    file = as_mapping(value)
    size = file.get("size")
    entry: dict[str, Any] = {
        "name": scrubbed(as_text(file.get("name"))),
        "type": scrubbed(as_text(file.get("filetype"))),
    }
    if type(size) is int:
        entry["size"] = size
    return {key: part for key, part in entry.items() if part != ""}

"""A corpus written down as Slack exports one, with the answer key and a ready configuration beside it.

    <folder>/export/        users.json, channels.json, groups.json, mpims.json, dms.json, <room>/<day>.json
    <folder>/answers.json   what is asked and found, and where: an `AnswerKey`
    <folder>/hayfork.toml   a configuration that serves the export

Decides Slack's spelling of each row. Holds one day of one conversation at a time. Day files are named by the
day in the workspace's zone, so that many a message has another date in UTC.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from datetime import date, timedelta
from itertools import groupby
from pathlib import Path

from engine.errors import BadInput, quoted
from engine.ports import Progress
from engine.synth.corpus import Plan, kind_of, local_day, plan, rows
from engine.synth.people import CLIENT_DOMAINS, TEAM_DOMAIN, Conversation, Person
from engine.synth.planted import AnswerKey, Call, Said, Story, moment, ts_of
from engine.synth.talk import BROAD_WORD, escaped

__all__ = ["write_corpus"]

_TEAM_ID = "T0BRIGHT1"
_CREATED = moment(1, 1) // 1_000_000 - 86_400


def write_corpus(folder: Path, messages: int, seed: int, progress: Progress | None = None) -> AnswerKey:
    """Write the corpus of `messages` rows for `seed` into `folder`, made if need be, which must be empty.

    The same `messages` and `seed` give the same bytes. `progress` hears of the step "write".

    Raises:
        BadInput: `bad_messages` as `plan`; `folder_in_use` when something is in the folder already.
    """
    made = plan(messages, seed)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput(
            "folder_in_use",
            f"{quoted(folder.name)} is not an empty folder",
            next_step="name a new folder, or remove this one first",
        )
    export = folder / "export"
    export.mkdir(parents=True)
    _write_lists(export, made)
    tally = _Tally()
    for (conversation, day), said in groupby(rows(made), key=lambda s: (s.conversation, local_day(s.at))):
        room = export / conversation.folder
        room.mkdir(exist_ok=True)
        name = (date(2025, 1, 1) + timedelta(days=day)).isoformat()
        _write_json(room / f"{name}.json", [_record(s) for s in tally.counted(said)])
        if progress is not None:
            progress("write", tally.rows, messages)
    key = tally.key(made)
    _write_json(folder / "answers.json", asdict(key), indent=1)
    (folder / "hayfork.toml").write_bytes(_configuration(messages, seed).encode())
    return key


class _Tally:
    """What is counted while rows pass: totals, and the matches of the broad word."""

    def __init__(self) -> None:
        self.rows = 0
        self._bytes = 0
        self._kinds: Counter[str] = Counter()
        self._subtypes: Counter[str] = Counter()
        self._broad: Counter[str] = Counter()
        self._broad_bytes = 0

    def counted(self, said: Iterable[Said]) -> Iterator[Said]:
        """The same rows, counted on their way."""
        for row in said:
            size = len(row.text.body.encode())
            self.rows += 1
            self._bytes += size
            self._kinds[kind_of(row)] += 1
            self._subtypes[row.subtype or "none"] += 1
            if BROAD_WORD in row.text.body.lower():
                self._broad[row.conversation.conversation_id] += 1
                self._broad_bytes += size
            yield row

    def key(self, made: Plan) -> AnswerKey:
        """The answer key, now that all is counted."""
        matches = sum(self._broad.values())
        broad = Story(
            "broad",
            f"How many messages mention a {BROAD_WORD}, and where?",
            (Call("count_messages", {"query": BROAD_WORD}),),
            f"{matches} messages in {len(self._broad)} conversations: too much to read, and no need to",
            {"matches": matches, "conversations": len(self._broad), "body_bytes": self._broad_bytes},
        )
        return AnswerKey(
            made.messages,
            made.seed,
            len(made.place.conversations),
            self.rows,
            self._bytes,
            dict(sorted(self._kinds.items())),
            dict(sorted(self._subtypes.items())),
            (*made.stories, broad),
        )


def _write_json(path: Path, content: object, indent: int | None = None) -> None:
    separators = (",", ":") if indent is None else (",", ": ")
    path.write_bytes(json.dumps(content, indent=indent, separators=separators).encode("ascii") + b"\n")


def _record(said: Said) -> dict[str, object]:
    """One row as a day file holds it."""
    raw = said.text.raw
    record: dict[str, object] = {"type": "message"}
    if said.subtype and not (said.subtype == "bot_message" and said.author.signs == "user"):
        record["subtype"] = said.subtype
    record |= _signature(said.author)
    record["text"] = escaped(said.text.body) if raw is None else raw
    record["ts"] = ts_of(said.at)
    if said.thread is not None:
        record["thread_ts"] = ts_of(said.thread)
    if said.replies:
        record["reply_count"] = said.replies
    if said.subtype == "thread_broadcast" and said.thread is not None:
        # Slack embeds the root in a broadcast: no second message, though it looks like one.
        record["root"] = {
            "type": "message",
            "ts": ts_of(said.thread),
            "thread_ts": ts_of(said.thread),
            "text": "…",
        }
    if said.subtype == "tombstone":
        record["hidden"] = True
    if said.edited is not None:
        record["edited"] = {"user": said.author.user_id, "ts": ts_of(said.edited)}
    if said.file is not None:
        record["files"] = [said.file]
    if said.card is not None:
        record["attachments"] = [said.card]
    return record


def _signature(author: Person) -> dict[str, object]:
    """The fields that say who wrote it."""
    match author.signs:
        case "user":
            return {"user": author.user_id, "bot_id": author.bot_id}
        case "username":
            return {"bot_id": author.bot_id, "username": author.real_name}
        case "bot_profile":
            return {"bot_id": author.bot_id, "bot_profile": {"id": author.bot_id, "name": author.real_name}}
        case "bot_id":
            return {"bot_id": author.bot_id}
        case _ if author.profiled:
            profile = {
                "real_name": author.real_name,
                "display_name": author.display_name,
                "is_restricted": True,
            }
            return {"user": author.user_id, "user_profile": profile}
        case _:
            return {"user": author.user_id}


def _user(person: Person) -> Mapping[str, object]:
    profile = {"real_name": person.real_name, "display_name": person.display_name}
    if person.bot_id:
        profile["bot_id"] = person.bot_id
    else:
        profile["email"] = person.email
    return {
        "id": person.user_id,
        "team_id": _TEAM_ID,
        "name": person.handle,
        "deleted": False,
        "real_name": person.real_name,
        "is_bot": bool(person.bot_id),
        "profile": profile,
    }


def _room(conversation: Conversation) -> Mapping[str, object]:
    members = [p.user_id for p in conversation.members]
    entry: dict[str, object] = {"id": conversation.conversation_id, "created": _CREATED, "members": members}
    if conversation.sort == "dm":
        return entry
    return entry | {
        "name": conversation.name,
        "creator": members[0],
        "is_archived": False,
        "topic": {"value": "", "creator": "", "last_set": 0},
        "purpose": {"value": conversation.theme, "creator": members[0], "last_set": _CREATED},
    }


def _write_lists(export: Path, made: Plan) -> None:
    _write_json(export / "users.json", [_user(p) for p in made.place.people if p.listed])
    for sort in ("channel", "group", "mpim", "dm"):
        listed = [_room(c) for c in made.place.conversations if c.sort == sort]
        _write_json(export / f"{sort}s.json", listed)


def _configuration(messages: int, seed: int) -> str:
    domains = ", ".join(f'"{domain}"' for domain in CLIENT_DOMAINS)
    return f"""\
# A synthetic corpus of {messages} messages, seed {seed}. Paths are relative to this file.
[corpus]
root = "corpus"
name = "brightlake"

[[sources]]
format = "slack"
location = "export"

[sources.roles]
client = {{ email_domain = [{domains}] }}
teammate = {{ email_domain = ["{TEAM_DOMAIN}"] }}
"""

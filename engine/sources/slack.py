"""A Slack export, zip or folder, as a source of messages.

Decides which files hold messages and which conversation each belongs to, and names in the report what cannot
be used. Holds one day file in memory at a time. Must never know how messages are stored.

An export is a folder of lists (`channels.json`, `groups.json`, `dms.json`, `mpims.json`, `users.json`, any of
which may be missing) and a folder for each conversation, with a file for each day: `general/2016-09-20.json`.
The day is that of the workspace's own clock; times are taken from the messages.
"""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

from engine.errors import BadInput, quoted
from engine.model import SourceMessage, SourceReport
from engine.sources.archive import (
    Archive,
    ArchiveLimits,
    MemberError,
    open_archive,
    shown_name,
    wrapping_folder,
)
from engine.sources.roles import RoleRules
from engine.sources.slack_message import BadRecord, Conversation, Skipped, current_version, message_of
from engine.sources.slack_people import People
from engine.sources.slack_text import Naming, as_list, as_mapping, as_text, scrubbed

__all__ = ["SlackExport"]

_LISTS = ("channels.json", "groups.json", "mpims.json", "dms.json")
_MARKERS = frozenset({*_LISTS, "users.json"})
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}\b.*\.json", re.DOTALL)
_USER = re.compile(rb'"user"\s*:\s*"([A-Z0-9]+)"')
_SERVICE = re.compile(r"/services/(B[A-Z0-9]+)\|([^<>|]+)>")
_NAMING_SUBTYPES = frozenset({"bot_add", "bot_remove", "bot_enable", "bot_disable"})


class SlackExport:
    """The export at `location`. Roles follow `rules`; links are built from `workspace_url` when given."""

    def __init__(
        self,
        location: Path,
        rules: RoleRules,
        *,
        workspace_url: str | None = None,
        name: str | None = None,
        limits: ArchiveLimits | None = None,
    ) -> None:
        self._location = location
        self._rules = rules
        self._workspace_url = workspace_url
        self._name = name or location.name
        self._limits = limits or ArchiveLimits()

    @property
    def name(self) -> str:
        """The name given, else that of the file or folder."""
        return self._name

    def digest(self) -> str:
        """Hexadecimal digest of the export's files and of the workspace's URL. Role rules are the caller's.

        Raises:
            BadInput: `source_unreadable` when the location does not exist or holds no export.
        """
        with open_archive(self._location, self._limits) as archive:
            self._root_of(archive)
            content = f"{archive.digest()}\n{self._workspace_url or ''}"
        return blake2b(content.encode(), digest_size=32).hexdigest()

    def messages(self, report: SourceReport) -> Iterator[SourceMessage]:
        """Every message, conversation by conversation as found. Repeats are skipped, and counted.

        A repeat edited later than the one before it, in a later file, comes out once more: the later
        `edited_at` is the one to store.

        Raises:
            BadInput: `source_unreadable` when the location holds no export, or no day file can be read.
        """
        with open_archive(self._location, self._limits) as archive:
            root = self._root_of(archive)
            for problem in archive.problems:
                report.problem(problem.where, problem.why)
            if root:
                report.problem(shown_name(root), "the whole export lies in this folder; read from inside it")
            yield from _Reading(archive, root, self._rules, self._workspace_url, report).messages(self._name)

    def _root_of(self, archive: Archive) -> str:
        root = wrapping_folder(archive.names, _MARKERS, _is_day)
        if not any(name.startswith(root) and _is_member(name[len(root) :]) for name in archive.names):
            raise BadInput(
                "source_unreadable",
                f"{quoted(self._name)} is no Slack export: neither channels.json nor a day file is in it",
                next_step="give the zip that Slack made, or the folder it unpacks to",
            )
        return root


def _is_day(file_name: str) -> bool:
    return _DAY.fullmatch(file_name) is not None


def _is_member(name: str) -> bool:
    folder, slash, file_name = name.rpartition("/")
    return _is_day(file_name) and "/" not in folder if slash else name in _MARKERS


class _Reading:
    """One pass over an opened export. What it knows of people and places is read before the first message."""

    def __init__(
        self, archive: Archive, root: str, rules: RoleRules, workspace_url: str | None, report: SourceReport
    ) -> None:
        self._archive = archive
        self._root = root
        self._workspace_url = workspace_url
        self._report = report
        self._people = People(rules)
        self._places: dict[str, Conversation] = {}
        self._channel_names: dict[str, str] = {}
        self._naming = Naming(self._people.name_of, lambda channel_id: self._channel_names.get(channel_id, channel_id))
        self._days: dict[str, list[str]] = {}

    def messages(self, source: str) -> Iterator[SourceMessage]:
        self._find_days()
        self._read_lists()
        self._survey()
        usable = not self._days
        for folder, names in self._days.items():
            place = self._place_of(folder)
            edits: dict[str, int] = {}
            for name in names:
                records = self._day(name)
                usable = usable or records is not None
                yield from self._new(name, records or [], place, edits)
        if not usable:
            raise BadInput(
                "source_unreadable",
                f"no day file of {quoted(source)} can be read",
                next_step="see the problems in the report, and get the export anew",
            )

    def _find_days(self) -> None:
        for member in self._archive.names:
            if not member.startswith(self._root):
                if member.endswith(".json"):
                    self._report.problem(shown_name(member), "lies beside the export; passed over")
                continue
            name = member[len(self._root) :]
            folder, slash, file_name = name.rpartition("/")
            if slash and _is_member(name):
                self._days.setdefault(folder, []).append(name)
            elif slash and _is_day(file_name):
                self._report.problem(shown_name(name), "lies deeper than day files do; passed over")

    def _read_lists(self) -> None:
        for user in self._list("users.json"):
            if not self._people.add(user):
                self._report.problem("users.json", "an entry without an id; passed over")
        for list_name in _LISTS:
            for entry in map(as_mapping, self._list(list_name)):
                self._add_place(entry)

    def _add_place(self, entry: Mapping[str, Any]) -> None:
        conversation_id, name = as_text(entry.get("id")), scrubbed(as_text(entry.get("name")))
        if not conversation_id:
            return
        members = [self._people.name_of(user) for member in as_list(entry.get("members")) if (user := as_text(member))]
        place = Conversation(conversation_id, name or ", ".join(members) or conversation_id)
        self._channel_names.setdefault(conversation_id, place.name)
        for folder in (name, conversation_id):
            if folder:
                self._places.setdefault(_composed(folder), place)

    def _place_of(self, folder: str) -> Conversation:
        return self._places.get(_composed(folder)) or Conversation(as_text(folder), as_text(folder), is_listed=False)

    def _list(self, name: str) -> list[Any]:
        if self._root + name not in self._archive.names:
            return []
        return self._parsed(name, self._report) or []

    def _parsed(self, name: str, report: SourceReport) -> list[Any] | None:
        try:
            content = json.loads(self._archive.read(self._root + name))
        except MemberError as error:
            report.problem(shown_name(name), error.why)
        except (ValueError, RecursionError):
            report.problem(shown_name(name), "not valid JSON")
        else:
            if isinstance(content, list):
                return content
            report.problem(shown_name(name), "not a list")
        return None

    def _survey(self) -> None:
        """Learn the names that only messages carry, so that they are known wherever they are mentioned.

        Guests come with their `user_profile`; a bot's name stands in the note that it was added. Most files
        have neither, and are looked through unparsed.
        """
        for name in (name for names in self._days.values() for name in names):
            try:
                content = self._archive.read(self._root + name)
            except MemberError:
                continue
            strangers = b'"user_profile"' in content and any(
                user.decode() not in self._people for user in set(_USER.findall(content))
            )
            if not strangers and not (b"services" in content and b'"bot_' in content):
                continue
            for record in map(as_mapping, self._parsed(name, SourceReport()) or []):
                profile = as_mapping(record.get("user_profile"))
                if profile:
                    self._people.add_inline(as_text(record.get("user")), profile)
                if record.get("subtype") in _NAMING_SUBTYPES:
                    for bot_id, label in _SERVICE.findall(as_text(record.get("text"))):
                        self._people.add_bot(bot_id, label)

    def _day(self, name: str) -> list[Any] | None:
        records = self._parsed(name, self._report)
        if records is None:
            self._report.read += 1
            self._report.skip("unreadable file")
        return records

    def _new(
        self, name: str, records: list[Any], place: Conversation, edits: dict[str, int]
    ) -> Iterator[SourceMessage]:
        """The messages of one day file that say what no earlier one said; `edits` has the last edit by ts."""
        fresh: dict[str, SourceMessage] = {}
        repeats = 0
        for index, record in enumerate(records):
            self._report.read += 1
            made = self._message(record, place)
            if isinstance(made, BadRecord):
                self._report.skip("broken record")
                self._report.problem(f"{shown_name(name)}[{index}]", made.why)
            elif isinstance(made, Skipped):
                self._report.skip(made.reason)
            else:
                edited = made.edited_at or 0
                known = edits.get(made.native_id)
                if known is not None and (made.native_id in fresh or edited <= known):
                    repeats += 1
                    if made.native_id not in fresh or edited < known:
                        continue
                fresh[made.native_id] = made
                edits[made.native_id] = edited
        if repeats:
            self._report.skip("duplicate", repeats)
            self._report.problem(shown_name(name), f"repeats {repeats} messages; each is read once")
        for message in fresh.values():
            self._report.yielded += 1
            yield message

    def _message(self, record: Any, place: Conversation) -> SourceMessage | Skipped | BadRecord:
        if not isinstance(record, dict):
            return BadRecord("not an object")
        return message_of(current_version(record), place, self._people, self._naming, self._workspace_url)


def _composed(folder: str) -> str:
    return unicodedata.normalize("NFC", folder)

"""Tables as a source of messages: JSONL, CSV and Parquet with a mapping of columns to fields.

Decides which fields a table must have, what stands in for what is missing, and which rows are left out. Must
never know how a file is read (`table_files`). Fields and what each takes are listed in docs/tables.md.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from difflib import get_close_matches
from hashlib import blake2b, sha256

from engine.errors import BadInput, quoted
from engine.model import SourceMessage, SourceReport, message_key_of
from engine.sources.roles import RoleRule, RoleRules
from engine.sources.table_files import BrokenRow, Reader, Row, TableFile, find_files, open_reader
from engine.sources.table_times import instant_of

__all__ = ["FIELDS", "TableSource"]

FIELDS = (
    "conversation_id",
    "conversation",
    "native_id",
    "message_id",
    "thread_native_id",
    "thread_id",
    "sent_at",
    "author_id",
    "author",
    "email",
    "from_role",
    "to_role",
    "kind",
    "status",
    "topic",
    "body",
    "link",
    "edited_at",
    "attributes",
)
"""Fields a column may hold. `email` only decides the role; it is not kept."""

_REQUIRED = (("conversation_id", "conversation"), ("sent_at",), ("author", "author_id"), ("body",))
"""Of each group one must be there: without them a message cannot be found, placed or cited."""

_MAX_ID_CHARS = 200
"""A longer id is replaced by its digest: ids stand in every line an agent reads."""


@dataclass(frozen=True, slots=True)
class TableSource:
    """A file, a folder or a glob of files in one format (`jsonl`, `csv` or `parquet`).

    `columns` maps fields to columns; a field it does not name is taken from the column of that name if there
    is one, and an empty name leaves it out. `zone` is that of times without one. `keep_unmapped` keeps the
    other columns as attributes. `memory_limit` and `threads` bound DuckDB (0 threads: one per processor).
    """

    name: str
    format: str
    location: str
    columns: Mapping[str, str] = field(default_factory=dict)
    roles: Mapping[str, RoleRule] = field(default_factory=dict)
    zone: tzinfo = UTC
    keep_unmapped: bool = False
    memory_limit: str = "1GB"
    threads: int = 0

    def digest(self) -> str:
        """SHA-256 over names and contents of the files and over all that changes how they are read.

        Raises:
            BadInput: `source_unreadable`.
        """
        files = find_files(self.format, self.location)
        told = [
            self.format,
            sorted(self.columns.items()),
            str(self.zone),
            self.keep_unmapped,
            repr(self.roles),
        ]
        total = sha256(json.dumps(told, ensure_ascii=True).encode())
        for file in files:
            total.update(file.name.encode("utf-8", "surrogateescape") + b"\0")
            try:
                with file.path.open("rb") as stream:
                    own = sha256()
                    while chunk := stream.read(1_048_576):
                        own.update(chunk)
            except OSError as error:
                raise _unreadable(self.name) from error
            total.update(own.digest())
        return total.hexdigest()

    def messages(self, report: SourceReport) -> Iterator[SourceMessage]:
        """Every message once, in the order of files and rows.

        Raises:
            BadInput: `source_unreadable`; `unknown_field`, `unknown_column` or `missing_column` when the
                mapping does not fit the files.
        """
        files = find_files(self.format, self.location)
        with open_reader(self.format, files, memory_limit=self.memory_limit, threads=self.threads) as reader:
            headers = self._headers(reader, files, report)
            mapping = _mapping(self.columns, Counter(c for own in headers.values() for c in set(own)))
            made = _Maker(mapping, RoleRules(self.roles), self.zone, report, keep_unmapped=self.keep_unmapped)
            for file, own in headers.items():
                lacking = [g for g in _REQUIRED if not any(mapping.get(f) in own for f in g)]
                if lacking and own:
                    report.problem(file.name, f"has no column for {' or '.join(lacking[0])}")
                    continue
                wanted = [c if c in own else None for c in mapping.values()]
                try:
                    for row in reader.rows(file, wanted, rest=self.keep_unmapped):
                        message = made.message(row)
                        if message is not None:
                            yield message
                except ValueError as error:
                    report.problem(file.name, str(error))

    def _headers(
        self, reader: Reader, files: Sequence[TableFile], report: SourceReport
    ) -> dict[TableFile, frozenset[str]]:
        headers: dict[TableFile, frozenset[str]] = {}
        for file in files:
            try:
                headers[file] = frozenset(reader.columns(file))
            except ValueError as error:
                report.problem(file.name, str(error))
        if not any(headers.values()):
            raise _unreadable(self.name)
        return headers


def _unreadable(name: str) -> BadInput:
    return BadInput(
        "source_unreadable",
        f"source {quoted(name)} has no file that can be read",
        next_step="check its format and location",
    )


def _mapping(asked: Mapping[str, str], found: Mapping[str, int]) -> dict[str, str]:
    """Which column holds which field. `found` counts the files that have a column."""
    for name, column in asked.items():
        if name not in FIELDS:
            close = get_close_matches(name, FIELDS, 1)
            raise BadInput(
                "unknown_field",
                f"a message has no field {quoted(name)}",
                next_step=f"use {close[0]}" if close else f"the fields are {', '.join(FIELDS)}",
            )
        if column and column not in found:
            close = get_close_matches(column, found, 3, 0.5) or sorted(found)[:10]
            raise BadInput(
                "unknown_column",
                f"no column is called {quoted(column)}, mapped to {name}",
                next_step="use one of nearest, with the number of files that have it",
                nearest={c: found[c] for c in close},
            )
    taken = set(asked.values())
    mapping = {
        name: column
        for name in FIELDS
        if (column := asked.get(name, name if name in found and name not in taken else ""))
    }
    for group in _REQUIRED:
        if not any(name in mapping for name in group):
            columns = sorted(found)[:10]
            raise BadInput(
                "missing_column",
                f"no column holds {' or '.join(group)}",
                next_step="name one under [sources.columns]",
                nearest={c: found[c] for c in columns},
            )
    return mapping


class _Maker:
    """Makes messages of rows, and counts in the report what it leaves out."""

    def __init__(
        self,
        mapping: Mapping[str, str],
        rules: RoleRules,
        zone: tzinfo,
        report: SourceReport,
        *,
        keep_unmapped: bool,
    ) -> None:
        self._fields = tuple(mapping)
        self._mapped = frozenset(mapping.values())
        self._rules = rules
        self._zone = zone
        self._report = report
        self._keep_unmapped = keep_unmapped
        # Eight bytes a message: their being unique is what a snapshot asserts anyway.
        self._met: set[int] = set()

    def message(self, row: Row | BrokenRow) -> SourceMessage | None:
        """The row's message, `None` when it is left out."""
        self._report.read += 1
        if isinstance(row, BrokenRow):
            self._leave("broken row", row.where, row.why)
            return None
        given = {name: value for name, value in zip(self._fields, row.values, strict=True) if value}
        conversation_id = _as_id(given.get("conversation_id") or given.get("conversation") or "")
        if not conversation_id:
            self._leave("no conversation", row.where, "has no conversation")
            return None
        try:
            sent_at = instant_of(given.get("sent_at", ""), self._zone)
        except ValueError as error:
            why = f"the time {error}" if "sent_at" in given else "has no time"
            self._leave("no usable time", row.where, why)
            return None
        message = self._made(given, row, conversation_id, sent_at)
        key = message_key_of(message.message_id)
        if key in self._met:
            self._leave("duplicate", row.where, "repeats the id of an earlier row")
            return None
        self._met.add(key)
        self._report.yielded += 1
        return message

    def _leave(self, reason: str, where: str, why: str) -> None:
        self._report.skip(reason)
        self._report.problem(where, why)

    def _made(self, given: Mapping[str, str], row: Row, conversation_id: str, sent_at: int) -> SourceMessage:
        conversation = (given.get("conversation") or conversation_id).removeprefix("#")
        author_id = given.get("author_id") or given.get("author", "")
        role = given.get("from_role") or self._rules.role_of(author_id, given.get("email", ""), conversation)
        native = given.get("native_id") or _native(given.get("message_id"), conversation_id)
        thread = given.get("thread_native_id") or _native(given.get("thread_id"), conversation_id)
        return SourceMessage(
            conversation_id=conversation_id,
            conversation=conversation,
            native_id=_as_id(native) if native else _digest_of(given, conversation_id, sent_at),
            sent_at=sent_at,
            author_id=author_id,
            author=given.get("author") or author_id,
            body=given.get("body", ""),
            thread_native_id=_as_id(thread) if thread else None,
            from_role=role,
            to_role=given.get("to_role"),
            kind=given.get("kind", "message"),
            status=given.get("status"),
            topic=given.get("topic", ""),
            link=given.get("link"),
            edited_at=self._edited_at(given.get("edited_at"), row.where),
            attributes=self._attributes(given.get("attributes"), row.rest),
        )

    def _edited_at(self, text: str | None, where: str) -> int | None:
        if text is None:
            return None
        try:
            return instant_of(text, self._zone)
        except ValueError as error:
            self._report.problem(where, f"kept without its last edit: the time {error}")
            return None

    def _attributes(self, own: str | None, rest: str | None) -> str | None:
        """The attributes column's object, under it the other columns that hold something."""
        kept: dict[str, object] = {}
        if self._keep_unmapped and rest:
            others: dict[str, object] = json.loads(rest)
            kept = {k: v for k, v in others.items() if k not in self._mapped and v not in (None, "")}
        if own:
            try:
                parsed = json.loads(own)
            except ValueError:
                parsed = own
            kept |= parsed if isinstance(parsed, dict) else {"attributes": parsed}
        return json.dumps(kept, ensure_ascii=False, separators=(",", ":")) if kept else None


def _native(message_id: str | None, conversation_id: str) -> str:
    """What follows the conversation in an id of the whole form; else the id itself."""
    return (message_id or "").removeprefix(f"{conversation_id}:")


def _as_id(text: str) -> str:
    """The id as given, or its digest where it could not stand in a line."""
    plain = text.strip()
    if len(plain) <= _MAX_ID_CHARS and plain.isprintable():
        return plain
    return blake2b(plain.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _digest_of(given: Mapping[str, str], conversation_id: str, sent_at: int) -> str:
    """A stable id for a row without one: rows that agree in who said what, where and when are one message."""
    parts = (conversation_id, str(sent_at), given.get("author_id", ""), given.get("author", ""))
    texts = (given.get("topic", ""), given.get("body", ""))
    told = "\0".join((*parts, *texts)).encode("utf-8", "surrogatepass")
    return blake2b(told, digest_size=12).hexdigest()

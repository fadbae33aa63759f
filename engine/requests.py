"""What a caller asks, one frozen value per tool, raw: strings as given, the rest as the table of the tools allows.

`handler.arguments` makes these from tool arguments and command lines, and holds numbers in range, choices among those
there are, and lists to their length: the use cases, which bind them, do not check that again. Names and meanings are
those of the tools' parameters. Nothing here looks anything up.
"""

from dataclasses import dataclass, field, fields

__all__ = [
    "CountRequest",
    "Criteria",
    "ExportRequest",
    "Request",
    "SearchRequest",
    "ThreadRequest",
    "UnseenRequest",
]


@dataclass(frozen=True, slots=True)
class Criteria:
    """The shared filters. An empty tuple or `None` filters nothing."""

    query: str = ""
    from_role: tuple[str, ...] = ()
    to_role: tuple[str, ...] = ()
    author: tuple[str, ...] = ()
    conversation: tuple[str, ...] = ()
    thread: tuple[str, ...] = ()
    kind: tuple[str, ...] = ()
    status: tuple[str, ...] = ()
    min_words: int = 0
    after: str | None = None
    before: str | None = None

    @property
    def is_empty(self) -> bool:
        """True when nothing at all is asked for."""
        return all(getattr(self, f.name) == f.default for f in fields(self))


@dataclass(frozen=True, slots=True)
class CountRequest:
    """`count_messages`."""

    criteria: Criteria = field(default_factory=Criteria)
    by: tuple[str, ...] = ()
    compare: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """`search_messages`. `fields` `None` means the default fields."""

    criteria: Criteria = field(default_factory=Criteria)
    limit: int = 10
    text_limit: int = 280
    context: int = 0
    order: str = "best"
    fields: tuple[str, ...] | None = None
    session: str | None = None


@dataclass(frozen=True, slots=True)
class UnseenRequest:
    """`unseen_messages`: a search in what the session has not been shown."""

    search: SearchRequest = field(default_factory=SearchRequest)
    after_batch: int | None = None


@dataclass(frozen=True, slots=True)
class ThreadRequest:
    """`open_thread`."""

    message: tuple[str, ...]
    earlier: int = 4
    later: int = 8
    text_limit: int = 280
    view: str = "auto"
    text_offset: int = 0
    fields: tuple[str, ...] | None = None
    session: str | None = None


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """`export_messages`: a new export by criteria, or the state of a running one by its id."""

    criteria: Criteria = field(default_factory=Criteria)
    format: str = "jsonl"
    fields: tuple[str, ...] | None = None
    export: str | None = None


Request = CountRequest | SearchRequest | UnseenRequest | ThreadRequest | ExportRequest

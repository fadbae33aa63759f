"""The five tools: names, titles, descriptions, parameters and annotations, as one table.

Input and output schemas, argument validation, options of the command line and docs/tools.md follow from it.
The words are a contract: a change needs an entry in docs/tool-definitions.json.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from engine.choices import COLUMNS, DIMENSIONS, FORMATS
from handler.tools.parameters import AFTER_BATCH, FIELDS, FILTERS, READING, SESSION, Parameter, Type

__all__ = ["TOOLS", "Annotations", "Tool"]


@dataclass(frozen=True, slots=True)
class Annotations:
    """Hints for clients, all four always explicit.

    Remembering what was shown is bookkeeping, like a log, and changes no message: `read_only` stays true,
    or some clients ask a person before every search.
    """

    read_only: bool
    destructive: bool
    idempotent: bool
    open_world: bool


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool as a model reads it."""

    name: str
    title: str
    description: str
    parameters: tuple[Parameter, ...]
    annotations: Annotations

    def parameter(self, name: str) -> Parameter | None:
        """The parameter of this name, `None` when there is none."""
        return next((p for p in self.parameters if p.name == name), None)


_READS = Annotations(read_only=True, destructive=False, idempotent=False, open_world=False)

_COUNT = Tool(
    name="count_messages",
    title="Count matching messages, without text",
    description=(
        "Count matching messages and show when, where and from whom they came, without any text. Use it "
        'for "how many", "since when", "who most", and to see whether a search is too wide; for the texts '
        "use search_messages. With no arguments it describes the whole corpus. Counts are exact and cover "
        "every message but activity. Over time, matches stand beside all messages under the same filters: "
        "a month where both fall is a gap in the data, not a trend. Each term comes with the words it "
        "matched inside, and close words it missed. `by` tabulates one or two dimensions and counts "
        'authors too: by=["from_role"] tells how many different clients. `compare` sets other queries '
        "beside this one. Remembers nothing; under 4 KiB, with `by` under 16 KiB."
    ),
    parameters=(
        *FILTERS,
        Parameter(
            "by",
            Type.STRINGS,
            "One or two dimensions to tabulate instead of the default breakdown; 40 rows, largest first; "
            "times: the latest 40, in order, empty ones kept.",
            choices=DIMENSIONS,
            max_values=2,
        ),
        Parameter(
            "compare",
            Type.STRINGS,
            "Further queries, counted beside `query` under the same filters and rows.",
            max_values=5,
            is_query=True,
        ),
    ),
    annotations=Annotations(read_only=True, destructive=False, idempotent=True, open_world=False),
)

_SEARCH = Tool(
    name="search_messages",
    title="Search messages and read a few excerpts",
    description=(
        "Find messages by words and filters and read a few excerpts, best first, spread over threads. Use "
        "it to learn what people say; use count_messages for how many or when, unseen_messages for more "
        "of the same matches, open_thread for the talk around one hit. Matching is literal, ignoring case "
        "and accents, with no synonyms or word forms: join alternatives with OR, use stems (ротаци finds "
        "ротация and ротации). Filters combine with AND, values inside one with OR. Without a query, "
        "conversation plus order=oldest reads a channel like a log. Texts are cut to text_limit around "
        "the matches (⟦marked⟧); …/465 is a cut text's full length. One line: [id] time #conversation "
        "author (role): text. The server remembers what it showed for the session, which ends after 24 "
        "idle hours; no message changes. At most 16 KiB; the head counts what was left out."
    ),
    parameters=(*FILTERS, *READING),
    annotations=_READS,
)

_UNSEEN = Tool(
    name="unseen_messages",
    title="Read further matches not shown before",
    description=(
        "Read the next matching messages that this session has not been shown by any tool. Use it after "
        "search_messages, with the same query and filters, while messages are left out and the question "
        "is open; with other words it skips what you have read. For a first look use search_messages; if "
        "hundreds are left out, narrow the search or use export_messages rather than paging. The server "
        "remembers what it showed, so the next call goes on; parallel calls never return the same "
        "message. After a lost answer, repeat the call with `after_batch`, the last batch received before "
        "it: the same messages return, marked repeated. At most 16 KiB; left out 0 means nothing is left."
    ),
    parameters=(*FILTERS, *READING, AFTER_BATCH),
    annotations=_READS,
)

_THREAD = Tool(
    name="open_thread",
    title="Open the talk around one message",
    description=(
        "Read one message, or several at once, whole with what was said before and after: its thread or, "
        "if it is in none, its neighbours in the conversation (`view` says which). Use it to understand a "
        "hit, finish a truncated text, or get the `link` to cite; it does not search, so find messages "
        "with search_messages. The message itself is always shown whole; neighbours are cut at "
        "text_limit, those this session has seen at 90 characters. To go on, call again with the first or "
        "last id shown. A long text comes in slices of at most 6,000 characters: pass `next_offset` as "
        "`text_offset`. Skips activity; a deleted root appears as kind tombstone. The server remembers "
        "what it showed for the session. At most 16 KiB; `left_out` counts what lies earlier and later."
    ),
    parameters=(
        Parameter(
            "message",
            Type.STRINGS,
            "The `id` of a message, or up to ten; they share the room.",
            max_values=10,
            required=True,
        ),
        Parameter("earlier", Type.INTEGER, "How many messages before it.", default=4, minimum=0, maximum=100),
        Parameter("later", Type.INTEGER, "How many after it.", default=8, minimum=0, maximum=100),
        Parameter("text_limit", Type.INTEGER, "Longest text of a neighbour.", default=280, minimum=40, maximum=4_000),
        Parameter(
            "view",
            Type.STRING,
            "auto: the thread, else the conversation. author: what the same author wrote there next, to "
            "see how it ended.",
            default="auto",
            choices=("auto", "thread", "conversation", "author"),
        ),
        Parameter(
            "text_offset",
            Type.INTEGER,
            "Where in the message's text to start, in characters.",
            default=0,
            minimum=0,
        ),
        FIELDS,
        SESSION,
    ),
    annotations=_READS,
)

_EXPORT = Tool(
    name="export_messages",
    title="Export every match to a file",
    description=(
        "Write every match, with full text, to a new file and return its link, row count, size and "
        "SHA-256, never a text. Use it when a person wants the whole set or a program will process it; to "
        "read messages here use search_messages, to size the set first count_messages. One row per "
        "message, oldest first, equal texts included; nothing is marked as seen. Every call makes another "
        "file, readable by anyone with the link until `expires`. Needs a query, a filter or `export`."
    ),
    parameters=(
        *FILTERS,
        Parameter(
            "format",
            Type.STRING,
            "The file's format.",
            default="jsonl",
            choices=FORMATS,
        ),
        Parameter("fields", Type.STRINGS, "Columns to write. Default: all.", names=tuple(COLUMNS)),
        Parameter("export", Type.STRING, "Only to ask after a running export: its id, and nothing else."),
    ),
    annotations=Annotations(read_only=False, destructive=False, idempotent=False, open_world=False),
)

TOOLS: Mapping[str, Tool] = MappingProxyType({t.name: t for t in (_COUNT, _SEARCH, _UNSEEN, _THREAD, _EXPORT)})
"""The tools by name, in the order a list shows them."""

"""What a tool's parameter is, and the parameters several tools share.

Decides names, types, ranges, defaults and the words a model reads. The words are a contract: a change needs
an entry in docs/tool-definitions.json. Must never know how a value is used.
"""

from dataclasses import dataclass
from enum import Enum

from engine.choices import ALL_FIELDS

__all__ = [
    "AFTER_BATCH",
    "FIELDS",
    "FILTERS",
    "MAX_VALUE_CHARS",
    "OPEN_MAXIMUM",
    "READING",
    "SESSION",
    "Parameter",
    "Type",
]

OPEN_MAXIMUM = 1_000_000_000
"""Bound of an integer without a maximum of its own: above any count of ours, and safe in every integer
type.
"""

MAX_VALUE_CHARS = 1_024
"""Longest value of a filter, a name or a handle: longer than any id a source gives."""


class Type(Enum):
    """What JSON a parameter takes. A list of strings also takes one bare string."""

    STRING = "string"
    INTEGER = "integer"
    STRINGS = "list of strings"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a tool.

    `minimum` and `maximum` are inclusive and hold for integers, `max_values` for a list (`None`: the limit of
    a filter). `is_query` marks strings in the query language. A `default` of `None` means that leaving it out
    says nothing. `names` are the values taken where listing them in the schema would cost more bytes than it
    saves calls.
    """

    name: str
    type: Type
    description: str
    default: str | int | None = None
    minimum: int | None = None
    maximum: int | None = None
    choices: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    max_values: int | None = None
    is_query: bool = False
    required: bool = False


def _filter(name: str, description: str) -> Parameter:
    return Parameter(name, Type.STRINGS, description)


FILTERS = (
    Parameter(
        "query",
        Type.STRING,
        'Terms that must all occur, also inside words: word, "exact phrase", =wholeword, a OR b, NOT a, ( ), '
        'topic:x, body:x. Operators in capitals; punctuation counts: "?" finds questions.',
        default="",
        is_query=True,
    ),
    _filter("from_role", "Who sent it: client, teammate, bot, unknown, or the source's own role."),
    _filter("to_role", "Whom it was addressed to; broadcasts match every value."),
    _filter("author", "Display name or author id."),
    _filter("conversation", "Channel, room or mailbox: name or id."),
    _filter("thread", "The `thread` of a message."),
    _filter("kind", "message, bot, file, activity, or the source's own. Default: all but activity."),
    _filter("status", "The source's own status."),
    Parameter(
        "min_words",
        Type.INTEGER,
        "Only messages of at least so many words: 8 drops thanks, +1 and emoji.",
        default=0,
        minimum=0,
    ),
    Parameter("after", Type.STRING, "Sent at or after: 2016-11, 2016-11-07 or 2016-11-07T10:00:00Z."),
    Parameter("before", Type.STRING, "Sent earlier than; same forms."),
)
"""The shared filters, in the order of `engine.requests.Criteria`."""

FIELDS = Parameter(
    "fields",
    Type.STRINGS,
    'Fields to return besides id; ["headers"]: all but text. link, edited_at, score and attributes come '
    "only when named.",
    names=("headers", "id", *ALL_FIELDS),
)

SESSION = Parameter("session", Type.STRING, "Handle from an earlier result; leave out to start a session.")

READING = (
    Parameter("limit", Type.INTEGER, "Most messages to show.", default=10, minimum=1, maximum=50),
    Parameter(
        "text_limit",
        Type.INTEGER,
        "Longest text per message, in characters, cut around the matches: 100 to skim many, 1000 to read few.",
        default=280,
        minimum=40,
        maximum=4_000,
    ),
    Parameter(
        "context",
        Type.INTEGER,
        "Also this many messages before and after each hit, as grep -C does; overlapping ones join.",
        default=0,
        minimum=0,
        maximum=5,
    ),
    Parameter(
        "order",
        Type.STRING,
        "best: ranked, spread over threads, equal texts merged. newest, oldest: plain timelines.",
        default="best",
        choices=("best", "newest", "oldest"),
    ),
    FIELDS,
    SESSION,
)
"""How matches are read, in the order of `engine.requests.SearchRequest`."""

AFTER_BATCH = Parameter(
    "after_batch",
    Type.INTEGER,
    "Only to repeat a lost answer: the last batch received before it.",
    minimum=0,
)

"""What a request may choose among: fields of a message, dimensions of a table, formats and columns of a file.

Decides the names, once for those who describe them and those who act on them. Must never know what any of them does, so
that whoever only describes a tool carries nothing that runs one.
"""

__all__ = ["ALL_FIELDS", "COLUMNS", "DEFAULT_FIELDS", "DIMENSIONS", "FORMATS", "TIMES"]

DEFAULT_FIELDS = (
    "sent_at",
    "conversation",
    "author",
    "from_role",
    "kind",
    "to_role",
    "status",
    "thread",
    "thread_size",
    "copies",
    "match",
    "topic",
    "text",
    "truncated",
)
_ON_REQUEST = ("link", "edited_at", "score", "attributes")

ALL_FIELDS = (*DEFAULT_FIELDS, *_ON_REQUEST)
"""What `fields` may name, beside `headers` for all but the text."""

TIMES = ("day", "week", "month", "quarter", "year")
DIMENSIONS = ("conversation", "author", "from_role", "to_role", "kind", "status", "thread", *TIMES)
"""What `by` may name."""

FORMATS = ("jsonl", "csv", "parquet")
"""What an export may be written as."""

COLUMNS = {
    "message_id": "VARCHAR",
    "conversation_id": "VARCHAR",
    "conversation": "VARCHAR",
    "thread_id": "VARCHAR",
    "sent_at": "TIMESTAMP",
    "author_id": "VARCHAR",
    "author": "VARCHAR",
    "from_role": "VARCHAR",
    "to_role": "VARCHAR",
    "kind": "VARCHAR",
    "status": "VARCHAR",
    "topic": "VARCHAR",
    "body": "VARCHAR",
    "link": "VARCHAR",
    "edited_at": "TIMESTAMP",
    "attributes": "VARCHAR",
}
"""What may be written, in this order, with the types of the Parquet form."""

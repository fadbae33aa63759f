"""The staged rows brought in order and numbered: one table of small columns, `NUMBERED`, and the lists of names.

Decides which of several rows with one id stays, the order of rows, and every ordinal. The texts stay where
they are: only numbers, and ids where those are equal, are sorted. Must never know files.
"""

from typing import Any

import duckdb

from engine.errors import BrokenSnapshot
from engine.ports import Progress
from engine.snapshot.stage import AUTHORS, CONVERSATIONS, STAGED, VALUES

__all__ = ["NUMBERED", "named", "number"]

NUMBERED = "numbered"
"""`row`, and `sequence` of the staged row it is; columns as the file of narrow columns has them."""

_STEPS = 2
"""That progress is told of."""


def number(connection: duckdb.DuckDBPyConnection, progress: Progress) -> int:
    """Make the tables of names and NUMBERED; returns how many rows were left out as duplicates of one id.

    Raises:
        BrokenSnapshot: `key_collision` when two ids share a key (never seen; would make a seen-set lie).
    """
    progress("sorting", 0, _STEPS)
    dropped = _drop_duplicates(connection)
    _list_names(connection)
    _list_threads(connection)
    progress("sorting", 1, _STEPS)
    _sort(connection)
    progress("sorting", _STEPS, _STEPS)
    return dropped


def named(connection: duckdb.DuckDBPyConnection, of: str, columns: str) -> tuple[Any, ...]:
    """The rows of a list of names, by ordinal: `of` is `conversation`, `author`, or one of VALUES."""
    return tuple(connection.execute(f"SELECT {columns} FROM {of}_names ORDER BY ordinal").fetchall())


def _drop_duplicates(connection: duckdb.DuckDBPyConnection) -> int:
    run = connection.execute
    rows, keys = run(f"SELECT count(*), count(DISTINCT message_key) FROM {STAGED}").fetchall()[0]
    if rows == keys:
        return 0
    run(f"""
        CREATE TABLE suspects AS SELECT message_key, message_id, edited_at, sequence FROM {STAGED}
        SEMI JOIN (SELECT message_key FROM {STAGED} GROUP BY message_key HAVING count(*) > 1) USING (message_key)
    """)
    ((ids, keys),) = run("SELECT count(DISTINCT message_id), count(DISTINCT message_key) FROM suspects").fetchall()
    if ids != keys:
        raise BrokenSnapshot("key_collision", "two message ids share one key")
    run(f"""
        DELETE FROM {STAGED} WHERE sequence IN (
            SELECT sequence FROM suspects QUALIFY row_number() OVER (
                PARTITION BY message_id ORDER BY edited_at DESC NULLS LAST, sequence DESC) > 1)
    """)
    run("DROP TABLE suspects")
    return int(rows) - int(run(f"SELECT count(*) FROM {STAGED}").fetchall()[0][0])


def _list_names(connection: duckdb.DuckDBPyConnection) -> None:
    """Ordinals of names, never by how many there are: where two counts are equal the order would tell of messages
    out of sight. A table `<what>_ordinals` leads from the number of the staged name to it.
    """
    run = connection.execute
    run(f"""
        CREATE TABLE conversation_met AS
        SELECT id, name, number, messages, latest FROM {CONVERSATIONS}
        JOIN (SELECT conversation AS number, count(*) AS messages,
                     max({{'sent_at': sent_at, 'sequence': sequence}}) AS latest
              FROM {STAGED} GROUP BY conversation) USING (number)
    """)
    run("""
        CREATE TABLE conversation_names AS
        SELECT row_number() OVER (ORDER BY id) - 1 AS ordinal, id, arg_max(name, latest) AS name,
               sum(messages)::BIGINT AS messages
        FROM conversation_met GROUP BY id
    """)
    run("""
        CREATE TABLE conversation_ordinals AS
        SELECT number, ordinal FROM conversation_met JOIN conversation_names USING (id)
    """)
    run(f"""
        CREATE TABLE author_names AS
        SELECT row_number() OVER (ORDER BY id, name) - 1 AS ordinal, id, name, number, messages
        FROM {AUTHORS} JOIN (SELECT author AS number, count(*) AS messages FROM {STAGED} GROUP BY author) USING (number)
    """)
    for column, table in VALUES.items():
        run(f"""
            CREATE TABLE {column}_names AS
            SELECT row_number() OVER (ORDER BY id) - 1 AS ordinal, id, number, messages
            FROM {table} JOIN (SELECT {column} AS number, count(*) AS messages FROM {STAGED} GROUP BY {column})
            USING (number)
        """)


def _list_threads(connection: duckdb.DuckDBPyConnection) -> None:
    """Where threads of more than a root begin; every other message is a thread of its own that begins with it."""
    connection.execute(f"""
        CREATE TABLE threads AS
        WITH replies AS (
            SELECT o.ordinal AS conversation, s.thread_id AS thread, s.sent_at
            FROM {STAGED} s JOIN conversation_ordinals o ON o.number = s.conversation WHERE s.thread_id IS NOT NULL
        ), roots AS (
            SELECT o.ordinal AS conversation, s.message_id AS thread, s.sent_at
            FROM {STAGED} s JOIN conversation_ordinals o ON o.number = s.conversation
            WHERE s.thread_id IS NULL AND s.message_id IN (SELECT thread FROM replies)
        )
        SELECT conversation, thread, min(sent_at) AS start
        FROM (SELECT * FROM replies UNION ALL SELECT * FROM roots) GROUP BY conversation, thread
    """)


def _sort(connection: duckdb.DuckDBPyConnection) -> None:
    run = connection.execute
    run(f"""
        CREATE TABLE sorted AS
        SELECT sequence, o.ordinal AS conversation, coalesce(s.thread_id, s.message_id) AS thread_id, s.message_key,
               s.copy_key, a.ordinal AS author, s.sent_at, s.words, s.scripts,
               f.ordinal AS from_role, coalesce(t.ordinal, -1) AS to_role, k.ordinal AS kind,
               coalesce(u.ordinal, -1) AS status
        FROM {STAGED} s
        JOIN conversation_ordinals o ON o.number = s.conversation
        JOIN author_names a ON a.number = s.author
        JOIN from_role_names f ON f.number = s.from_role
        JOIN kind_names k ON k.number = s.kind
        LEFT JOIN to_role_names t ON t.number = s.to_role
        LEFT JOIN status_names u ON u.number = s.status
        LEFT JOIN threads h ON h.conversation = o.ordinal AND h.thread = coalesce(s.thread_id, s.message_id)
        ORDER BY o.ordinal, coalesce(h.start, s.sent_at), coalesce(s.thread_id, s.message_id), s.sent_at, s.message_id
    """)
    # Windows without an order of their own follow the table's.
    run(f"""
        CREATE TABLE {NUMBERED} AS
        SELECT row_number() OVER () - 1 AS row, sequence, message_key, copy_key, conversation::UINTEGER AS conversation,
               (count(*) FILTER (WHERE fresh) OVER (ROWS UNBOUNDED PRECEDING) - 1)::UINTEGER AS thread,
               author::UINTEGER AS author, from_role::SMALLINT AS from_role, to_role::SMALLINT AS to_role,
               kind::SMALLINT AS kind, status::SMALLINT AS status, sent_at, words, scripts
        FROM (SELECT *, (thread_id IS DISTINCT FROM lag(thread_id) OVER ())
                     OR (conversation IS DISTINCT FROM lag(conversation) OVER ()) AS fresh FROM sorted)
    """)
    run("DROP TABLE sorted")
    run(f"""
        CREATE TABLE copies AS
        SELECT copy_key, (row_number() OVER (ORDER BY min(row)) - 1)::UINTEGER AS copy
        FROM {NUMBERED} GROUP BY copy_key
    """)

"""Small corpora for tests of the engine: messages in a line each, a snapshot of them, and a caller at a desk.

corpus = corpus_of(tmp_path, [said(1, "hello"), said(2, "hello again", author="Zoe")])
desk = desk_of(tmp_path, corpus)
desk.search("hello", limit=1).object["found"]["messages"] == 2
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from engine.answer import Answer
from engine.call import Call
from engine.count import count
from engine.limits import Limits
from engine.match import compile_tree
from engine.model import ACTIVITY, BROADCAST, TOMBSTONE, SourceMessage
from engine.ports import SeenStore
from engine.query.parse import parse
from engine.requests import CountRequest, Criteria, SearchRequest, ThreadRequest, UnseenRequest
from engine.search import search, unseen
from engine.sight import EVERYTHING, Caller, Sight
from engine.snapshot.database import Database, DatabaseSettings, connect
from engine.snapshot.format import FileEntry
from engine.snapshot.open import Corpus, open_corpus
from engine.snapshot.stage import stage
from engine.snapshot.write import Stamp, write
from engine.text import fold, word_count
from engine.thread import open_thread
from engine.view import View
from infra.sqlite import SqliteSeen

__all__ = [
    "MINUTE",
    "NOON",
    "SETTINGS",
    "SNAPSHOT",
    "Desk",
    "Folder",
    "corpus_of",
    "desk_of",
    "naive_hits",
    "quiet",
    "random_messages",
    "random_query",
    "said",
    "sees",
    "view_of",
]

NOON = 1_480_507_200_000_000
"""2016-11-30 12:00 UTC in microseconds."""

MINUTE = 60_000_000
SNAPSHOT = "20161130T120000.000000Z-0000abcd"
SETTINGS = DatabaseSettings(memory="256MB", threads=1)


def said(number: int, body: str = "", **changes: Any) -> SourceMessage:
    """Message `number` in #general by Ann, so many minutes after noon; an author's or conversation's name is its id."""
    changes.setdefault("author_id", changes.get("author", "Ann"))
    changes.setdefault("conversation_id", changes.get("conversation", "general"))
    plain = SourceMessage("general", "general", str(number), NOON + number * MINUTE, "Ann", "Ann", body)
    return replace(plain, **changes)


def quiet(step: str, done: int, total: int | None) -> None:
    """Progress that nobody watches."""


@dataclass(frozen=True, slots=True)
class Folder:
    """One snapshot in a folder: as much of a store as opening takes."""

    path: Path

    def read(self, snapshot_id: str, name: str) -> bytes:
        assert snapshot_id == SNAPSHOT
        return (self.path / name).read_bytes()

    def altered(self, snapshot_id: str, files: Sequence[FileEntry]) -> list[str]:
        assert snapshot_id == SNAPSHOT
        there = {path.relative_to(self.path).as_posix(): path.stat().st_size for path in self.path.rglob("*.parquet")}
        return [each.name for each in files if there.get(each.name) != each.size]

    def prefix(self, snapshot_id: str) -> str:
        assert snapshot_id == SNAPSHOT
        return f"{self.path}/"


def corpus_of(
    folder: Path, messages: Sequence[SourceMessage], *, shard_rows: int = 1_000_000, index: bool = True
) -> Corpus:
    """A snapshot of these messages below `folder`, opened. Its connection ends with the corpus."""
    target = Path(mkdtemp(prefix="snapshot-", dir=folder))

    connection = connect(SETTINGS, [f"{target}/"])
    try:
        for _ in stage(connection, messages):
            pass
        stamp = Stamp(SNAPSHOT, NOON, "0", shard_rows=shard_rows, index=index)
        write(connection, target, stamp, quiet)
    finally:
        connection.close()
    return open_corpus(Folder(target), SNAPSHOT, Database(connect(SETTINGS, [f"{target}/"]), seconds=20))


def view_of(corpus: Corpus, sight: Sight = EVERYTHING, limits: Limits | None = None) -> View:
    """The corpus as a sight sees it."""
    return View(corpus, sight, limits or Limits())


_CRITERIA = frozenset(Criteria.__dataclass_fields__)


@dataclass(frozen=True, slots=True)
class Desk:
    """One caller with the tools at hand. Arguments are the tools' own, filters and all; a query comes first."""

    view: View
    seen: SeenStore
    caller: Caller = Caller("ann")  # noqa: RUF009 - frozen, so one for all is right
    now: int = NOON
    zone: tzinfo = UTC
    brute: bool = False

    @property
    def call(self) -> Call:
        return Call(self.view, self.caller, self.now, self.seen, self.zone, self.brute)

    def count(self, query: str = "", **arguments: Any) -> Answer:
        criteria, rest = _split(query, arguments)
        return count(CountRequest(criteria, **rest), self.call)

    def search(self, query: str = "", **arguments: Any) -> Answer:
        criteria, rest = _split(query, arguments)
        return search(SearchRequest(criteria, **rest), self.call)

    def unseen(self, query: str = "", *, after_batch: int | None = None, **arguments: Any) -> Answer:
        criteria, rest = _split(query, arguments)
        return unseen(UnseenRequest(SearchRequest(criteria, **rest), after_batch), self.call)

    def thread(self, *message: str, **arguments: Any) -> Answer:
        return open_thread(ThreadRequest(message, **arguments), self.call)


def desk_of(folder: Path, corpus: Corpus, sight: Sight = EVERYTHING, **changes: Any) -> Desk:
    """A desk over a corpus with a session store of its own folder; `changes` are a desk's own fields, or `limits`."""
    view = view_of(corpus, sight, changes.pop("limits", None))
    seen = SqliteSeen(folder / "seen.sqlite", clock=lambda: NOON)
    return Desk(view, seen, **{"caller": Caller("ann", sight), **changes})


def _split(query: str, arguments: dict[str, Any]) -> tuple[Criteria, dict[str, Any]]:
    criteria = {name: value for name, value in arguments.items() if name in _CRITERIA}
    return Criteria(query=query, **criteria), {k: v for k, v in arguments.items() if k not in _CRITERIA}


_WORDS = (
    *(
        "docker",
        "Docker",
        "dockerhub",
        "client",
        "CLIENT",
        "build-failed",
        "build failed",
        "main()",
        "C++",
        "a_b",
        "->",
    ),
    *(
        "документация",
        "документацию",
        "ёлка",
        "Елка",
        "йод",
        "ротация",
        "花子です",
        "東京都に行く",
        "日本",
        "ไทยแลนด์",
        "การ",
    ),
    *(
        "مرحبا",
        "العالم",
        "straße",
        "STRASSE",
        "ﬁle",
        "café",
        "cafe\u0301",
        "👩‍👩‍👧",
        "👍🏽",
        "İstanbul",
        "१२३",
        "ok",
        "+1",
    ),
    *("x", "no", "'quoted'", '"', "\\", "100%", "a.b", "…", "ΑΣ", "ας"),
)
_BLANKS = (" ", " ", " ", "  ", "\n", ", ", "-", "")


def _text(chance: random.Random, most: int) -> str:
    return "".join(chance.choice(_WORDS) + chance.choice(_BLANKS) for _ in range(chance.randint(0, most))).strip()


def random_messages(chance: random.Random, most: int = 60) -> list[SourceMessage]:
    """Messages in every script, in and out of threads, with copies, activity, deleted roots; no two at one time."""
    texts = [_text(chance, 8) for _ in range(8)]
    instants = chance.sample(range(100_000), chance.randint(1, most))
    numbers = range(len(instants))
    out = []
    for number, minutes in zip(numbers, sorted(instants), strict=True):
        conversation = chance.choice(("c1", "c2", "c3"))
        author = chance.choice(("u1", "u2", "u3", "u4"))
        rooted = chance.random() < 0.4
        kind = chance.choices(("message", "bot", "file", ACTIVITY, TOMBSTONE), (70, 10, 5, 10, 5))[0]
        out.append(
            SourceMessage(
                conversation_id=conversation,
                conversation={"c1": "general", "c2": "общий", "c3": "general"}[conversation],
                native_id=f"{number}",
                sent_at=NOON + minutes * 7_777_777,
                author_id=author,
                author=chance.choice(("Zoe", "Zoë B"))
                if author == "u1"
                else {"u2": "Юрий", "u3": "花子", "u4": "Zoe"}[author],
                body="" if kind == TOMBSTONE else chance.choice((chance.choice(texts), _text(chance, 14))),
                thread_native_id=str(chance.choice(numbers)) if rooted else None,
                from_role=chance.choice(("client", "teammate", "unknown", "vendor")),
                to_role=chance.choice((None, None, "client", BROADCAST)),
                kind=kind,
                status=chance.choice((None, None, "open", "resolved")),
                topic=_text(chance, 2) if kind != TOMBSTONE and chance.random() < 0.3 else "",
                link=f"https://example.org/{number}" if chance.random() < 0.3 else None,
                edited_at=NOON if chance.random() < 0.1 else None,
                attributes='{"a":1}' if chance.random() < 0.1 else None,
            )
        )
    return out


def random_query(chance: random.Random) -> str:
    """A query that parses: terms in every script, whole, confined and negated, joined either way."""
    return chance.choice((" ", " AND ", " OR ")).join(_term(chance) for _ in range(chance.choice((1, 1, 1, 2, 3))))


def _term(chance: random.Random) -> str:
    word = chance.choice(_WORDS)
    start = chance.randrange(len(word))
    text = chance.choice((word, word, word[start : start + 3] or word, f"{word} {chance.choice(_WORDS)}"))
    quoted = '"' + text.replace('"', '""') + '"'
    return (
        chance.choice(("", "", "", "NOT "))
        + chance.choice(("", "", "", "topic:", "body:"))
        + chance.choice(("", "", "="))
        + quoted
    )


def sees(sight: Sight, m: SourceMessage) -> bool:
    """Whether a message is in sight, recomputed without arrays."""
    return (
        sight.sees_conversation(m.conversation_id, m.conversation)
        and (not sight.roles or m.from_role in sight.roles)
        and (not sight.kinds or m.kind in sight.kinds)
        and (sight.oldest is None or m.sent_at >= sight.oldest)
    )


def naive_hits(messages: Sequence[SourceMessage], query: str = "", **filters: Any) -> list[SourceMessage]:
    """What matches, by one pass over the messages; roles, kinds and statuses as stored, names and ids as stored."""
    matcher = compile_tree(parse(query, Limits().query).tree)
    kinds = filters.get("kind", ())
    return [
        m
        for m in messages
        if m.kind != TOMBSTONE
        and (m.kind in kinds if kinds else m.kind != ACTIVITY)
        and all(getattr(m, name) in filters[name] for name in ("from_role", "status") if filters.get(name))
        and (not filters.get("to_role") or m.to_role in (*filters["to_role"], BROADCAST))
        and (not filters.get("author") or {m.author_id, fold(m.author)} & {fold(a) for a in filters["author"]})
        and (
            not filters.get("conversation")
            or {m.conversation_id, fold(m.conversation)} & {fold(c) for c in filters["conversation"]}
        )
        and word_count(fold(m.topic)) + word_count(fold(m.body)) >= filters.get("min_words", 0)
        and matcher.matches(m.topic, m.body)
    ]

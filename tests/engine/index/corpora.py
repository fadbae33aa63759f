"""Small corpora built as a refresh builds them, and random ones in many scripts with queries taken from their texts."""

import random
from collections.abc import Sequence
from pathlib import Path

import duckdb

from engine.model import SourceMessage
from engine.query.tree import And, Not, Or, Part, Term, Tree
from engine.snapshot.database import Database, DatabaseSettings, connect
from engine.snapshot.format import MANIFEST, FileEntry
from engine.snapshot.open import Corpus, open_corpus
from engine.snapshot.stage import stage
from engine.snapshot.write import Stamp, write
from engine.text import fold

SNAPSHOT = "20261201T001500.000000Z-1a2b3c4d"


class Folder:
    """As much of a snapshot store as opening one folder takes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, snapshot_id: str, name: str) -> bytes:
        del snapshot_id
        return (self.folder / name).read_bytes()

    def prefix(self, snapshot_id: str) -> str:
        del snapshot_id
        return f"{self.folder}/"

    def altered(self, snapshot_id: str, files: Sequence[FileEntry]) -> list[str]:
        del snapshot_id
        return [each.name for each in files if (self.folder / each.name).stat().st_size != each.size]


def built(
    folder: Path, messages: Sequence[SourceMessage], shard_rows: int = 1_000_000, *, index: bool = True
) -> Corpus:
    """A corpus of these messages, read from files in `folder`."""
    build: duckdb.DuckDBPyConnection = connect(DatabaseSettings("1GB", 1, folder / "tmp"), [f"{folder}/"])
    out = folder / "snapshot"
    out.mkdir()
    try:
        for _ in stage(build, messages):
            pass
        write(build, out, Stamp(SNAPSHOT, 0, "0", shard_rows=shard_rows, index=index), lambda *_: None)
    finally:
        build.close()
    assert (out / MANIFEST).exists()
    database = Database(connect(DatabaseSettings("1GB", 1), [f"{folder}/"]), seconds=60)
    return open_corpus(Folder(out), SNAPSHOT, database)


def message(native_id: str, body: str, *, topic: str = "", conversation: str = "c", sent_at: int = 0) -> SourceMessage:
    """A message with little but its text."""
    return SourceMessage(conversation, conversation, native_id, sent_at, "u", "u", body, topic=topic)


_SYLLABLES = (
    *("an", "na", "a", "b", "docker", "sock", "er", "x1", "_", "ß", "É", "İ", "ﬁ", "naïve", "o\u0308"),
    *("сервер", "ёж", "й", "Суб", "бот", "а", "у"),
    *("容器", "容", "器", "の", "テスト", "ー", "人人", "日本語"),
    *("สวัสดี", "ครับ", "ก็", "ກ"),
    *("سلام", "ال", "مرحبا", "ـ"),
    *("한국", "어", "ঙ", "मे", "\U00020000", "ᤐ"),
)
_SEPARATORS = (
    *(" ",) * 12,
    "",
    "",
    "",
    "  ",
    ".",
    "-",
    "\n",
    "\t",
    ", ",
    " - ",
    "/",
    "@",
    "👍",
    "👩\u200d👩",
    "…",
    "\u3000",
    "。",
)


def random_text(chance: random.Random, words: int) -> str:
    """Words of few syllables, so that parts of them recur everywhere."""
    pool = chance.sample(_SYLLABLES, 10)
    separators = (*(" ",) * 6, *chance.sample(_SEPARATORS, 8))
    out = []
    for _ in range(words):
        out += ["".join(chance.choices(pool, k=chance.randint(1, 3))), chance.choice(separators)]
    return "".join(out)[: None if chance.random() < 0.5 else -1]


def random_messages(seed: int, count: int = 60) -> list[SourceMessage]:
    """Messages of one word to hundreds, some with a topic, in a few conversations."""
    chance = random.Random(seed)
    sizes = [chance.choice((0, 1, 2, 3, 5, 8, 20)) for _ in range(count - 2)] + [300, 700]
    return [
        message(
            str(number),
            random_text(chance, size),
            topic=random_text(chance, 3) if chance.random() < 0.3 else "",
            conversation=chance.choice("abc"),
            sent_at=number,
        )
        for number, size in enumerate(sizes)
    ]


def random_term(chance: random.Random, texts: Sequence[str]) -> Term:
    """Mostly a piece of a text, sometimes with something changed."""
    text = chance.choice(texts)
    size = chance.choice((1, 1, 2, 2, 3, 4, 6, 9, 14))
    start = chance.randrange(len(text))
    piece = text[start : start + size]
    change = chance.random()
    if change < 0.1:
        piece = chance.choice(_SYLLABLES) + piece
    elif change < 0.2:
        piece = piece + chance.choice((" ", ".", *_SYLLABLES))
    elif change < 0.3 and size > 2:
        piece = piece.replace(chance.choice(piece), " ") or piece
    part: Part = chance.choice(("any", "any", "any", "topic", "body"))
    return Term(piece, whole=chance.random() < 0.3, part=part)


def random_tree(chance: random.Random, terms: Sequence[Term], depth: int = 2) -> Tree:
    """A term, or a few joined."""
    kind = chance.random()
    if not depth or kind < 0.5:
        return chance.choice(terms)
    if kind < 0.65:
        return Not(random_tree(chance, terms, depth - 1))
    parts = tuple(random_tree(chance, terms, depth - 1) for _ in range(chance.randint(2, 3)))
    return And(parts) if kind < 0.82 else Or(parts)


def folded_texts(messages: Sequence[SourceMessage]) -> list[str]:
    """Every text that is not empty, folded."""
    return [text for each in messages for text in (fold(each.topic), fold(each.body)) if text]

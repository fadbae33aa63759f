"""A message out of sight takes what a message that never was takes: the same statements, on the same files."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.errors import NotFound
from engine.requests import CountRequest, Criteria, Request, ThreadRequest
from engine.sight import Caller, Sight
from engine.snapshot.open import Corpus, open_corpus
from engine.snapshot.statements import Statements, Tables
from infra.sqlite import SqliteSeen
from tests.access.sights import app_over
from tests.engine.corpora import NOON, SNAPSHOT, Folder, corpus_of, said

HIDDEN, SEEN = "closed:7", "open:3"


class Recording:
    """Statements in front of others, each noted with its values, the id that was asked for left out."""

    def __init__(self, inner: Statements) -> None:
        self._inner = inner
        self.run: list[tuple[str, str, tuple[str, ...]]] = []

    def rows(self, sql: str, params: Sequence[object] = (), **tables: Tables) -> list[tuple[Any, ...]]:
        self._note("rows", sql, params)
        return self._inner.rows(sql, params, **tables)

    def arrays(self, sql: str, params: Sequence[object] = (), **tables: Tables) -> Tables:
        self._note("arrays", sql, params)
        return self._inner.arrays(sql, params, **tables)

    def stream(
        self, sql: str, params: Sequence[object] = (), *, size: int = 1_000, **tables: Tables
    ) -> Iterator[list[tuple[Any, ...]]]:
        self._note("stream", sql, params)
        return self._inner.stream(sql, params, size=size, **tables)

    def _note(self, how: str, sql: str, params: Sequence[object]) -> None:
        self.run.append((how, sql, tuple(re.sub(r"(open|closed|nowhere):\d+", "ID", str(each)) for each in params)))


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    """Three shards: of an open room with a thread, and of a closed one with another."""
    messages = [
        said(
            n,
            f"words {n}",
            conversation=room,
            author=f"{room}er",
            thread_native_id={"open": "3", "closed": "7"}[room] if n % 4 == 3 else None,
        )
        for room in ("open", "closed")
        for n in range(12)
    ]
    return corpus_of(tmp_path, messages, shard_rows=9)


def asked(corpus: Corpus, folder: Path, request: Request, sight: Sight) -> tuple[list[Any], str]:
    """The statements of a call in a process that has just opened the corpus, and the error it ends in."""
    recording = Recording(corpus.database)
    target = next(path.parent for path in folder.rglob("manifest.json"))
    opened = open_corpus(Folder(target), SNAPSHOT, recording)
    app = app_over(opened, folder, SqliteSeen(folder / "seen.sqlite", clock=lambda: NOON))
    app.instructions(Caller("ann", sight))
    before = len(recording.run)
    try:
        app.call(request, Caller("ann", sight))
    except NotFound as error:
        return recording.run[before:], re.sub(r"(open|closed|nowhere):\d+", "ID", error.to_text())
    return recording.run[before:], "answered"


SIGHTS = [
    Sight(allow=("open",)),
    Sight(deny=("closed",)),
    Sight(oldest=NOON + 60 * 60_000_000),
    Sight(roles=("nobody",)),
    Sight(kinds=("file",)),
]


@pytest.mark.parametrize("sight", SIGHTS)
@pytest.mark.parametrize(
    "request_for",
    [
        lambda i: ThreadRequest((i,)),
        lambda i: ThreadRequest((i,), view="author"),
        lambda i: CountRequest(Criteria(thread=(i,))),
        lambda i: CountRequest(Criteria(query="words", thread=(i,))),
    ],
)
def test_a_hidden_id_takes_the_statements_of_an_unknown_one(
    corpus: Corpus, tmp_path: Path, request_for: Any, sight: Sight
) -> None:
    hidden = asked(corpus, tmp_path, request_for(HIDDEN), sight)
    unknown = asked(corpus, tmp_path, request_for("nowhere:7"), sight)
    assert hidden == unknown
    assert hidden[1] != "answered"


def test_the_recording_tells_a_seen_id_from_an_unknown_one(corpus: Corpus, tmp_path: Path) -> None:
    sight = Sight(allow=("open",))
    seen = asked(corpus, tmp_path, ThreadRequest((SEEN,)), sight)
    unknown = asked(corpus, tmp_path, ThreadRequest(("nowhere:7",)), sight)
    assert seen[1] == "answered"
    assert len(seen[0]) > len(unknown[0])


@pytest.mark.parametrize("name", ["author", "conversation"])
def test_a_hidden_name_takes_the_statements_of_an_unknown_one(corpus: Corpus, tmp_path: Path, name: str) -> None:
    criteria = {"author": "closeder", "conversation": "closed"}
    found = [
        asked(corpus, tmp_path, CountRequest(replace(Criteria(), **{name: (value,)})), Sight(allow=("open",)))  # type: ignore[arg-type]  # a filter by name
        for value in (criteria[name], "nobodyer")
    ]
    assert found[0][0] == found[1][0]
    assert found[0][1].startswith("unknown_value: ")

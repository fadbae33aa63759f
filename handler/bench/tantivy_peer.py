"""tantivy as a peer: the same words, a part of a word by a regular expression over its dictionary of terms.

Decides the peer's schema and queries. Like SQLite it gets folded texts, and only messages that a search looks at. It
counts messages only, and ranks no part of a word: what a regular expression finds scores the same. Must never know
this engine.
"""

import json
import re
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import tantivy

from engine.model import SourceMessage
from engine.text import fold
from engine.times import iso
from handler.bench.answers import Answered
from handler.bench.corpora import Built, Synth
from handler.bench.processes import peak_bytes
from handler.bench.queries import StandardQuery, searched
from handler.wire import compact

__all__ = ["Tantivy", "build", "fill"]

_WORDS = "words"
_HEAP_BYTES = 256_000_000
_SHOWN = 8
_SHOWN_FIELDS = ("message_id", "conversation", "author", "body")


def build(folder: Path, messages: int, seed: int) -> Built:
    """Index a corpus in `folder`; for a process of its own."""
    folder.mkdir()
    source = Synth(messages, seed)
    start = time.perf_counter()
    rows, text_bytes = fill(folder, source)
    seconds = time.perf_counter() - start - source.drawing_seconds
    sizes = {file: file.stat().st_size for file in folder.iterdir()}
    # A store holds the texts that are shown, the other files are there to be searched.
    index_bytes = sum(size for file, size in sizes.items() if file.suffix != ".store")
    return Built(seconds, peak_bytes(), rows, text_bytes, index_bytes, sum(sizes.values()))


def fill(folder: Path, messages: Iterable[SourceMessage]) -> tuple[int, int]:
    """Index the messages that a search looks at: their number and bytes of text."""
    index = tantivy.Index(_schema(), path=str(folder))
    _register(index)
    writer = index.writer(_HEAP_BYTES, 0)
    rows = text_bytes = 0
    for message in messages:
        if not searched(message):
            continue
        document = tantivy.Document()
        document.add_text("folded", fold(message.body))
        document.add_text("from_role", message.from_role)
        document.add_integer("sent_at", message.sent_at)
        for name in _SHOWN_FIELDS:
            document.add_bytes(name, getattr(message, name).encode())
        writer.add_document(document)
        rows += 1
        text_bytes += len(message.body.encode())
    writer.commit()
    writer.wait_merging_threads()
    return rows, text_bytes


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("folded", tokenizer_name=_WORDS, index_option="position")
    builder.add_text_field("from_role", tokenizer_name="raw", index_option="basic")
    builder.add_integer_field("sent_at", stored=True, fast=True)
    for name in _SHOWN_FIELDS:
        builder.add_bytes_field(name, stored=True)
    return builder.build()


def _register(index: tantivy.Index) -> None:
    words = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.regex(r"[\p{L}\p{M}\p{N}_]+")).build()
    index.register_tokenizer(_WORDS, words)


class Tantivy:
    """One system of the benchmark."""

    name = "tantivy"

    def __init__(self, folder: Path) -> None:
        index = tantivy.Index.open(str(folder))
        _register(index)
        index.reload()
        self._schema = index.schema
        self._searcher = index.searcher()

    def count(self, query: StandardQuery) -> bytes:
        """The number of matches, as JSON."""
        found: Any = self._searcher.search(self._query(query), 1, count=True)
        return compact({"found": {"messages": found.count}})

    def search(self, query: StandardQuery) -> bytes:
        """The number of matches and the texts of the top eight."""
        # The package's own types leave `count` out.
        found: Any = self._searcher.search(self._query(query), _SHOWN, count=True)
        messages = []
        for _, address in found.hits:
            document = self._searcher.doc(address).to_dict()
            texts = {name: document[name][0].decode() for name in _SHOWN_FIELDS}
            messages.append({**texts, "sent_at": iso(document["sent_at"][0])})
        return compact({"found": {"messages": found.count}, "messages": messages})

    def counted(self, query: StandardQuery) -> Answered:
        """What `count` says, in the form to compare."""
        return Answered(**json.loads(self.count(query))["found"])

    def found(self, query: StandardQuery) -> Answered:
        """What `search` says, in the form to compare."""
        return Answered(**json.loads(self.search(query))["found"])

    def close(self) -> None:
        """Nothing is held open."""

    def _query(self, query: StandardQuery) -> tantivy.Query:
        must, must_not = tantivy.Occur.Must, tantivy.Occur.MustNot
        parts = [(must, self._term(term)) for term in query.required]
        if query.either:
            either = [(tantivy.Occur.Should, self._term(term)) for term in query.either]
            parts.append((must, tantivy.Query.boolean_query(either)))
        parts += [(must_not, self._term(term)) for term in query.excluded]
        if query.from_role is not None:
            parts.append((must, tantivy.Query.term_query(self._schema, "from_role", query.from_role)))
        if query.months is not None:
            first, end = (_instant(month) for month in query.months)
            kind = tantivy.FieldType.Integer
            sent = tantivy.Query.range_query(self._schema, "sent_at", kind, first, end, True, False)
            parts.append((must, sent))
        return parts[0][1] if len(parts) == 1 else tantivy.Query.boolean_query(parts)

    def _term(self, term: str) -> tantivy.Query:
        """A part of a word; of several words the last of a first word, whole ones, and the first of a last."""
        first, *rest = (re.escape(word) for word in term.split(" "))
        if not rest:
            return tantivy.Query.regex_query(self._schema, "folded", f".*{first}.*")
        words = [f".*{first}", *rest[:-1], f"{rest[-1]}.*"]
        return tantivy.Query.regex_phrase_query(self._schema, "folded", [*words])


def _instant(month: str) -> int:
    """The first microsecond of a month, since 1970, UTC."""
    return int(datetime.strptime(month, "%Y-%m").replace(tzinfo=UTC).timestamp()) * 1_000_000

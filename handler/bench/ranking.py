"""How well a message that somebody has in mind is found: our ranking, newest first, and SQLite FTS5's bm25.

Decides the questions and what counts as found. A question is made of three words of a real message, or comes with the
key of a planted story; it is answered by the tool itself, a page of fifty. What shows the message's text shows the
message: copies are merged on one side only. Must never know how anything is ranked.
"""

import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import groupby
from math import comb
from pathlib import Path
from statistics import stdev
from tempfile import TemporaryDirectory
from typing import Any

from engine.errors import Unavailable
from engine.model import SourceMessage, SourceReport
from engine.ports import Source
from engine.requests import Criteria, SearchRequest
from engine.sources.roles import RoleRules
from engine.sources.slack import SlackExport
from engine.synth.corpus import plan
from engine.text import fold
from handler.bench.corpora import Synth, kept
from handler.bench.hayfork import app_over, build
from handler.bench.queries import searched, words_of
from handler.bench.run import OURS, machine
from handler.local_app import LocalApp
from handler.mcp_server import LOCAL_CALLER

__all__ = ["DEPTH", "FABRIC", "Bm25", "Question", "judged", "known_items", "report", "story_questions"]

FABRIC = Path("tests") / "fixtures" / "slack-export-fabric.zip"

DEPTH = 50
"""Hits looked at: as many as one page may hold."""

_FIRST = 8
_SAMPLE = 300
_FEWEST_WORDS = 12
"""A shorter message is not one a person looks for by three of its words."""
_REMEMBERED = 10
"""Messages that must hold a word for it to be one a person remembers rather than a number or a hash."""
_STORY_MESSAGES = 40_000

_BY_SCORE, _FTS5 = "hayfork, by score alone", "FTS5 bm25, unicode61"

_TERM = re.compile(r'"[^"]+"|\S+')


Hit = tuple[str, float]
"""A message's id and its score; hits of equal score may stand in any order."""

Places = dict[int, float]


@dataclass(frozen=True, slots=True)
class Question:
    """Terms asked for, all of them or any, and the ids of the messages that answer."""

    terms: tuple[str, ...]
    right: frozenset[str]
    any_of: bool = False

    @property
    def ours(self) -> str:
        """In our query language."""
        return (" OR " if self.any_of else " ").join(self.terms)

    @property
    def fts5(self) -> str:
        """As FTS5 wants it."""
        return (" OR " if self.any_of else " AND ").join('"' + term.strip('"') + '"' for term in self.terms)


def report(folder: Path, told: Callable[[str], None], export: Path = FABRIC, sample: int = _SAMPLE) -> dict[str, Any]:
    """Ask all questions of all rankings; the object's `ranking` maps a set of questions to what came of it.

    Raises:
        Unavailable: `bench_failed` when the export of real messages is not there.
    """
    if not export.is_file():
        raise Unavailable("bench_failed", f"there is no {export.name} here", next_step="run it where the sources are")
    source = SlackExport(export, RoleRules({}))
    messages = [m for m in source.messages(SourceReport()) if searched(m)]
    sets = {
        "The three rarest words, all required": known_items(messages, sample, fewest=1),
        f"The three rarest of the words in {_REMEMBERED} messages or more, all required": known_items(
            messages, sample, fewest=_REMEMBERED
        ),
        "The same words, any of them": known_items(messages, sample, fewest=_REMEMBERED, any_of=True),
    }
    out = {}
    with TemporaryDirectory(prefix="hayfork-") as temporary:
        app = _refreshed(Path(temporary), source)
        for name, questions in sets.items():
            told(name)
            out[name] = judged(questions, messages, app)
        app.close()
    told("planted stories")
    root, _ = kept(folder, OURS, _STORY_MESSAGES, 1, build)
    app = app_over(str(root))
    planted = [m for m in Synth(_STORY_MESSAGES, 1) if searched(m)]
    out["Planted stories, asked as their keys say"] = judged(story_questions(_STORY_MESSAGES, 1), planted, app)
    app.close()
    return {"machine": machine(), "ranking": out}


def _refreshed(folder: Path, source: Source) -> LocalApp:
    app = app_over(str(folder), source)
    app.refresh()
    return app


def known_items(messages: Sequence[SourceMessage], sample: int, *, fewest: int, any_of: bool = False) -> list[Question]:
    """A question for each of up to `sample` messages, chosen by a digest of their ids.

    Each asks for the three rarest of the message's words that `fewest` messages or more hold.
    """
    held: Counter[str] = Counter()
    for message in messages:
        held.update(set(words_of(_folded(message))))
    drawn = sorted(messages, key=lambda m: blake2b(m.message_id.encode(), digest_size=8).digest())
    questions = []
    for message in drawn:
        words = words_of(_folded(message))
        known = sorted({w for w in words if len(w) > 2 and held[w] >= fewest}, key=lambda w: (held[w], w))
        if len(words) >= _FEWEST_WORDS and len(known) >= 3:
            questions.append(Question(tuple(known[:3]), frozenset((message.message_id,)), any_of))
        if len(questions) == sample:
            break
    return questions


def story_questions(messages: int, seed: int) -> list[Question]:
    """The first query of each planted story that names the messages which hold its answer and filters nothing."""
    return [
        Question(tuple(_TERM.findall(str(story.calls[0].arguments["query"]))), frozenset(story.message_ids))
        for story in plan(messages, seed).stories
        if story.message_ids and set(story.calls[0].arguments) == {"query"}
    ]


def judged(questions: Sequence[Question], messages: Iterable[SourceMessage], app: LocalApp) -> dict[str, Any]:
    """What each ranking makes of the questions. `messages` are those of the app's corpus that a search looks at."""
    texts = {message.message_id: (_folded(message), message.sent_at) for message in messages}
    bm25 = Bm25(texts)
    places: dict[str, list[Places]] = {}
    for question in questions:
        best = _ours(app, question, "best")
        ranked = {
            "hayfork": _as_shown(best),
            _BY_SCORE: sorted(best, key=lambda hit: -hit[1]),
            "newest first": _as_shown(_ours(app, question, "newest")),
            _FTS5: bm25.ranked(question),
        }
        for name, hits in ranked.items():
            places.setdefault(name, []).append(_places(hits, question.right, texts))
    bm25.close()
    return {
        "queries": len(questions),
        "depth": DEPTH,
        "rankings": {name: _figures(each) for name, each in places.items()},
        "less_fts5": _difference(places[_BY_SCORE], places[_FTS5]),
    }


def _difference(ours: Sequence[Places], theirs: Sequence[Places]) -> dict[str, float]:
    """The mean of what each question's reciprocal rank differs by, and half the width of its 95 % interval."""
    each = [_reciprocal(a) - _reciprocal(b) for a, b in zip(ours, theirs, strict=True)]
    margin = 1.96 * stdev(each) / len(each) ** 0.5 if len(each) > 1 else 0.0
    return {"mean": _mean(each), "margin": round(margin, 4)}


def _figures(asked: Sequence[Places]) -> dict[str, float]:
    return {
        "mean_reciprocal_rank": _mean(map(_reciprocal, asked)),
        "hits_at_8": _mean(sum(chance for place, chance in places.items() if place <= _FIRST) for places in asked),
        "found": _mean(sum(places.values()) for places in asked),
    }


def _reciprocal(places: Places) -> float:
    return sum(chance / place for place, chance in places.items())


def _mean(values: Iterable[float]) -> float:
    each = list(values)
    return round(sum(each) / len(each), 4)


def _folded(message: SourceMessage) -> str:
    return fold(f"{message.topic}\n{message.body}" if message.topic else message.body)


def _ours(app: LocalApp, question: Question, order: str) -> list[Hit]:
    request = SearchRequest(Criteria(question.ours), limit=DEPTH, order=order, fields=("score",))
    messages = app.call(request, LOCAL_CALLER).object["messages"]
    return [(message["id"], message.get("score", 0.0)) for message in messages]


def _as_shown(hits: list[Hit]) -> list[Hit]:
    """The page's order as it is: no hit ties with another."""
    return [(hit, -float(place)) for place, (hit, _) in enumerate(hits)]


def _places(ranked: Sequence[Hit], right: frozenset[str], texts: Mapping[str, tuple[str, int]]) -> Places:
    """The places, from 1, at which a right message's text may come first, each with its probability.

    Of equal scores any order is as good as another, so none is taken for granted: after McSherry and Najork, "Computing
    Information Retrieval Performance Measures Efficiently in the Presence of Tied Scores" (2008).
    """
    wanted = {texts[message_id][0] for message_id in right}
    before = 0
    for _, group in groupby(ranked, key=lambda hit: round(hit[1], 9)):
        tied = [texts[hit][0] in wanted for hit, _ in group]
        size, here = len(tied), sum(tied)
        if here:
            orders = comb(size, here)
            return {before + n: comb(size - n, here - 1) / orders for n in range(1, size - here + 2)}
        before += size
    return {}


class Bm25:
    """FTS5 with its own tokenizer and ranking over the same folded texts, in memory; ties go to the newest."""

    def __init__(self, texts: Mapping[str, tuple[str, int]]) -> None:
        self._connection = sqlite3.connect(":memory:")
        self._connection.execute(
            "CREATE VIRTUAL TABLE found"
            " USING fts5(message_id UNINDEXED, sent_at UNINDEXED, folded, tokenize='unicode61')"
        )
        rows = [(message_id, sent_at, folded) for message_id, (folded, sent_at) in texts.items()]
        self._connection.executemany("INSERT INTO found VALUES (?, ?, ?)", rows)

    def ranked(self, question: Question) -> list[Hit]:
        """The first hits."""
        sql = (
            "SELECT message_id, -bm25(found) FROM found WHERE found MATCH ?"
            f" ORDER BY bm25(found), sent_at DESC LIMIT {DEPTH}"
        )
        return self._connection.execute(sql, [question.fts5]).fetchall()

    def close(self) -> None:
        """Let go of it."""
        self._connection.close()

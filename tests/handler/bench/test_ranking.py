"""Known items: how questions are made, and what counts as found."""

from pathlib import Path

import pytest

from engine.errors import Unavailable
from engine.model import SourceMessage
from engine.synth import generate
from handler.bench.corpora import Synth
from handler.bench.hayfork import app_over
from handler.bench.queries import searched
from handler.bench.ranking import Question, _places, judged, known_items, report, story_questions

LONG = "one two three four five six seven eight nine ten eleven {}"


def message(number: int, body: str) -> SourceMessage:
    return SourceMessage("C1", "general", str(number), number * 1_000_000, "U1", "Zara", body)


def test_a_question_asks_for_the_rarest_words_that_enough_messages_hold() -> None:
    messages = [message(n, LONG.format(f"word{n} pair{n // 2}")) for n in range(4)] + [message(9, "too short")]
    rarest = known_items(messages, 10, fewest=1)
    assert {question.terms for question in rarest} == {(f"word{n}", f"pair{n // 2}", "eight") for n in range(4)}
    known = known_items(messages, 2, fewest=2, any_of=True)
    assert [question.terms[1:] for question in known] == [("eight", "eleven"), ("eight", "eleven")]
    assert known[0].ours == " OR ".join(known[0].terms)
    assert Question(('"a b"', "c"), frozenset()).fts5 == '"a b" AND "c"'


def test_the_planted_stories_are_found_by_our_ranking(tmp_path: Path) -> None:
    questions = story_questions(1_000, 1)
    assert ("theodolite",) in [question.terms for question in questions]
    app = app_over(str(tmp_path / "corpus"), Synth(1_000, 1))
    app.refresh()
    told = judged(questions, [m for m in generate(1_000, 1) if searched(m)], app)
    app.close()
    assert told["queries"] == len(questions)
    assert list(told["rankings"]) == ["hayfork", "hayfork, by score alone", "newest first", "FTS5 bm25, unicode61"]
    assert told["rankings"]["hayfork"]["found"] == 1.0
    by_score, fts5 = (told["rankings"][name]["mean_reciprocal_rank"] for name in list(told["rankings"])[1::2])
    assert told["less_fts5"]["mean"] == pytest.approx(by_score - fts5, abs=2e-4)
    assert told["less_fts5"]["margin"] >= 0
    assert told["rankings"]["newest first"]["found"] == 1.0


def test_tied_scores_are_taken_in_every_order() -> None:
    texts = {name: (name, 0) for name in "abcd"}
    ranked = [("a", 2.0), ("b", 1.0), ("c", 1.0), ("d", 1.0)]
    third = pytest.approx(1 / 3)
    assert _places(ranked, frozenset("a"), texts) == {1: 1.0}
    assert _places(ranked, frozenset("c"), texts) == {2: third, 3: third, 4: third}
    assert _places(ranked, frozenset("cd"), texts) == {2: pytest.approx(2 / 3), 3: third}
    assert _places(ranked[:1], frozenset("d"), texts) == {}


def test_without_the_export_the_report_says_so(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"there is no none\.zip here"):
        report(tmp_path, lambda _: None, export=tmp_path / "none.zip")

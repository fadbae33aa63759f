"""The index answers exactly as the scan does: the same rows and frequencies for every term and query."""

import math
import random
from collections.abc import Sequence
from datetime import UTC
from pathlib import Path

import numpy as np
import pytest

from engine.hits import find
from engine.index.pieces import pattern_of
from engine.limits import Limits
from engine.match import compile_tree
from engine.model import SourceReport
from engine.ordering import scored
from engine.plan import distinct_terms, evaluate, matching_rows, occurrences
from engine.query.bind import bind
from engine.query.tree import Or, Term, Tree, canonical
from engine.rank import INSIDE, PREFIX, TOPIC, WHOLE
from engine.requests import Criteria
from engine.sight import EVERYTHING
from engine.snapshot.open import Corpus
from engine.sources.roles import RoleRules
from engine.sources.slack import SlackExport
from engine.text import fold, is_word_char
from engine.view import View
from tests.depth import depth
from tests.engine.index.corpora import built, folded_texts, message, random_messages, random_term, random_tree

_TERMS = depth(160, 80)
_QUERIES = depth(900, 450)
"""Over each corpus: 21,600 queries together when digging deep."""


def assert_index_equals_scan(corpus: Corpus, terms: Sequence[Term], trees: Sequence[Tree]) -> None:
    """Rows and frequencies of every term, and rows of every query made of them."""
    texts = corpus.folded(np.arange(corpus.rows))
    by_index = occurrences(corpus, terms, brute=False)
    by_scan = occurrences(corpus, terms, brute=True)
    for one, other in zip(by_index, by_scan, strict=True):
        assert one.rows.tolist() == other.rows.tolist(), one.term
        assert one.path == ("substring" if pattern_of(one.term) is None else "fts")
        tenths = one.tenths(one.rows)
        if tenths is not None:
            assert tenths.tolist() == [counted(one.term, *texts[row]) for row in one.rows.tolist()], one.term
        if len(one.term.text) == 2 and all(map(is_word_char, fold(one.term.text))) and not one.term.whole:
            some = one.rows[::2]
            assert one.words(corpus, some) == other.words(corpus, some), one.term
    for tree in trees:
        expected = evaluate(tree, by_scan, corpus.rows)
        found = matching_rows(tree, by_index, corpus.rows)
        assert found.tolist() == np.flatnonzero(expected).tolist(), str(tree)


def counted(term: Term, topic: str, body: str) -> int:
    """The weighted frequency of a term in tenths, from the texts."""
    (found,) = compile_tree(term).counts(topic, body)
    return sum(
        factor * (WHOLE * part.whole + PREFIX * part.prefix + INSIDE * part.inside)
        for factor, part in ((TOPIC, found.topic), (1, found.body))
    )


@pytest.mark.parametrize("seed", range(depth(24, 4)))
def test_index_and_scan_agree_on_random_corpora_of_mixed_scripts(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    messages = random_messages(seed)
    corpus = built(tmp_path, messages, shard_rows=(15, 40, 1_000)[seed % 3])
    texts = folded_texts(messages)
    terms = distinct_terms(Or(tuple(random_term(chance, texts) for _ in range(_TERMS))))
    assert_index_equals_scan(corpus, terms, [random_tree(chance, terms) for _ in range(_QUERIES)])


@pytest.fixture(scope="module")
def fabric(tmp_path_factory: pytest.TempPathFactory) -> tuple[Corpus, list[str]]:
    """The real slice, in shards of 4,000 rows and the smallest blocks there can be, and its folded texts."""
    export = Path(__file__).parents[2] / "fixtures" / "slack-export-fabric.zip"
    messages = list(SlackExport(export, RoleRules({})).messages(SourceReport()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("engine.snapshot.lexicon.BLOCK", 16_384)
        corpus = built(tmp_path_factory.mktemp("fabric"), messages, shard_rows=4_000)
    assert min(len(lexicon.positions) for lexicon in corpus.manifest.lexicons[:-1]) > 2
    return corpus, folded_texts(messages)


@pytest.mark.parametrize("seed", range(4))
def test_index_and_scan_agree_on_a_real_export(fabric: tuple[Corpus, list[str]], seed: int) -> None:
    corpus, texts = fabric
    chance = random.Random(100 + seed)
    terms = distinct_terms(Or(tuple(random_term(chance, texts) for _ in range(40))))
    assert_index_equals_scan(corpus, terms, [random_tree(chance, terms) for _ in range(100)])


def test_scores_are_those_of_the_formula_recounted_from_texts(tmp_path: Path) -> None:
    chance = random.Random(9)
    messages = random_messages(9)
    corpus = built(tmp_path, messages, shard_rows=15)
    view = View(corpus, EVERYTHING, Limits())
    texts = corpus.folded(np.arange(corpus.rows))
    lengths = [max(20, int(words)) for words in corpus.narrow.words]
    average = sum(lengths) / len(lengths)
    candidates = [random_term(chance, folded_texts(messages)) for _ in range(60)]
    for term in [term for term in candidates if (pattern := pattern_of(term)) is not None and pattern.settled]:
        hits = find(view, bind(Criteria(query=canonical(term)), view, UTC))
        frequencies = [counted(term, *text) / 10 for text in texts]
        df = sum(f > 0 for f in frequencies)
        idf = math.log(1 + (len(texts) - df + 0.5) / (df + 0.5))
        expected = [
            idf * f * 2.2 / (f + 1.2 * (0.25 + 0.75 * length / average))
            for f, length in zip(frequencies, lengths, strict=True)
            if f
        ]
        assert scored(hits, hits.rows).tolist() == pytest.approx(expected, abs=1e-9), str(term)


def test_many_candidates_are_left_to_one_scan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.index.search._READ", 2)
    bodies = ["docker.sock", "docker sock", "a docker.sock again", "docker-sock", "docker.sock"]
    corpus = built(tmp_path, [message(str(n), body) for n, body in enumerate(bodies)])
    (found,) = occurrences(corpus, [Term("docker.sock")], brute=False)
    (scanned,) = occurrences(corpus, [Term("docker.sock")], brute=True)
    assert found.rows.tolist() == scanned.rows.tolist()
    assert (found.path, len(found.rows)) == ("fts", 3)

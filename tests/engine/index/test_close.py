"""Close words, against a recount over the messages in plain Python; and what becomes of them in filters and sight."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import regex

from engine.index.close import edits_allowed
from engine.match import compile_tree
from engine.model import ACTIVITY, SourceMessage
from engine.query.spellings import is_unspaced, spellings
from engine.query.stems import forms_among, stems_of
from engine.query.tree import Term, canonical
from engine.sight import Sight
from engine.text import fold
from tests.depth import depth
from tests.engine.corpora import Desk, corpus_of, desk_of, naive_hits, said
from tests.engine.index.test_near import plain_distance

LETTERS = "aeioru"
WORD = regex.compile(r"[\p{L}\p{M}\p{N}_]+")
WORDS = (
    *("суббота", "субботу", "субботы", "субота", "run", "runs", "running", "ruining", "login", "log", "in", "email"),
    *("e-mail", "e mail", "colour", "color", "organise", "organize", "organised", "Müller", "Mueller", "don't"),
    *("don’t", "dont", "コンピューター", "コンピュータ", "カメラ", "docker", "dokcer", "dockers", "docker7", "docker8"),
    *("certificate", "certificates", "certifcate", "ceritficate", "log in", "log-in", "log. in", "日本", "йод", "иод"),
)


def close_to(term: Term, messages: Sequence[SourceMessage], most: int = 6) -> dict[str, int]:
    """What `CloseWords.counted` promises, from the texts of the messages in the scope alone."""
    folded = fold(term.text)
    texts = [
        [fold(text) for part, text in (("topic", m.topic), ("body", m.body)) if term.part in ("any", part)]
        for m in messages
    ]
    held = [{word for text in parts for word in WORD.findall(text) if not is_unspaced(word)} for parts in texts]
    spelled = spellings(term.text)
    plain = WORD.fullmatch(folded) is not None and not is_unspaced(folded)

    def missed(text: str) -> bool:
        return text != folded if term.whole else folded not in text

    def is_kin(word: str) -> bool:
        stems = stems_of(term.text, folded) if plain else []
        forms = any(word.startswith(stem.head) and forms_among(stem, [word]) for stem in stems)
        return forms or word in spelled.words

    def is_near(word: str) -> bool:
        if not plain or [c for c in word if c.isdigit()] != [c for c in folded if c.isdigit()]:
            return False
        return plain_distance(folded, word) <= edits_allowed(folded)

    words = {word for each in held for word in each if missed(word)}
    counts = {word: sum(word in each for each in held) for word in words}
    kin = {word: counts[word] for word in words if is_kin(word)}
    parted = [left + sign + right for left, right in spelled.halves for sign in " -"]
    for text in (*spelled.phrases, *spelled.runs, *parted):
        holds = compile_tree(Term(text, whole=not spelled.runs, part=term.part)).matches
        count = sum(holds(m.topic, m.body) for m in messages)
        if count and missed(text):
            kin[canonical(Term(text))] = count
    near = {word: counts[word] for word in words if word not in kin and is_near(word)}

    def first(found: dict[str, int]) -> list[tuple[str, int]]:
        return sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))

    return dict([*first(kin), *first(near)][:most])


def edited(chance: random.Random, word: str) -> str:
    at = chance.randrange(len(word))
    letter = chance.choice(LETTERS)
    return chance.choice((word[:at] + letter + word[at:], word[:at] + word[at + 1 :] or letter, word[::-1], word))


def many_messages(chance: random.Random, most: int) -> list[SourceMessage]:
    """Messages of few words, many of them nearly the same, in two rooms, some of activity."""
    known = [*WORDS, *(edited(chance, chance.choice(WORDS)) for _ in range(40))]
    return [
        said(
            number,
            " ".join(chance.choices(known, k=chance.randint(1, 8))),
            topic=chance.choice(("", "", chance.choice(known))),
            conversation=chance.choice(("open", "closed")),
            kind=chance.choice(("message", "message", "message", ACTIVITY)),
        )
        for number in range(most)
    ]


@pytest.mark.parametrize("seed", range(depth(60, 3)))
def test_close_words_are_those_of_a_recount_whatever_the_shards_filters_and_sight(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    messages = many_messages(chance, 60)
    sight = chance.choice((Sight(), Sight(allow=("open",))))
    desk = desk_of(tmp_path, corpus_of(tmp_path, messages, shard_rows=chance.choice((11, 1_000))), sight)
    words = desk.view.corpus.close_words
    assert words is not None
    for _ in range(20):
        text = edited(chance, chance.choice(WORDS))
        term = Term(text, whole=chance.random() < 0.2, part=chance.choice(("any", "any", "topic", "body")))
        filters: dict[str, Any] = chance.choice(({}, {"min_words": 4}))
        seen = [m for m in naive_hits(messages, **filters) if not sight.allow or m.conversation == "open"]
        scope = desk.view.searchable & (desk.view.narrow.words >= filters.get("min_words", 0))
        assert words.counted(term, scope, 6) == close_to(term, seen), term
        # What was found once is remembered.
        assert list(words.counted(term, scope, 2).items()) == list(close_to(term, seen, 2).items())


def desk_over(folder: Path, *bodies: str, **changes: Any) -> Desk:
    return desk_of(folder, corpus_of(folder, [said(at, body, **changes) for at, body in enumerate(bodies)]))


def close(desk: Desk, query: str, **filters: Any) -> dict[str, int]:
    """The close words of a query of one term, as `count_messages` gives them."""
    told = desk.count(query, **filters).object
    ((_, facts),) = (told.get("hints", told)["terms"]).items()
    found: dict[str, int] = facts.get("close", {})
    return found


def test_subbota_offers_its_other_cases(tmp_path: Path) -> None:
    desk = desk_over(tmp_path, "встретимся в субботу", "в субботу, в субботу", "субботы нет", "каждая суббота")
    assert close(desk, "суббота") == {"субботу": 2, "субботы": 1}
    assert "term суббота: 1 message; close: субботу 2, субботы 1" in desk.count("суббота").text


def test_running_offers_run_and_runs(tmp_path: Path) -> None:
    desk = desk_over(tmp_path, "a run", "the run", "it runs", "running late", "a rune")
    assert close(desk, "running") == {"run": 2, "runs": 1}


def test_orcamento_is_one_with_its_cedilla_and_offers_what_is_misspelt(tmp_path: Path) -> None:
    desk = desk_over(tmp_path, *["o orçamento"] * 3, "um orcamento", "orcamneto")
    told = desk.count("orcamento").object
    assert (told["found"]["messages"], told["terms"]["orcamento"]["messages"]) == (4, 4)
    assert close(desk, "orçamento") == {"orcamneto": 1}


def test_ana_tells_how_often_it_stands_in_banana(tmp_path: Path) -> None:
    desk = desk_over(tmp_path, *["banana"] * 5, "ana", "semana e ana", "imagina")
    told = desk.count("ana")
    assert told.object["terms"]["ana"] == {"messages": 7, "words": {"banana": 5, "ana": 2, "semana": 1}}
    assert "term ana: inside banana 5, ana 2, semana 1" in told.text


def test_a_word_that_a_term_stands_inside_is_not_close_to_it(tmp_path: Path) -> None:
    desk = desk_over(tmp_path, "docker", "dockers", "dokcer")
    assert close(desk, "docker") == {"dokcer": 1}
    assert close(desk, "=docker") == {"dockers": 1, "dokcer": 1}


def test_a_number_is_not_close_to_another(tmp_path: Path) -> None:
    desk = desk_over(tmp_path, "error404", "error403", "eror404", "1234", "1235", "2016-11")
    assert close(desk, "error404") == {"eror404": 1}
    assert close(desk, "1234") == {}


def test_the_commonest_come_first_and_forms_before_lookalikes(tmp_path: Path) -> None:
    bodies = [*["text"] * 5, *["rest"] * 3, *["best"] * 3, "tests", "tested", "nest", "west", "pest", "vest", "tesp"]
    desk = desk_over(tmp_path, *bodies, topic="")
    assert list(close(desk, "testing").items()) == [("tested", 1), ("tests", 1)]
    assert list(close(desk, "tesk").items()) == [("tesp", 1)]
    assert list(close(desk, "zest").items()) == [
        ("best", 3),
        ("rest", 3),
        ("nest", 1),
        ("pest", 1),
        ("vest", 1),
        ("west", 1),
    ]


def test_what_is_too_rare_to_come_first_is_not_even_counted(tmp_path: Path) -> None:
    desk = desk_over(tmp_path, *["best", "rest"] * 3, "nest", "nest", "west")
    words = desk.view.corpus.close_words
    assert words is not None
    assert words.counted(Term("zest"), desk.view.searchable, 1) == {"best": 3}
    assert list(words.counted(Term("zest"), desk.view.searchable, 3)) == ["best", "rest", "nest"]


def test_a_compound_offers_its_other_spellings(tmp_path: Path) -> None:
    desk = desk_over(tmp_path, "log in", "log in now", "log-in", "login", "log. in", "e-mail", "email")
    assert close(desk, "login") == {'"log in"': 2, "log-in": 1}
    assert close(desk, '"log in"') == {"log-in": 1, "login": 1}
    assert close(desk, "e-mail") == {"email": 1}


def test_a_word_in_subject_and_text_of_one_message_counts_once(tmp_path: Path) -> None:
    desk = desk_over(tmp_path, "the colour", topic="colour")
    assert (close(desk, "color"), close(desk, "topic:color")) == ({"colour": 1}, {"colour": 1})
    assert close(desk_over(tmp_path, "the colour", topic="x"), "topic:color") == {}


def test_a_spelling_that_only_texts_can_tell_is_left_out_where_too_many_would_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = desk_over(tmp_path, *["the e-mail"] * 3, "email")
    monkeypatch.setattr("engine.index.close._VERIFIED", 2)
    assert close(desk, "email", min_words=2) == {"mail": 3}
    monkeypatch.setattr("engine.index.close._VERIFIED", 3)
    assert close(desk, "email") == {"e-mail": 3, "mail": 3}


def test_what_is_hidden_filtered_out_or_activity_is_not_close(tmp_path: Path) -> None:
    messages = [
        said(0, "docker"),
        said(1, "dokcer", conversation="closed"),
        said(2, "dockre", author="Zoe"),
        said(3, "dockcer", kind=ACTIVITY),
    ]
    corpus = corpus_of(tmp_path, messages)
    assert close(desk_of(tmp_path, corpus), "docker") == {"dockre": 1, "dokcer": 1}
    assert close(desk_of(tmp_path, corpus), "docker", author=("Ann",)) == {"dokcer": 1}
    assert close(desk_of(tmp_path, corpus, Sight(deny=("closed",))), "docker") == {"dockre": 1}
    assert close(desk_of(tmp_path, corpus), "docker", kind=("activity", "message"), author=("Ann",)) == {
        "dockcer": 1,
        "dokcer": 1,
    }


def test_many_terms_are_remembered_and_the_longest_unused_let_go(tmp_path: Path) -> None:
    desk = desk_over(tmp_path, "docker")
    words = desk.view.corpus.close_words
    assert words is not None
    for number in range(300):
        words.counted(Term(f"docker{number}x"), desk.view.searchable, 6)
    assert words.counted(Term("dokcer"), desk.view.searchable, 6) == {"docker": 1}


def test_a_letter_that_the_index_does_not_know_is_no_spelling(tmp_path: Path) -> None:
    desk = desk_over(tmp_path, "docker")
    words = desk.view.corpus.close_words
    assert words is not None
    assert words.counted(Term("\u1c89-a"), desk.view.searchable, 6) == {}


@pytest.mark.parametrize(
    ("folded", "edits"), [("abc", 0), ("abcd", 1), ("abcdefg", 1), ("abcdefgh", 2), ("1234", 0), ("суббота", 1)]
)
def test_longer_words_bear_more_edits(folded: str, edits: int) -> None:
    assert edits_allowed(folded) == edits

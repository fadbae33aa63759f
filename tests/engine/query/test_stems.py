"""Forms of a word, in the language that its script and marks suggest."""

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from engine.query.stems import Stem, forms_among, load_stemmers, stems_of
from engine.text import fold


@pytest.mark.parametrize(
    ("written", "forms", "others"),
    [
        ("суббота", ["субботу", "субботы", "субботой"], ["субботник"]),
        ("running", ["run", "runs", "running"], ["rune", "runner"]),
        ("happy", ["happiness", "happy"], ["hap", "happen"]),
        ("Häuser", ["haus", "hauser"], ["hause1"]),
        ("orçamentos", ["orcamento", "orcamentos"], ["orca"]),
        ("μηνύματα", ["μηνυμα"], ["μηνας"]),
    ],
)
def test_forms_share_a_stem(written: str, forms: list[str], others: list[str]) -> None:
    stems = stems_of(written, fold(written))
    found = {form for stem in stems for form in forms_among(stem, [*forms, *others]) if form.startswith(stem.head)}
    assert found == set(forms)


def test_a_form_begins_with_the_head_and_is_not_much_longer() -> None:
    assert stems_of("running", "running") == [Stem("english", "run", "run", 8)]
    assert forms_among(Stem("english", "run", "run", 3), ["run", "runs"]) == ["run"]


@pytest.mark.parametrize("text", ["日本", "flies", "a1", "docker_x", "x1y2"])
def test_what_begins_with_too_little_or_is_of_no_language_has_no_stem(text: str) -> None:
    assert stems_of(text, text) == []


def test_what_stems_are_made_with_is_loaded_before_it_is_asked_for() -> None:
    load_stemmers()
    assert "snowballstemmer" in sys.modules


def test_stems_are_right_when_several_ask_at_once() -> None:
    words = [f"{'ab' * (n % 7 + 1)}{n % 13}nning".replace("1", "u") for n in range(300)] * 4
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda word: stems_of(word, word), words))
    assert found == [stems_of(word, word) for word in words]

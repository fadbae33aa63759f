"""Spellings of one word, as those write it who know the orthography."""

import pytest

from engine.query.spellings import Spellings, is_unspaced, spellings


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("organise", "organize"),
        ("organisations", "organizations"),
        ("analysed", "analyzed"),
        ("colour", "color"),
        ("favourites", "favorites"),
        ("centre", "center"),
        ("catalogues", "catalogs"),
        ("defence", "defense"),
        ("cancelled", "canceled"),
        ("encyclopaedia", "encyclopedia"),
        ("mueller", "muller"),
        ("koebenhavn", "københavn"),
        ("københavn", "kobenhavn"),
        ("aerø", "ærø"),
        ("œuvre", "oeuvre"),
        ("łodz", "lodz"),
        ("đa", "da"),
        ("kapı", "kapi"),
        ("þorn", "thorn"),
        ("йод", "иод"),
        ("ґанок", "ганок"),
        ("أحمد", "احمد"),
        ("مدرسة", "مدرسه"),
        ("على", "علي"),
    ],
)
def test_what_is_written_two_ways_is_offered_from_either(one: str, other: str) -> None:
    assert other in spellings(one).words
    assert one in spellings(other).words


@pytest.mark.parametrize(("marked", "plain"), [("Müller", "mueller"), ("Ångström", "aangstroem"), ("Ærø", "aeroe")])
def test_marks_as_they_were_written_say_how_to_spell_without(marked: str, plain: str) -> None:
    assert plain in spellings(marked).words
    decomposed = {"Müller": "Mu\u0308ller"}.get(marked, marked)
    assert plain in spellings(decomposed).words


@pytest.mark.parametrize(
    ("text", "not_offered"), [("four", "for"), ("your", "yor"), ("rise", "rize"), ("called", "caled"), ("vogue", "vog")]
)
def test_short_words_are_left_as_they_are(text: str, not_offered: str) -> None:
    assert not_offered not in spellings(text).words


def test_a_word_of_two_is_joined_parted_or_hyphenated() -> None:
    assert spellings("e-mail") == Spellings(("email",), ("e mail", "e‐mail", "e–mail"))
    assert spellings("log in") == Spellings(("login",), ("log-in", "log‐in", "log–in"))
    assert ("e", "mail") in spellings("email").halves
    assert spellings("login").halves == (("log", "in"),)
    assert spellings("2016").halves == ()


def test_an_apostrophe_is_straight_curly_or_none() -> None:
    assert spellings("don't") == Spellings(("dont",), ("don’t",))
    assert spellings("Don’t") == Spellings(("dont",), ("don't",))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("サーバー", "サーバ"),
        ("ユーザー", "ユーザ"),
        ("キャノン", "キヤノン"),
        ("たばこ", "タバコ"),
        ("ヴァイオリン", "バイオリン"),
        ("ヂ", "ジ"),
    ],
)
def test_kana_are_written_otherwise(one: str, other: str) -> None:
    assert other in spellings(one).runs
    assert spellings(one).words == ()


@pytest.mark.parametrize("text", ["->", "a->b", "-a", "a b, c", "x" * 33, "日本 語"])
def test_what_is_no_word_has_no_other_spelling(text: str) -> None:
    assert spellings(text) == Spellings()


def test_runs_without_spaces_are_told_from_words() -> None:
    assert [is_unspaced(text) for text in ("docker", "суббота", "docker容器", "การ")] == [False, False, True, True]

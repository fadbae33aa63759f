"""Folding, words, and what of a text may be shown."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.align import aligned_fold, segments
from engine.graphemes import graphemes
from engine.text import _BASES, _LOOKED_AT, display, fold, is_word_char, one_line, word_count
from tests.depth import depth

ALL_CHARACTERS = [char for char in map(chr, range(0x110000)) if unicodedata.category(char) not in ("Cn", "Co")]

# What foldings trip over: letters that grow, shrink, join their neighbour, or turn into something that does.
TRICKY = (
    "aeiosxzAEIßẞİıŉςΣάᾳᾷΐéñÅﬁﬀ℡㎏ǅеёЁйЙӗжяأَآلעִתקזの半かがｶｷﾊﾞﾟ゙゚가각각ㄱㅏㄳﾡￂกำิโ่ຳकिष्ज़क्ষ৫"
    "\u0300\u0301\u0306\u0308\u0323\u0327\u0345\u034f\u0342\u05b4\u064b\u093c\u0307\u3099\ufe0f\u200d\u200c"
    "👩👧🇩🇪❤🏽\U000e0067\U000e007f _-.⟦⟧⏎…\n\t\r\x00\x85\u2028\u200b\u202e\ud800"
)
tricky = st.text(st.sampled_from(TRICKY), max_size=24)
texts = st.one_of(tricky, st.text(st.characters(exclude_categories=()), max_size=24))

FOLDS = {
    "Docker": "docker",
    "Straße": "strasse",
    "İstanbul": "istanbul",
    "ŉ": "ʼn",
    "ΟΔΟΣ ὁδός": "οδοσ οδοσ",
    "ᾷ": "αι",
    "Tiếng Việt": "tieng viet",
    "orçamento": "orcamento",
    "Ёлка й Й": "елка й й",
    "е\u0308\u0306": "ӗ",
    "ё\u0308": "е",
    "и\u0306": "й",
    "ﾊﾞｲﾄ": "バイト",
    "ＡＢＣ１２３": "abc123",
    "ㄱㅏ ᄀ\u1161\u11a8": "가 각",
    "العَرَبِيَّة": "العَرَبِيَّة",
    "กำ": "ก\u0e4dา",
    "e\u0301\u0323x": "ex",
    "ﬁle": "file",
    "👩\u200d👧 ❤\ufe0f": "👩\u200d👧 ❤\ufe0f",
    "": "",
}


@pytest.mark.parametrize(("text", "folded"), FOLDS.items())
def test_fold_gives_what_a_searcher_types(text: str, folded: str) -> None:
    assert fold(text) == folded


def test_fold_is_idempotent_and_never_empty_for_every_character() -> None:
    folds = {char: fold(char) for char in ALL_CHARACTERS}
    assert [char for char, folded in folds.items() if not folded or fold(folded) != folded] == []


def test_what_fold_does_not_look_at_needs_nothing() -> None:
    wrong = [
        char
        for char in map(chr, range(0x80, 0x110000))
        if not _LOOKED_AT.match(char) and (char in _BASES or unicodedata.category(char).startswith("M"))
    ]
    assert wrong == []


def test_every_latin_or_greek_letter_with_a_mark_folds_to_one_without() -> None:
    unfolded = [
        char
        for char in map(fold, ALL_CHARACTERS)
        if unicodedata.name(char[0], "").startswith(("LATIN", "GREEK"))
        and len(unicodedata.normalize("NFD", char[0])) > 1
    ]
    assert unfolded == []


@settings(max_examples=depth(800, 133), deadline=None, derandomize=True)
@given(texts)
def test_fold_is_idempotent(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@settings(max_examples=depth(500, 83), deadline=None, derandomize=True)
@given(texts)
def test_fold_does_not_tell_normal_forms_apart(text: str) -> None:
    assert fold(unicodedata.normalize("NFC", text)) == fold(unicodedata.normalize("NFD", text))


def test_no_character_joins_what_a_segment_before_it_ends_with() -> None:
    # Every pair that composes in Unicode must stand in one segment, whichever of its spellings is written.
    apart = []
    for char in ALL_CHARACTERS:
        for pair in {unicodedata.normalize("NFD", char), unicodedata.normalize("NFKD", char)}:
            if len(pair) > 1 and unicodedata.normalize("NFC", pair) != pair:
                apart += [pair] if "".join(map(fold, segments(pair))) != fold(pair) else []
    assert apart == []


@pytest.mark.parametrize("before", ["e", "ᄀ", "가", "ｶ"])
def test_any_character_folds_in_segments_as_behind_any_other(before: str) -> None:
    wrong = [char for char in ALL_CHARACTERS if "".join(map(fold, segments(before + char))) != fold(before + char)]
    assert wrong == []


@settings(max_examples=depth(800, 133), deadline=None, derandomize=True)
@given(texts)
def test_folds_of_segments_are_the_fold_of_the_text(text: str) -> None:
    pieces = segments(text)
    assert "".join(pieces) == text
    assert "".join(map(fold, pieces)) == fold(text)


@settings(max_examples=depth(200, 60), deadline=None, derandomize=True)
@given(texts.filter(bool), st.integers(1, 400), st.data())
def test_a_folded_place_leads_back_to_the_segment_it_came_from(text: str, times: int, data: st.DataObject) -> None:
    text *= times
    folded = aligned_fold(text)
    assert folded.text == fold(text)
    place = data.draw(st.integers(0, len(folded.text) - 1))
    original_at = folded_at = 0
    for piece in segments(text):
        if folded_at + len(fold(piece)) > place:
            assert folded.origins([(place, place + 1)]) == [(original_at, original_at + len(piece))]
            return
        original_at += len(piece)
        folded_at += len(fold(piece))
    pytest.fail("the place lies in no segment")


def test_a_span_over_many_blocks_leads_back_to_both_its_ends() -> None:
    text = "ß" + "é" * 2_000 + "e\u0301" * 500
    assert aligned_fold(text).origins([(1, 2_400), (2_400, 2_402)]) == [(0, 2_797), (2_797, 2_801)]


WORDS = {
    "two words": 2,
    "snake_case, x-y!": 3,
    "документация фабрика": 2,
    "हिन्दी में": 2,
    "我们需要文档。好": 2,
    "العَرَبِيَّة": 1,
    "e\u0301te\u0301": 1,
    "½ ٣ ४": 3,
    "-> === !": 0,
    "": 0,
}


@pytest.mark.parametrize(("text", "count"), WORDS.items())
def test_words_are_runs_of_letters_marks_numbers_and_underscores(text: str, count: int) -> None:
    assert word_count(text) == count


@pytest.mark.parametrize("text", WORDS)
def test_word_characters_are_what_words_are_made_of(text: str) -> None:
    kinds = "".join("w" if is_word_char(char) else " " for char in text)
    assert len(kinds.split()) == word_count(text)


FLAG = "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"

DISPLAYED = {
    "as it is,\n\twith tabs": "as it is,\n\twith tabs",
    "a\r\nb\rc\u2028d\u2029e\x85f\x0bg\x0ch": "a\nb\nc\nd\ne\nf\ng\nh",
    "a\x00\r\x00\x85b": "a\n\nb",
    "nul\x00 bell\x07 esc\x1b[31m del\x7f": "nul bell esc[31m del",
    "a\x1cb\x1db\x1ec": "abbc",
    "\u202eevil\u202c \u2066x\u2069 \u200eltr\u200f \u061c": "evil x ltr ",
    "soft\u00adhyphen zero\u200bwidth \ufeffbom \u2060join": "softhyphen zerowidth bom join",
    "fill\u3164er \u115f\u1160 \uffa0 \u034f \u180e": "filler    ",
    "\ud800lone\udfff": "lone",
    "non\ufffe\U0001ffffcharacter": "noncharacter",
    "⟦mark⟧ ⏎ [[x]]": "[[mark]]   [[x]]",
    "👩\u200d👩\u200d👧 ❤\ufe0f\u200d🔥": "👩\u200d👩\u200d👧 ❤\ufe0f\u200d🔥",
    "نمی\u200cخواهم क्\u200dष": "نمی\u200cخواهم क्\u200dष",
    f"{FLAG} 🇩🇪 👍🏽 1\ufe0f\u20e3": f"{FLAG} 🇩🇪 👍🏽 1\ufe0f\u20e3",
    "hi\U000e0068\U000e0069\U000e007f 👍\U000e0068": "hi 👍",
    "👍" + "\U000e0061" * 40 + "\U000e007f": "👍",
    "葛\U000e0100 x\ufe0e": "葛\U000e0100 x\ufe0e",
    "x\ufe01\ufe02\U000e0101y \ufe03\n\ufe04": "x\ufe01y \ufe03\n",
    "\u0600١٢ \u06dd": "\u0600١٢ \u06dd",
    "йёе\u0301 ｶﾞ 🄰": "йёе\u0301 ｶﾞ 🄰",
    "": "",
}


@pytest.mark.parametrize(("text", "shown"), DISPLAYED.items())
def test_display_keeps_what_is_read_and_drops_what_hides(text: str, shown: str) -> None:
    assert display(text) == shown


def test_display_keeps_or_drops_every_character_by_its_nature() -> None:
    kept = {"\n", "\t", "\u200c", "\u200d"}
    for char in ALL_CHARACTERS:
        shown = display(char)
        if unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp"):
            assert shown in ("", "\n") or char in kept
        elif unicodedata.category(char)[0] in "LNPSZ" and char not in "⟦⟧⏎":
            assert shown == char or char in "\u115f\u1160\u3164\uffa0"


@settings(max_examples=depth(500, 83), deadline=None, derandomize=True)
@given(texts)
def test_display_of_graphemes_is_display_of_the_text(text: str) -> None:
    assert "".join(map(display, graphemes(text))) == display(text)


@settings(max_examples=depth(500, 83), deadline=None, derandomize=True)
@given(texts)
def test_displayed_text_can_be_sent_and_forges_no_mark(text: str) -> None:
    shown = display(text)
    shown.encode()
    assert not set(shown) & set("⟦⟧⏎\r\x00\x85\u2028\u200b\u202e\ud800")


def test_one_line_shows_each_newline_once() -> None:
    assert one_line("a\nb\r\nc\rd\n\ne") == "a ⏎ b ⏎ c ⏎ d ⏎  ⏎ e"


@settings(max_examples=depth(500, 83), deadline=None, derandomize=True)
@given(st.text(st.sampled_from("ab \n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029⟦"), max_size=20))
def test_one_line_is_one_line_to_every_reader(text: str) -> None:
    assert len((one_line(text) + ".").splitlines()) == 1

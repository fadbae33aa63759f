"""Windows, marks, slices and shortened URLs, for every script and at every size."""

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.graphemes import border_after, border_before, graphemes, graphemes_before
from engine.match import compile_tree
from engine.query.tree import Or, Term
from engine.snippet import Snippet, slice_text, snippet
from engine.text import display
from engine.urls import shorten_urls
from tests.depth import depth

PIECES = st.sampled_from(
    [
        *("docker ", "compose", " ", "\n", "\r\n", "ß", "e\u0301", "й", "документация ", "我们需要", "文档"),
        *("ภาษากำ", "किताब ", "العَرَبِيَّة ", "👩\u200d👩\u200d👧", "🇩🇪", "🇫🇷", "❤\ufe0f", "ﾊﾞ", "\u0301"),
        *("\u200b", "\x00", "⟦", "⟧", "⏎", "…", "\U000e0061", "\ud800", "\u200b" * 99, "word " * 9),
        "https://docker.example/" + "path/" * 12,
    ]
)
TEXTS = st.lists(PIECES, max_size=40).map("".join)
TERMS = Or((Term("docker"), Term("ss"), Term("文"), Term("👧"), Term("मा"), Term("и"), Term("path"), Term("e")))
MATCHER = compile_tree(TERMS)


def _spans(query: str, text: str) -> list[tuple[int, int]]:
    return compile_tree(Term(query)).spans(text, "body")


def _bare(marked: str) -> str:
    return marked.replace("⟦", "").replace("⟧", "")


def _possible(shown: Snippet) -> list[str]:
    """What of the text a snippet shows: a `…` at either end is ours or the text's own."""
    bare = _bare(shown.text)
    heads = [bare, bare.removeprefix("…")]
    return [end for head in heads for end in (head, head.removesuffix("…"))]


def _borders(text: str) -> list[int]:
    borders = [0]
    for cluster in regex.findall(r"\X", text):
        borders.append(borders[-1] + len(cluster))
    return borders


@settings(max_examples=depth(400, 66), deadline=None, derandomize=True)
@given(TEXTS, st.integers(1, 120))
def test_a_snippet_is_a_part_of_the_displayed_text_with_balanced_marks(text: str, limit: int) -> None:
    shown = snippet(text, MATCHER.spans(text, "body"), limit, url_chars=None)
    assert regex.fullmatch("(?:[^⟦⟧]|⟦[^⟦⟧]+⟧)*", shown.text)
    whole = display(text)
    assert (shown.full_length is None) == (len(whole) <= limit)
    if shown.full_length is None:
        assert _bare(shown.text) == whole
    else:
        assert shown.full_length == len(text)
        assert any(part in whole and len(part) <= limit for part in _possible(shown))


@settings(max_examples=depth(300, 60), deadline=None, derandomize=True)
@given(TEXTS, st.integers(40, 120))
def test_a_snippet_is_cut_within_no_grapheme(text: str, limit: int) -> None:
    shown = snippet(text, MATCHER.spans(text, "body"), limit, url_chars=None)
    clusters = [display(cluster) for cluster in regex.findall(r"\X", text)]
    starts = {"".join(clusters[at:]) for at in range(len(clusters) + 1)}
    assert any(
        any(rest.startswith(part) and rest.removeprefix(part) in starts for rest in starts) for part in _possible(shown)
    )


@settings(max_examples=depth(300, 60), deadline=None, derandomize=True)
@given(TEXTS, st.integers(40, 120))
def test_a_snippet_shows_a_match_whenever_there_is_one(text: str, limit: int) -> None:
    spans = MATCHER.spans(text, "body")
    visible = any(display(text[start:end]) for start, end in spans)
    assert ("⟦" in snippet(text, spans, limit).text) == visible


@settings(max_examples=depth(300, 60), deadline=None, derandomize=True)
@given(TEXTS, st.integers(10, 80))
def test_shortened_urls_keep_every_match(text: str, most: int) -> None:
    spans = MATCHER.spans(text, "body")
    short, moved = shorten_urls(text, spans, most)
    assert [short[start:end] for start, end in moved] == [text[start:end] for start, end in spans]
    assert len(short) <= len(text)


@settings(max_examples=depth(400, 66), deadline=None, derandomize=True)
@given(TEXTS, st.integers(1, 60))
def test_slices_give_every_character_once_and_split_no_grapheme(text: str, most: int) -> None:
    slices, ends = [], []
    offset: int | None = 0
    while offset is not None:
        piece, offset = slice_text(text, offset, most)
        assert len(piece) <= most
        slices.append(piece)
        ends.append(offset)
    assert "".join(slices) == text
    if most >= max(map(len, regex.findall(r"\X", text)), default=0):
        assert set(ends[:-1]) <= set(_borders(text))


def test_a_slice_past_the_end_is_empty_and_the_last() -> None:
    assert slice_text("abc", 3, 10) == ("", None)
    assert slice_text("abc", 99, 10) == ("", None)


@settings(max_examples=depth(400, 66), deadline=None, derandomize=True)
@given(
    st.text(st.sampled_from("a가각ᄀ\u1161\u11a8🇩🇪👩\u200d\u0301क\u094dष\r\n\x00\u0600กำ"), max_size=40),
    st.data(),
)
def test_borders_are_those_of_the_whole_text(text: str, data: st.DataObject) -> None:
    borders = _borders(text)
    place = data.draw(st.integers(0, len(text)))
    assert border_before(text, place) == max(border for border in borders if border <= place)
    assert border_after(text, place) == min(border for border in borders if border >= place)
    assert list(graphemes(text)) == regex.findall(r"\X", text)
    assert list(graphemes_before(text, len(text))) == regex.findall(r"\X", text)[::-1]


STORY = (
    "We moved to the new cluster last week and it went well. Then docker stopped answering on two machines, "
    "the socket docker.sock was gone, and compose could not start. Nobody knows why it happened at all."
)


def test_a_short_text_is_shown_whole_with_its_matches_marked() -> None:
    assert snippet("Use Docker, docker!", _spans("docker", "Use Docker, docker!"), 280) == Snippet(
        "Use ⟦Docker⟧, ⟦docker⟧!"
    )


def test_a_long_text_is_cut_between_words_around_its_match() -> None:
    assert snippet(STORY, _spans("machines", STORY), 60) == Snippet(
        "…stopped answering on two ⟦machines⟧, the socket docker.sock…", len(STORY)
    )


def test_without_matches_a_text_is_shown_from_its_beginning() -> None:
    assert snippet(STORY, [], 40) == Snippet("We moved to the new cluster last week…", len(STORY))


def test_the_room_one_side_cannot_use_goes_to_the_other() -> None:
    assert snippet(STORY, _spans("we moved", STORY), 40) == Snippet(
        "⟦We moved⟧ to the new cluster last week…", len(STORY)
    )
    assert snippet(STORY, _spans("at all.", STORY), 40) == Snippet(
        "…Nobody knows why it happened ⟦at all.⟧", len(STORY)
    )


def test_the_best_window_holds_the_most_different_matches() -> None:
    text = "alpha alpha alpha " + "x " * 100 + "alpha beta " + "x " * 100 + "beta alpha beta" + " x" * 100
    spans = compile_tree(Or((Term("alpha"), Term("beta")))).spans(text, "body")
    assert "⟦beta⟧ ⟦alpha⟧ ⟦beta⟧" in snippet(text, spans, 40).text
    assert snippet(text, spans, 12).text == "…⟦alpha⟧ ⟦beta⟧…"


def test_of_windows_alike_the_earliest_is_shown() -> None:
    text = "x " * 50 + "first hit " + "x " * 50 + "second hit " + "x " * 50
    assert "first ⟦hit⟧" in snippet(text, _spans("hit", text), 40).text


def test_a_match_longer_than_the_limit_is_shown_from_its_beginning() -> None:
    text = "so: " + "很长" * 100
    assert snippet(text, [(4, 204)], 40) == Snippet("…⟦" + "很长" * 20 + "⟧…", 204)


@pytest.mark.parametrize("spans", [[], [(0, 500)]])
def test_a_grapheme_longer_than_the_limit_is_cut(spans: list[tuple[int, int]]) -> None:
    text = "a" + "\u0300" * 499
    assert _bare(snippet(text, spans, 40).text) == text[:40] + "…"


def test_a_cluster_of_our_own_marks_keeps_within_the_limit() -> None:
    text = "\u0600" * 30 + "⟦" + "\u0300" * 200
    assert snippet(text, [], 31) == Snippet("\u0600" * 30 + "…", len(text))


def test_marks_written_in_a_message_are_not_ours() -> None:
    assert snippet("⟦hit⟧ a hit", _spans("hit", "⟦hit⟧ a hit"), 80).text == "[[⟦hit⟧]] a ⟦hit⟧"


def test_a_match_that_cannot_be_seen_is_not_marked() -> None:
    assert snippet("a\u200bb", [(1, 2)], 80) == Snippet("ab")


@pytest.mark.parametrize("query", ["文档", "документ", "ภาษา", "किताब", "عرب", "👧", "ss"])
def test_windows_hold_for_every_script(query: str) -> None:
    text = "我们需要更多的文档。Документация й. ภาษาไทย किताब العَرَبِيَّة عربي 👩\u200d👩\u200d👧 Straße " * 30
    shown = snippet(text, _spans(query, text), 40)
    assert "⟦" in shown.text
    assert shown.full_length == len(text)
    assert any(part in display(text) and len(part) <= 40 for part in _possible(shown))


LONG = "https://user:pw@github.com/hyperledger/fabric/blob/master/docs/source/developing/index.rst?x=1#install"


def test_a_long_url_is_shown_as_host_and_tail() -> None:
    assert shorten_urls(f"see {LONG} now", [(0, 3), (5 + len(LONG), 8 + len(LONG))], 60) == (
        "see github.com…ndex.rst?x=1#install now",
        [(0, 3), (36, 39)],
    )


def test_a_match_in_a_long_url_stays_in_sight() -> None:
    assert snippet(f"see {LONG} now", _spans("fabric", f"see {LONG} now"), 280) == Snippet(
        "see github.com…⟦fabric⟧…ndex.rst?x=1#install now"
    )
    assert snippet(LONG, _spans("https", LONG), 280).text == "⟦https⟧…github.com…ndex.rst?x=1#install"


def test_urls_are_left_whole_when_short_or_when_asked() -> None:
    short = "https://example.com/" + "a" * 40
    assert snippet(short, [], 280) == Snippet(short)
    assert snippet(LONG, [], 280, url_chars=None) == Snippet(LONG)


def test_the_end_of_a_long_host_is_kept() -> None:
    url = "http://" + "login.example.com." * 4 + "evil.test/x"
    assert shorten_urls(url, [], 60) == ("…om.login.example.com.evil.test/x", [])


def test_a_sentence_right_behind_a_url_is_not_lost() -> None:
    text = f"见{LONG}。然后我们继续" + "讨论" * 40
    assert shorten_urls(text, [], 60)[0] == "见github.com…ndex.rst?x=1#install。然后我们继续" + "讨论" * 40


@pytest.mark.parametrize(
    "filler", ["lazy dog ", "ภาษาไทย", "документация ", "🇩🇪", "\u0301", "\u200b", "👩\u200d👧", "⟦"]
)
def test_a_megabyte_is_shown_around_its_match(filler: str) -> None:
    half = filler * (500_000 // len(filler))
    text = f"{half} needle {half}"
    assert "⟦needle⟧" in snippet(text, _spans("needle", text), 280).text
    assert len(slice_text(text, 0, 6_000)[0]) <= 6_000

"""Bodies leave as compact UTF-8, and halves of surrogate pairs are marked on the way in."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from handler.wire import HALF_PAIR, compact, mend_surrogates, recode, whole_characters
from tests.depth import depth

_WHOLE = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | _WHOLE,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WHOLE, inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=depth(200, 60), deadline=None, derandomize=True)
@given(_JSON)
def test_recoding_an_escaped_body_says_the_same_in_fewer_bytes(value: Any) -> None:
    escaped = json.dumps(value, separators=(",", ":")).encode()
    sent = recode(escaped)
    assert json.loads(sent) == value
    assert sent == compact(value)
    assert len(sent) <= len(escaped)


def test_a_cyrillic_letter_takes_two_bytes() -> None:
    assert recode(b'{"a":"\\u0436"}') == '{"a":"ж"}'.encode()


def test_what_is_no_json_stays_as_it_is() -> None:
    assert recode(b"\\u0436 is no JSON") == b"\\u0436 is no JSON"


def test_a_lone_surrogate_leaves_as_a_replacement_character() -> None:
    assert compact({"a": "x\ud800"}) == '{"a":"x\ufffd"}'.encode()
    assert whole_characters("ж\udfff") == "ж\ufffd"


@settings(max_examples=depth(200, 60), deadline=None, derandomize=True)
@given(st.lists(st.characters() | st.sampled_from(["\ud83d", "\udc00", "\\", "\\ud800", "🎉"]), max_size=30))
def test_mending_marks_every_half_and_nothing_else(pieces: list[str]) -> None:
    body = json.dumps("".join(pieces)).encode()
    mended = mend_surrogates(body)
    # Reading back joins two halves that happen to meet, as any JSON reader does.
    read = json.loads(body)
    expected = "".join(HALF_PAIR if "\ud800" <= c <= "\udfff" else c for c in read)
    assert json.loads(mended) == expected
    assert len(mended) == len(body)


def test_an_escaped_backslash_before_u_is_no_escape() -> None:
    assert mend_surrogates(b'"\\\\ud800"') == b'"\\\\ud800"'

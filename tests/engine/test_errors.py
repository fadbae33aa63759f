"""Errors are prompts: what they echo is bounded and printable, and their way out survives."""

import pytest

from engine.errors import MAX_ERROR_BYTES, BadInput, BrokenSnapshot, EngineError, NotFound, Refused, Unavailable, quoted


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("plain", "'plain'"),
        (["a"], "'['a']'"),
        ("ёж", "'ёж'"),
        ("a\nb\0c", "'a\\u000ab\\u0000c'"),
        ("\ud800", "'\\ud800'"),
        ("x" * 80, f"'{'x' * 80}'"),
        ("x" * 81, f"'{'x' * 80}…'"),
        ("\n" * 99, "'" + ("\\u000a" * 14)[:80] + "…'"),
    ],
)
def test_an_echo_is_printable_and_short(value: object, shown: str) -> None:
    assert quoted(value) == shown


def test_an_error_says_code_message_way_out_and_nearest_in_both_forms() -> None:
    error = NotFound(
        "unknown_value", "no author is called 'Zara'", next_step="use one of nearest", nearest={"Zoe": 7, "Zia": 3}
    )
    assert (
        error.to_text() == "unknown_value: no author is called 'Zara'; use one of nearest (nearest: 'Zoe' 7, 'Zia' 3)"
    )
    assert error.to_object() == {
        "code": "unknown_value",
        "message": "no author is called 'Zara'",
        "next": "use one of nearest",
        "nearest": {"Zoe": 7, "Zia": 3},
    }


@pytest.mark.parametrize("kind", [BadInput, NotFound, Refused, Unavailable, BrokenSnapshot])
def test_an_error_without_way_out_or_nearest_leaves_them_out(kind: type[EngineError]) -> None:
    error = kind("code", "message", detail="for the log")
    assert (error.to_text(), error.to_object()) == ("code: message", {"code": "code", "message": "message"})
    assert (error.detail, isinstance(error, EngineError)) == ("for the log", True)


@pytest.mark.parametrize("letter", ["x", "ж", "花", "🎉"])
def test_an_error_text_never_exceeds_its_bytes(letter: str) -> None:
    text = BadInput("code", letter * 5_000, next_step="way out").to_text()
    assert MAX_ERROR_BYTES - 4 < len(text.encode()) <= MAX_ERROR_BYTES
    assert text.endswith(letter + "…")

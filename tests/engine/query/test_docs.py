"""`docs/query.md` says what the code does."""

import re
from pathlib import Path

import pytest

from engine.errors import BadInput
from engine.limits import QueryLimits
from engine.query.parse import parse

DOCUMENT = (Path(__file__).parents[3] / "docs" / "query.md").read_text("utf-8")
LIMITS = QueryLimits()
EXAMPLES = re.findall(r"^\| `(.+?)` \| `(.+?)` \|$", DOCUMENT.partition("## Examples")[2], re.MULTILINE)
FORMS = DOCUMENT.partition("## Forms")[2].partition("## What is")[0]


def test_examples_are_found_in_the_document() -> None:
    assert len(EXAMPLES) == 17


@pytest.mark.parametrize(("query", "canonical"), EXAMPLES)
def test_a_documented_example_has_the_documented_canonical_form(query: str, canonical: str) -> None:
    assert str(parse(query, LIMITS).tree) == canonical


@pytest.mark.parametrize("query", re.findall(r"`([^`]+)`", FORMS.replace("`( )`", "").replace('`""`', "")))
def test_a_documented_form_is_read_by_the_grammar_unless_it_is_a_bare_operator(query: str) -> None:
    if query in {"NOT", "AND", "OR"}:
        with pytest.raises(BadInput):
            parse(query, LIMITS)
    else:
        assert not parse(query, LIMITS).literal


def test_the_documented_precedence_holds() -> None:
    assert "`a b OR NOT c d` is `(a b) OR ((NOT c) d)`" in DOCUMENT
    assert parse("a b OR NOT c d", LIMITS) == parse("(a b) OR ((NOT c) d)", LIMITS)


def test_the_documented_error_and_note_are_those_given() -> None:
    with pytest.raises(BadInput) as caught:
        parse("a AND (b OR c", LIMITS)
    assert f"```\n{caught.value.to_text()}\n```" in DOCUMENT
    (note,) = parse(":)", LIMITS).notes
    assert f"```\n{note}\n```" in DOCUMENT


def test_the_documented_limits_are_the_defaults() -> None:
    for row in (
        f"| characters | {LIMITS.chars} | `query_too_long` |",
        f"| terms | {LIMITS.terms} | `query_too_long` |",
        f"| levels of groups and NOT inside one another | {LIMITS.levels} | `query_too_deep` |",
    ):
        assert row in DOCUMENT

"""Secrets do not come in: every planted one is replaced, and what only looks like one stays as it was."""

import importlib
import json
import pkgutil
from base64 import b64encode
from collections import Counter
from dataclasses import fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import detect_secrets.plugins
import pytest
from detect_secrets.plugins.base import RegexBasedDetector
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.card_numbers import may_hold_card
from engine.model import SourceMessage
from engine.redaction import mark, redact, redacted
from engine.secret_forms import FORMS, may_hold_token
from tests.depth import depth
from tests.engine.corpora import said
from tests.engine.planted import LOOKALIKES, PLANTED, Planted


def clean(text: str) -> str:
    return redact(text, Counter())


def one(message: SourceMessage) -> tuple[SourceMessage, Counter[str]]:
    found: Counter[str] = Counter()
    (kept,) = redacted([message], found)
    return kept, found


@pytest.mark.parametrize("planted", PLANTED, ids=[f"{n} {p.kind}" for n, p in enumerate(PLANTED)])
def test_a_planted_secret_is_replaced_by_a_mark_and_nothing_else_is(planted: Planted) -> None:
    found: Counter[str] = Counter()
    assert redact(planted.text, found) == planted.clean
    assert found == {planted.kind: 1}
    assert len(planted.secret) >= 3


def test_every_kind_is_planted() -> None:
    assert {form.kind for form in FORMS} | {"card number"} == {planted.kind for planted in PLANTED}


@pytest.mark.parametrize("text", LOOKALIKES)
def test_what_only_looks_like_a_secret_stays_whole(text: str) -> None:
    found: Counter[str] = Counter()
    assert (redact(text, found), found) == (text, Counter())


def test_every_kind_is_told_in_the_documentation() -> None:
    page = (Path(__file__).parents[2] / "docs" / "redaction.md").read_text("utf-8")
    assert [form.kind for form in FORMS if f"`{form.kind}`" not in page] == []


@pytest.mark.parametrize("sign", ["_", "*", "~", "`", "__"])
def test_slack_markup_around_a_secret_does_not_hide_it(sign: str) -> None:
    alone = [planted for planted in PLANTED if clean(planted.secret) == mark(planted.kind)]
    assert len({planted.kind for planted in alone}) > 25
    shown = [planted for planted in alone if planted.secret in clean(f"see {sign}{planted.secret}{sign}")]
    assert shown == []


@pytest.mark.parametrize("unseen", ["\u200b", "\u00ad", "\u2060", "\ufeff\u200d"])
def test_a_secret_that_invisible_characters_part_is_not_shown_whole(unseen: str) -> None:
    for planted in PLANTED:
        middle = len(planted.secret) // 2
        at = next((n for n in range(middle, len(planted.secret)) if planted.secret[n - 1 : n + 1].isalnum()), 0)
        if not at:
            continue
        parted = planted.text.replace(planted.secret, f"{planted.secret[:at]}{unseen}{planted.secret[at:]}")
        kept, found = one(said(1, parted, attributes=json.dumps({"text": parted}, ensure_ascii=False)))
        assert (kept.body, found[planted.kind]) == (planted.clean, 2)
        assert json.loads(kept.attributes or "") == {"text": planted.clean}


def test_invisible_characters_stay_where_they_part_no_secret() -> None:
    for text in (f"zero\u200bwidth, soft\u00adhyphen {TOKEN.clean}", "a\u200b" * 40, "नमस्\u200dते 4\u200b111"):
        assert clean(text) == text


def test_many_secrets_in_one_text_are_all_replaced() -> None:
    text = "\n\n".join(planted.text for planted in PLANTED)
    found: Counter[str] = Counter()
    assert redact(text, found) == "\n\n".join(planted.clean for planted in PLANTED)
    assert found == Counter(planted.kind for planted in PLANTED)


def test_what_is_redacted_once_is_not_redacted_again() -> None:
    for planted in PLANTED:
        found: Counter[str] = Counter()
        assert (redact(planted.clean, found), found) == (planted.clean, Counter())


AROUND = st.text(st.characters(exclude_characters="-_.@:/=%+&?\"'", exclude_categories=("L", "N", "M")), max_size=20)


@settings(max_examples=depth(5_000, 80), deadline=None, derandomize=True)
@given(st.sampled_from(PLANTED), AROUND, AROUND)
def test_a_secret_is_found_whatever_stands_around_it(planted: Planted, before: str, after: str) -> None:
    assert clean(f"{before}\n{planted.text}\n{after}") == f"{before}\n{planted.clean}\n{after}"


HEX = "0123456789abcdef"
HARMLESS = st.one_of(
    st.text(HEX, min_size=40, max_size=40),
    st.text(HEX, min_size=64, max_size=64),
    st.text(HEX, min_size=7, max_size=12),
    st.uuids().map(str),
    st.binary(min_size=90, max_size=300).map(lambda raw: f"data:image/png;base64,{b64encode(raw).decode()}"),
    st.datetimes().map(lambda when: f"{when:%Y%m%d%H%M%S} {when.isoformat()}"),
    st.integers(1_000_000_000, 1_999_999_999).map(lambda s: f"C90A6D53D:{s}.000048 p{s}000048 {s}000 {s}123456"),
    st.integers(1_000_000, 9_999_999).map(lambda n: f"+43 664 {n} (0664) {n} 0043-664-{n}"),
    st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", min_size=9, max_size=11),
    st.from_regex(r"[a-z]{3,9}(-[a-z]{3,9}){2,7}", fullmatch=True),
    st.integers(10**15, 10**16 - 1).filter(lambda n: not luhn(n)).map(str),
)


def luhn(number: int) -> bool:
    """Whether the last digit is the check digit of the others."""
    digits = [int(c) for c in reversed(str(number))]
    return sum(d if n % 2 == 0 else sum(divmod(2 * d, 10)) for n, d in enumerate(digits)) % 10 == 0


@settings(max_examples=depth(20_000, 100), deadline=None, derandomize=True)
@given(st.lists(HARMLESS, min_size=1, max_size=4), st.sampled_from([" ", "\n", ", ", "=", "/", " | "]))
def test_hashes_ids_times_and_numbers_stay_whole(parts: list[str], between: str) -> None:
    text = between.join(parts)
    assert clean(text) == text


@settings(max_examples=depth(5_000, 100), deadline=None, derandomize=True)
@given(st.integers(10**14, 10**15 - 1))
def test_no_number_without_its_check_digit_is_a_card(number: int) -> None:
    numbers = [f"4{number}"[:15] + str(digit) for digit in range(10)]
    taken = [n for n in numbers if clean(n) != n]
    assert taken == [n for n in numbers if luhn(int(n))]
    assert len(taken) == 1


def test_the_quick_looks_pass_by_no_form() -> None:
    for planted in PLANTED:
        assert may_hold_card(planted.text) if planted.kind == "card number" else may_hold_token(planted.text)


def test_the_quick_looks_pass_by_what_people_write() -> None:
    said_daily = [
        "restarted the container and it says connection refused on localhost:7051, any idea? thanks a lot",
        "docker-compose up, then see https://docs.example/latest/getting-started-with-the-fabric-samples",
        "встречаемся завтра в 14:30, тема: документация; номер комнаты 4711",
    ]
    assert [text for text in said_daily if may_hold_token(text) or may_hold_card(text)] == []


TOKEN = next(p for p in PLANTED if p.kind == "github token")
CARD = next(p for p in PLANTED if p.kind == "card number")


def test_no_text_of_a_message_keeps_a_secret() -> None:
    texts = [f.name for f in fields(SourceMessage) if f.name not in {"sent_at", "edited_at", "attributes"}]
    for name in texts:
        changes: Any = {name: TOKEN.text}
        kept, found = one(replace(said(1, "hello"), **changes))
        assert TOKEN.secret not in repr(kept), name
        assert mark("github token").removesuffix("]") in getattr(kept, name)
        assert set(found) == {"github token"}


def test_a_message_without_a_secret_is_passed_on_as_it_is() -> None:
    message = said(1, "hello", attributes='{"n": 1}', link="https://x.slack.com/archives/C90A6D53D/p1485356766000048")
    slug = said(2, "a-very-long-slug-with-2-digits-in-it", attributes='{ "a": "a-very-long-slug-with-2-digits"}')
    assert [a is b for a, b in zip(redacted([message, slug], Counter()), [message, slug], strict=True)] == [True, True]


def test_messages_looked_at_together_are_redacted_as_each_alone() -> None:
    names = [f.name for f in fields(SourceMessage) if f.name not in {"sent_at", "edited_at"}]
    texts = [
        *LOOKALIKES,
        *(text for p in PLANTED for text in (p.text, f"//{p.secret}", f"{p.secret}@")),
        "a\0b",
        "://x:",
        "",
    ]
    messages = []
    for n in range(6 * len(texts)):
        changes: Any = {
            names[n % len(names)]: texts[n % len(texts)],
            names[n * 7 % len(names)]: texts[n * 5 % len(texts)],
        }
        messages.append(replace(said(n, "hello", author=f"жук\u200b{n % 3}"), **changes))
    together, alone = Counter[str](), Counter[str]()
    assert list(redacted(messages, together)) == [kept for m in messages for kept in redacted([m], alone)]
    assert together == alone
    assert set(together) == {p.kind for p in PLANTED}


def test_harmless_attributes_stay_letter_by_letter_beside_a_secret() -> None:
    for attributes in ('{ "n" : 1 }', '{ "a": "a-very-long-slug-with-2-digits-in-it" }'):
        kept, _ = one(said(1, TOKEN.text, attributes=attributes))
        assert (kept.body, kept.attributes) == (TOKEN.clean, attributes)


def test_two_ids_that_hold_secrets_stay_two() -> None:
    others = [p for p in PLANTED if p.kind == "github token"][:3]
    kept = list(redacted([said(n, "x", author_id=p.secret) for n, p in enumerate(others)], Counter()))
    assert len({message.author_id for message in kept}) == 3
    assert all(message.author_id.startswith("[redacted: github token ") for message in kept)


def test_a_number_among_ids_is_an_id() -> None:
    kept, found = one(said(1, "hello", author_id=CARD.secret, native_id=CARD.secret))
    assert (kept.author_id, kept.native_id, found) == (CARD.secret, CARD.secret, Counter())


def test_attributes_stay_json_and_lose_secrets_in_names_values_and_numbers() -> None:
    pem = next(p for p in PLANTED if p.kind == "private key")
    aws = next(p for p in PLANTED if p.kind == "aws secret")
    attributes = {
        TOKEN.secret: [True, None, 1.5, int(CARD.secret), 7, {"pem": pem.text, "open": "-----BEGIN PRIVATE KEY-----"}],
        "SecretAccessKey": aws.secret,
        "note": "-----END PRIVATE KEY-----",
        "nested": {"list": [TOKEN.text]},
    }
    kept, found = one(said(1, "hello", attributes=json.dumps(attributes)))
    assert json.loads(kept.attributes or "") == {
        mark("github token"): [
            True, None, 1.5, mark("card number"), 7, {"pem": pem.clean, "open": "-----BEGIN PRIVATE KEY-----"}
        ],
        "SecretAccessKey": mark("aws secret"),
        "note": "-----END PRIVATE KEY-----",
        "nested": {"list": [TOKEN.clean]},
    }  # fmt: skip
    assert found == {"github token": 2, "card number": 1, "private key": 1, "aws secret": 1}


def test_attributes_that_are_no_json_are_a_text() -> None:
    for broken in (f"{{{TOKEN.text}", "[" * 100_000 + TOKEN.text):
        kept, found = one(said(1, "hello", attributes=broken))
        assert (kept.attributes, found) == (broken.replace(TOKEN.secret, mark("github token")), {"github token": 1})


def test_a_name_that_is_a_secret_itself_does_not_save_its_value() -> None:
    kept, _ = one(said(1, "hello", attributes=json.dumps({TOKEN.secret: TOKEN.secret})))
    assert json.loads(kept.attributes or "") == {mark("github token"): mark("github token")}


def test_a_secret_in_a_name_was_counted_again_for_each_text_beside_it() -> None:
    _, found = one(said(1, "hello", attributes=json.dumps({TOKEN.secret: "harmless"})))
    assert found == {"github token": 1}
    _, found = one(said(1, "hello", attributes=json.dumps({TOKEN.secret: TOKEN.secret})))
    assert found == {"github token": 2}


def detectors() -> dict[str, RegexBasedDetector]:
    """The plugins of a kept set of patterns that know secrets by their form."""
    for module in pkgutil.iter_modules(detect_secrets.plugins.__path__):
        importlib.import_module(f"{detect_secrets.plugins.__name__}.{module.name}")
    # It calls an address and a name beside the word "key" secrets; what stands between quotes we call what it is.
    guesses = {"IPPublicDetector", "SoftlayerDetector", "CloudantDetector", "IbmCloudIamDetector", "IbmCosHmacDetector"}
    plain = [kind for kind in RegexBasedDetector.__subclasses__() if kind.__name__ not in guesses]
    return {kind.__name__: kind() for kind in plain}


KNOWN_TO_BOTH = {
    "AWSKeyDetector": {"aws key"},
    "AzureStorageKeyDetector": {"azure key"},
    "BasicAuthDetector": {"url password"},
    "DiscordBotTokenDetector": {"discord token"},
    "GitHubTokenDetector": {"github token"},
    "GitLabTokenDetector": {"gitlab token"},
    "JwtTokenDetector": {"jwt"},
    "MailchimpDetector": {"mailchimp key"},
    "NpmDetector": {"npm token"},
    "OpenAIDetector": {"openai key"},
    "PrivateKeyDetector": {"private key"},
    "PypiTokenDetector": {"pypi token"},
    "SendGridDetector": {"sendgrid key"},
    "SlackDetector": {"slack token", "slack webhook"},
    "SquareOAuthDetector": {"square token"},
    "StripeDetector": {"stripe key"},
    "TelegramBotTokenDetector": {"telegram token"},
}


def test_a_kept_set_of_patterns_finds_what_is_planted_and_nothing_in_what_is_stored() -> None:
    met: dict[str, set[str]] = {}
    for name, detector in detectors().items():
        for planted in PLANTED:
            if any(True for _ in detector.analyze_string(planted.text)):
                met.setdefault(name, set()).add(planted.kind)
            left = [found for found in detector.analyze_string(planted.clean) if "[redacted" not in found]
            assert left == [], (name, planted.clean)
    assert {name: kinds & met.get(name, set()) for name, kinds in KNOWN_TO_BOTH.items()} == KNOWN_TO_BOTH


def test_forms_known_by_a_neighbour_come_before_it() -> None:
    kinds = [form.kind for form in FORMS]
    assert ("aws secret", "aws key") in pairwise(dict.fromkeys(kinds))

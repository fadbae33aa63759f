"""The 40,000 through the front door: the answer key's counts, and how little of them an agent has to read."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.front.told import Stories, Told, ask

COUNT_BYTES, ANSWER_BYTES = 4_096, 12_288

NAMES = (
    "openai_from_clients",
    "openai_doubts",
    "openai_and_client",
    "outage_in_russian",
    "decision_in_japanese",
    "known_item",
    "how_it_ended",
    "bot_of_two_weeks",
    "copies",
    "broad",
)


def test_the_answer_key_tells_these_stories(stories: Stories) -> None:
    assert tuple(stories) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_first_call_of_each_story_finds_as_many_as_the_key_says(
    synthetic_port: int, stories: Stories, name: str
) -> None:
    asked = {n: v for n, v in stories[name]["calls"][0]["arguments"].items() if n not in {"limit", "text_limit"}}
    asked = {n: v for n, v in asked.items() if n not in {"context", "order", "fields"}}
    counted = ask(synthetic_port, "count_messages", **asked)
    assert counted.number("found: ") == stories[name]["counts"]["matches"]


def test_105_messages_of_clients_name_openai_in_10_conversations_and_39_hold_client_too(synthetic_port: int) -> None:
    from_clients = ask(synthetic_port, "count_messages", query="OpenAI", from_role="client")
    assert from_clients.lines[1].startswith("found: 105 messages by ")
    assert " in 10 conversations, " in from_clients.lines[1]
    both = ask(synthetic_port, "count_messages", query="OpenAI client")
    assert both.number("found: ") == 39


def exported(told: Told) -> list[dict[str, Any]]:
    path = Path(told.lines[-1].removeprefix("link: "))
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_all_that_clients_say_of_openai_is_95_to_101_kb_as_json_lines(synthetic_port: int, stories: Stories) -> None:
    told = ask(synthetic_port, "export_messages", query="OpenAI", from_role="client")
    rows = exported(told)
    assert sorted(row["message_id"] for row in rows) == sorted(stories["openai_from_clients"]["message_ids"])
    assert 95_000 <= told.number("jsonl, ") <= 101_000


def test_the_count_of_a_broad_term_fits_4_kib_where_its_matches_are_over_a_megabyte(
    synthetic_port: int, stories: Stories
) -> None:
    asked = stories["broad"]["calls"][0]["arguments"]
    counted = ask(synthetic_port, "count_messages", query=asked["query"])
    assert counted.size <= COUNT_BYTES
    rows = exported(ask(synthetic_port, "export_messages", query=asked["query"], fields=["body"]))
    assert len(rows) == counted.number("found: ") == stories["broad"]["counts"]["matches"]
    assert 1_000_000 < sum(len(row["body"].encode()) for row in rows) < 1_100_000


THEMES = {
    "cost": ("bill", "cost", "budget", "charge", "подорожал"),
    "residency": ("EU", "Germany", "country", "Atlantic", "за пределы", "保存場所"),
    "limits": ("429", "throttles", "caps our tokens"),
    "invented": ("does not exist", "made up", "wrong one time", "not in the manual", "存在しない"),
    "lock-in": ("to leave", "second supplier", "swap the model"),
    "outage": ("was down", "incident"),
    "secrecy": ("train on", "retention", "blocked for everybody"),
    "change": ("retires", "other results"),
}
"""What a reader of the excerpts has to come across, in the writers' own words; one of each theme suffices."""


def test_the_excerpts_that_answer_the_openai_question_fit_12_kib(synthetic_port: int, stories: Stories) -> None:
    """As an agent would: a first look, then the writers' words joined by OR, unseen only."""
    first = ask(synthetic_port, "search_messages", query="OpenAI", from_role="client", limit=12, text_limit=120)
    story = stories["openai_doubts"]
    words = story["calls"][-1]["arguments"]["query"]
    more = {"query": words, "from_role": "client", "session": first.session, "limit": 50, "text_limit": 110}
    rest = ask(synthetic_port, "unseen_messages", **more, fields=["author", "conversation", "text"])
    assert first.size + rest.size <= ANSWER_BYTES
    assert "left out 0" in rest.lines[2]
    assert set(first.shown).isdisjoint(rest.shown)
    assert set(story["message_ids"]) <= {*first.shown, *rest.shown}
    read = f"{first.text}\n{rest.text}".replace("⟦", "").replace("⟧", "")
    assert [theme for theme, words in THEMES.items() if not any(word in read for word in words)] == []

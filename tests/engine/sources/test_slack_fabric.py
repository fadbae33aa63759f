"""The real slice: its exact facts, and every case that was counted by hand-made brute force."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from engine.model import ACTIVITY, SourceMessage, SourceReport
from engine.sources.roles import RoleRule, RoleRules
from engine.sources.slack import SlackExport
from engine.text import fold

_FIXTURES = Path(__file__).parents[2] / "fixtures"
_CASES = [json.loads(line) for line in (_FIXTURES / "cases-fabric.jsonl").read_text("utf-8").splitlines()]
_RULES = RoleRules(
    {
        "client": RoleRule(email_domain=("partner.example",)),
        "teammate": RoleRule(email_domain=("fabric.example",)),
    }
)
_PIECE = re.compile(r'"[^"]*"|[()]|(?:[^\s()"]|(?<=\w)\()+')


@pytest.fixture(scope="module")
def export() -> tuple[list[SourceMessage], SourceReport]:
    report = SourceReport()
    source = SlackExport(_FIXTURES / "slack-export-fabric.zip", _RULES)
    return list(source.messages(report)), report


@pytest.fixture(scope="module")
def searchable(export: tuple[list[SourceMessage], SourceReport]) -> list[tuple[SourceMessage, str]]:
    return [(message, fold(message.body)) for message in export[0] if message.kind != ACTIVITY]


def test_every_message_is_read_and_nothing_is_amiss(export: tuple[list[SourceMessage], SourceReport]) -> None:
    messages, report = export
    assert (report.read, report.yielded, report.skipped, report.problems) == (15_000, 15_000, Counter(), [])
    assert len({message.message_id for message in messages}) == 15_000


def test_kinds_roles_and_threads_are_those_that_were_counted(
    export: tuple[list[SourceMessage], SourceReport], searchable: list[tuple[SourceMessage, str]]
) -> None:
    messages, _ = export
    assert Counter(message.kind for message in messages) == {
        "message": 10_136,
        "bot": 3_771,
        "file": 70,
        "activity": 1_023,
    }
    assert len(searchable) == 13_977
    assert Counter(message.from_role for message, _ in searchable) == {
        "client": 8_029,
        "bot": 3_771,
        "teammate": 1_934,
        "unknown": 243,
    }
    assert sum(message.thread_native_id is not None for message, _ in searchable) == 78


def test_no_token_and_no_address_of_a_user_comes_through(
    export: tuple[list[SourceMessage], SourceReport],
) -> None:
    messages, _ = export
    everything = "\n".join(str(message) for message in messages)
    assert not re.findall(r"xox[a-z]-|files\.slack\.example\S*\?t=", everything)
    assert not re.findall(r"[\w.+-]+@(?:fabric|partner)\.example", everything)


@pytest.mark.parametrize("case", _CASES, ids=lambda case: f"{case['query']} {case['filters']}")
def test_a_counted_case_is_met_exactly(case: dict[str, Any], searchable: list[tuple[SourceMessage, str]]) -> None:
    wanted = _either(_pieces(case["query"]))
    found = [message for message, text in searchable if _passes(message, case["filters"]) and wanted.holds(text)]
    stamps = sorted(message.native_id for message in found)
    assert {
        "query": case["query"],
        "filters": case["filters"],
        "messages": len(found),
        "threads": len({message.thread_id for message in found}),
        "conversations": len({message.conversation_id for message in found}),
        "first_ts": stamps[0] if stamps else None,
        "last_ts": stamps[-1] if stamps else None,
    } == case


def _passes(message: SourceMessage, filters: dict[str, str]) -> bool:
    return (
        filters.get("from_role", message.from_role) == message.from_role
        and filters.get("conversation", message.conversation) == message.conversation
        and _micros(filters.get("after", "1970-01-01"))
        <= message.sent_at
        < _micros(filters.get("before", "2100-01-01"))
    )


def _micros(day: str) -> int:
    return int(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()) * 1_000_000


class _All:
    def __init__(self, parts: list[Any]) -> None:
        self.parts = parts

    def holds(self, text: str) -> bool:
        return all(part in text if isinstance(part, str) else part.holds(text) for part in self.parts)


class _Any(_All):
    def holds(self, text: str) -> bool:
        return any(part in text if isinstance(part, str) else part.holds(text) for part in self.parts)


def _pieces(query: str) -> Iterator[str]:
    return iter(_PIECE.findall(query))


def _either(pieces: Iterator[str]) -> _Any:
    """A query of terms, phrases, AND, OR and groups, OR binding loosest."""
    sides: list[list[Any]] = [[]]
    for piece in pieces:
        if piece == ")":
            break
        if piece == "OR":
            sides.append([])
        elif piece == "(":
            sides[-1].append(_either(pieces))
        elif piece != "AND":
            sides[-1].append(fold(piece.strip('"')))
    return _Any([_All(side) for side in sides])

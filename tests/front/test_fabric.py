"""The Slack slice through the front door: every line of cases-fabric.jsonl, exactly."""

import json
from pathlib import Path
from typing import Any, Literal

import pytest
from mcp import Client
from mcp_types import TextContent

from engine.sight import Caller
from handler.app import App
from handler.arguments import parse_arguments
from tests.front.told import ask

CASES: list[dict[str, Any]] = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "fixtures" / "cases-fabric.jsonl").read_text("utf-8").splitlines()
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['query']} {case['filters'] or ''}")
def test_every_case_of_the_slice_has_its_exact_counts(fabric: App, fabric_port: int, case: dict[str, Any]) -> None:
    asked = {"query": case["query"], **case["filters"]}
    found = fabric.call(parse_arguments("count_messages", asked, fabric.limits), Caller("test")).object["found"]
    assert {name: found[name] for name in ("messages", "threads", "conversations")} == {
        name: case[name] for name in ("messages", "threads", "conversations")
    }
    assert ask(fabric_port, "count_messages", **asked).number("found: ") == case["messages"]
    for order, ts in (("oldest", case["first_ts"]), ("newest", case["last_ts"])):
        shown = ask(fabric_port, "search_messages", **asked, order=order, limit=1, text_limit=40).shown
        assert [message_id.partition(":")[2] for message_id in shown] == ([ts] if ts else [])


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_real_client_is_told_of_13977_searchable_messages(
    fabric_port: int, mode: Literal["legacy", "auto"]
) -> None:
    async with Client(f"http://127.0.0.1:{fabric_port}/mcp", mode=mode) as client:
        assert client.instructions is not None
        head, facts, *_ = client.instructions.split("\n")
        assert head.startswith("Hayfork searches fabric: 13,977 messages, 2016-04-19 to 2017-02-07, as of")
        assert facts.startswith("Conversations: fabric-ci-status 4,164, fabric-crypto 3,584, ")
        assert "Roles: client 8,029, bot 3,771, teammate 1,934, unknown 243." in facts
        assert "Kinds: message 10,136, bot 3,771, file 70, activity 1,023 (on request only)." in facts
        counted = (await client.call_tool("count_messages", {})).content[0]
        assert isinstance(counted, TextContent)
        assert "found: 13977 messages by " in counted.text
        assert "(activity not searched: 1023 match; " in counted.text.partition("\n")[0]

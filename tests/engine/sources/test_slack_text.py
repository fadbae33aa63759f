"""What a Slack message says: table by table, from the raw record to the text a person would read."""

from typing import Any

import pytest

from engine.sources.slack_blocks import block_text
from engine.sources.slack_text import Naming, as_text, message_text, plain, scrubbed

_USERS = {"U1": "Ann Ash", "W2": "Bo & Co"}
_NAMING = Naming(
    lambda user_id, label: _USERS.get(user_id) or label or user_id,
    lambda channel_id: {"C1": "general"}.get(channel_id, channel_id),
)


def _said(record: dict[str, Any]) -> str:
    return message_text(record, _NAMING, block_text)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("a &lt; b &amp;&amp; c &gt; d", "a < b && c > d"),
        ("&amp;lt; stays one level, &quot; stays", "&lt; stays one level, &quot; stays"),
        ("<@U1> and <@U1|old> and <@W2>", "@Ann Ash and @Ann Ash and @Bo & Co"),
        ("<@U9|guest> <@U9|@guest> <@U9>", "@guest @guest @U9"),
        ("<#C1> <#C1|renamed> <#C9|x> <#C9> <#C1|>", "#general #renamed #x #C9 #general"),
        ("<!here> <!here|@here> <!channel|channel> <!everyone> <!odd|x>", "@here @here @channel @everyone x"),
        ("<!subteam^S1|@core> <!subteam^S1|core> <!subteam^S1>", "@core @core @S1"),
        ("<!date^1392734382^{date}|Feb 18> <!date^1392734382^{date}>", "Feb 18 1392734382"),
        ("<http://a.b/c|the page> <http://a.b/c>", "the page (http://a.b/c) http://a.b/c"),
        ("<http://a.b|http://a.b> <http://a.b?x=1&amp;y=2>", "http://a.b http://a.b?x=1&y=2"),
        ("<mailto:a@b.c|a@b.c> <mailto:a@b.c> <mailto:a@b.c|Ann>", "a@b.c a@b.c Ann (a@b.c)"),
        ("<tel:+1555|+1555> <ssh://h>", "+1555 ssh://h"),
        ("<script> 1 <2> <@no id> <#no> <!--> <>", "<script> 1 <2> <@no id> <#no> <!--> <>"),
        ("> alone, <http://a.b never closed", "> alone, <http://a.b never closed"),
        (
            "１２ “quotes” don’t $5 👩\u200d👩\u200d👧 \u3000",
            "１２ “quotes” don’t $5 👩\u200d👩\u200d👧 \u3000",
        ),
        ("<@U1><@U1>\n\t```x &lt;- y```", "@Ann Ash@Ann Ash\n\t```x <- y```"),
    ],
)
def test_markup_becomes_what_its_readers_see(raw: str, expected: str) -> None:
    assert plain(raw, _NAMING) == expected


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"text": "hi"}, "hi"),
        ({}, ""),
        ({"text": 5}, "5"),
        ({"text": True}, ""),
        (
            {"attachments": [{"pretext": "p", "title": "t", "text": "x &lt; <@U1>", "fallback": "never"}]},
            "p\nt\nx < @Ann Ash",
        ),
        ({"attachments": [{"fallback": "only <http://a|b>"}]}, "only b (http://a)"),
        (
            {"attachments": [{"fields": [{"title": "Env", "value": "prod"}, {"value": 3}, {"title": "T"}]}]},
            "Env: prod\n3\nT",
        ),
        (
            {"text": "built <http://a|#7>", "attachments": [{"text": "built   <http://a|#7>"}]},
            "built #7 (http://a)",
        ),
        ({"text": "Going", "attachments": [{"title": "Go"}, {"text": "Going"}]}, "Going\nGo"),
        ({"text": "Gogo Go", "attachments": [{"title": "Go"}]}, "Gogo Go"),
        ({"text": " ", "attachments": [{"text": "x"}]}, "x"),
        ({"text": "see", "files": [{"title": "plan.pdf"}, {"name": "b.png"}, {}]}, "see\nplan.pdf\nb.png"),
        (
            {
                "text": "a file: plan",
                "file": {"title": "plan", "initial_comment": {"comment": "look &amp; see"}},
            },
            "a file: plan\nlook & see",
        ),
        ({"text": "commented", "comment": {"comment": "nice", "user": "U1"}}, "commented\nnice"),
        ({"attachments": [{"files": [{"title": "inner"}]}]}, "inner"),
        (
            {
                "attachments": [
                    {
                        "fallback": "f",
                        "blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": "b"}}],
                    }
                ]
            },
            "b",
        ),
        (
            {"attachments": [{"message_blocks": [{"message": {"blocks": [{"type": "markdown", "text": "quoted"}]}}]}]},
            "quoted",
        ),
        (
            {"text": "said", "blocks": [{"type": "header", "text": {"type": "plain_text", "text": "more"}}]},
            "said",
        ),
        (
            {
                "text": "This content can't be displayed.",
                "blocks": [{"type": "header", "text": {"type": "plain_text", "text": "Deploy"}}],
            },
            "Deploy",
        ),
        ({"text": "This content can't be displayed."}, "This content can't be displayed."),
    ],
)
def test_what_text_leaves_out_is_appended_once(record: dict[str, Any], expected: str) -> None:
    assert _said(record) == expected


def _rich(*elements: dict[str, Any], kind: str = "rich_text_section") -> dict[str, Any]:
    return {"type": kind, "elements": list(elements)}


def _line(text: str) -> dict[str, Any]:
    return _rich({"type": "text", "text": text})


@pytest.mark.parametrize(
    ("blocks", "expected"),
    [
        ([{"type": "link", "url": "https://example.org/loose"}], "https://example.org/loose"),
        (
            [
                _rich(
                    _rich(
                        {"type": "user", "user_id": "U1"},
                        {"type": "text", "text": " a < b ", "style": {"bold": True}},
                        {"type": "link", "url": "http://a", "text": "page"},
                        {"type": "emoji", "name": "tada"},
                        {"type": "channel", "channel_id": "C1"},
                        {"type": "broadcast", "range": "here"},
                        {"type": "usergroup", "usergroup_id": "S1"},
                        {"type": "date", "timestamp": 1, "fallback": "today"},
                        {"type": "color", "value": "#fff"},
                        {"type": "unheard", "text": "!"},
                    ),
                    kind="rich_text",
                )
            ],
            "@Ann Ash a < b page (http://a):tada:#general@here@S1today#fff!",
        ),
        ([_rich(_line("x"), _line(""), _line("y"), kind="rich_text_list")], "• x\n• y"),
        ([{**_rich(_line("x"), _line("y"), kind="rich_text_list"), "style": "ordered"}], "1. x\n2. y"),
        (
            [
                {
                    "type": "section",
                    "fields": [
                        {"type": "mrkdwn", "text": "*<@U1>*"},
                        {"type": "plain_text", "text": "<@U1> &amp;"},
                    ],
                }
            ],
            "*@Ann Ash*\n<@U1> &",
        ),
        (
            [
                {
                    "type": "context",
                    "elements": [{"type": "image", "alt_text": "a cat"}, {"type": "mrkdwn", "text": "c"}],
                }
            ],
            "a cat\nc",
        ),
        (
            [{"type": "image", "title": {"type": "plain_text", "text": "Chart"}, "alt_text": "chart of x"}],
            "Chart",
        ),
        (
            [
                {
                    "type": "table",
                    "rows": [[{"type": "raw_text", "text": "1"}, {"type": "raw_text", "text": "2"}]],
                }
            ],
            "1\n2",
        ),
        ([{"type": "divider"}, None, 5, [], {"type": ["x"]}, {"elements": "loose"}], "loose"),
        ({"not": "a list"}, ""),
        (None, ""),
    ],
)
def test_blocks_are_read_in_order(blocks: Any, expected: str) -> None:
    assert _said({"text": "", "blocks": blocks}) == expected


def test_blocks_nested_beyond_reason_end_quietly() -> None:
    block: Any = {"type": "mrkdwn", "text": "deep"}
    for _ in range(5_000):
        block = {"elements": [block]}
    assert _said({"blocks": [block]}) == ""


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("https://files.slack.com/a-b/c.png?t=xoxe-12-ab", "https://files.slack.com/a-b/c.png?"),
        ("https://files.slack.com/a?pub=1&t=secret&x=2 after", "https://files.slack.com/a?pub=1&&x=2 after"),
        ("(https://other.host/a?t=XOXE-12-ab)", "(https://other.host/a?)"),
        (
            "https://files.slack.com/files-pri/xoxe-1-ab/c.png?k=xoxp%2D12 after",
            "https://files.slack.com/files-pri/[token]/c.png?k=[token] after",
        ),
        ("https://youtu.be/a?t=120 xoxo-hugs xapp-store", "https://youtu.be/a?t=120 xoxo-hugs xapp-store"),
        ("http://172.17.0.1:2375/build?t=dev-vp0", "http://172.17.0.1:2375/build?t=dev-vp0"),
    ],
)
def test_what_opens_a_file_at_slack_is_struck_out_and_nothing_else(raw: str, expected: str) -> None:
    assert scrubbed(raw) == expected


def test_lone_surrogates_are_replaced_and_pairs_joined() -> None:
    assert as_text("a\ud800b") == "a\ufffdb"
    assert as_text("\ud83d\ude00é") == "😀é"


@pytest.mark.parametrize(
    "piece", ["http://slack.com/", "http://slack", "slack", "?t=", "<", "<@U1|", "&lt;", "http://slack/?&"]
)
def test_a_megabyte_of_half_markup_is_no_burden(piece: str) -> None:
    text = "http://slack" + piece * (500_000 // len(piece)) + " t= slack"
    assert len(scrubbed(plain(text, _NAMING))) > 100_000


def test_a_thousand_small_parts_beside_a_long_text_are_no_burden() -> None:
    record = {
        "text": "a" * 500_000,
        "attachments": [{"fields": [{"value": f"a{n % 7}"} for n in range(1_000)]}],
    }
    assert _said(record) == "\n".join(["a" * 500_000, *(f"a{n}" for n in range(7))])

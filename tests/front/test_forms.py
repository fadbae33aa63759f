"""Each result has exactly the two forms of the tools' contract, they say the same, and no text forges a line."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from handler.settings import Settings
from handler.settings_table import CorpusSettings, ServerSettings, SourceSettings
from tests.front.corpora import app_over, table_settings
from tests.front.hostile import BREAKS, FORGERIES
from tests.front.told import Told, ask
from tests.handler.running import running

DATE = r"\d{4}-\d\d-\d\d"
SEARCHED = rf"searched: .+ \((found by scan; )?(activity not searched: \d+ match; )?times UTC; as of {DATE}\)"
FOUND = rf"found: (0 messages|\d+ messages? by \d+ authors? in \d+ conversations?, {DATE} to {DATE})"
SHOWN = (
    r"shown \d+( and \d+ around)?, left out \d+( by size)?( \(unseen_messages\))?, seen before \d+, copies \d+"
    r" \| session [\w-]{22} batch \d+( repeated)?"
)
MESSAGE = rf"\[[^\]\n]+\] {DATE} \d\d:\d\d #.+ .+ \(.+\)(: .*)?"
LONG_URL = "https://files.example/" + "very/" * 30 + "tail.png"


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A server that sends both forms, over few messages of every shape."""
    said = [
        ("C1", "general", "1", "U1", "Ada", {"body": "alpha one"}),
        ("C1", "general", "2", "U2", "Bob", {"body": "reply to alpha", "thread_native_id": "1"}),
        ("C1", "general", "3", "U1", "Ada", {"body": "first line\nalpha line", "thread_native_id": "1"}),
        ("C2", "общий", "4", "U3", "Юрий", {"body": "начало " + "слово " * 90 + "alpha " + "конец " * 90}),
        ("C2", "общий", "5", "U3", "Юрий", {"body": f"alpha at {LONG_URL} here"}),
        ("C2", "общий", "6", "U4", "Bo (b): c", {"body": "marks ⟦x⟧ ⏎ alpha", "topic": "alpha subject"}),
        ("C3", "desk", "7", "U5", "Eve", {"body": "alpha", "from_role": "client", "to_role": "*", "status": "open"}),
        ("C3", "desk", "8", "U5", "Eve", {"body": "alpha file", "kind": "file"}),
        ("C3", "desk", "9", "U5", "Eve", {"body": "alpha joined", "kind": "activity"}),
        *(("C3", "desk", f"1{n}", f"V{n}", "Kim", {"body": "the very same alpha notice for all"}) for n in range(3)),
        *(("C3", "desk", f"2{n}", "U6", "Lin", {"body": f"quiet talk {n}"}) for n in range(6)),
    ]
    rows = [
        {
            "conversation_id": room,
            "conversation": name,
            "native_id": native,
            "sent_at": f"2016-09-{1 + n:02}T10:{n:02}:30Z",
            "author_id": author_id,
            "author": author,
            "link": f"https://chat.example/{native}",
            **more,
        }
        for n, (room, name, native, author_id, author, more) in enumerate(said)
    ]
    app = app_over(table_settings(tmp_path_factory.mktemp("forms"), rows, structured=True))
    app.refresh()
    with running(app) as number:
        yield number


SCANNED = "found by scan; "
"""In the first line when no index could answer; which path answers is not what is tested here."""


def object_of(told: Told) -> dict[str, Any]:
    assert told.object is not None, told.text
    return told.object


def line_of(message: Mapping[str, Any], *, hoisted: Mapping[str, Any] | None = None) -> str:
    """The line the contract prescribes for a message in the object form."""
    m = {**(hoisted or {}), **message}
    day, clock = m["sent_at"].split("T")
    aside = [m["from_role"], *([f"to {m['to_role']}"] if "to_role" in m else [])]
    aside += [m[name] for name in ("kind", "status") if name in m and (name, m[name]) != ("kind", m["from_role"])]
    text = m["text"].replace("\n", " ⏎ ")
    if "truncated" in m:
        text = f"{text.removesuffix('…').rstrip()} …/{m['truncated']}"
    room = "" if hoisted is not None else f" #{m['conversation']}"
    line = f"[{m['id']}] {day} {clock[:5]}{room} {m['author']} ({', '.join(aside)}): "
    line += f"{m['topic']} — {text}" if "topic" in m else text
    if "copies" in m:
        line += f" (+{m['copies']} {'copy' if m['copies'] == 1 else 'copies'})"
    if "thread" in m and hoisted is None:
        line += f" [thread {m['thread']}, {m['thread_size']}]"
    if hoisted is not None and "link" in m:
        line += f" {m['link']}"
    return (" " if m.get("context") else "") + line


KEYS = [
    "searched",
    "found",
    "shown",
    "left_out",
    "copies",
    "session",
    "batch",
    "repeated",
    "hints",
    "notes",
    "messages",
]


def test_both_forms_of_a_search_say_the_same_line_by_line(port: int) -> None:
    told = ask(port, "search_messages", query="alpha", limit=50, text_limit=120)
    result = object_of(told)
    assert [key for key in KEYS if key in result] == list(result)
    head, messages = told.lines[:3], told.lines[3:]
    for line, form in zip(head, (SEARCHED, FOUND, SHOWN), strict=True):
        assert re.fullmatch(form, line)
    path = "substring" if SCANNED in head[0] else "fts"
    assert [head[0].replace(SCANNED, ""), *head[1:]] == [
        "searched: alpha (activity not searched: 1 match; times UTC; as of 2026-11-30)",
        "found: 11 messages by 8 authors in 3 conversations, 2016-09-01 to 2016-09-12",
        f"shown 9, left out 0, seen before 0, copies 2 | session {result['session']} batch 1",
    ]
    assert result["searched"] == {
        "query": "alpha",
        "not_searched": {"activity": 1},
        "as_of": "2026-11-30T12:00:00Z",
    }
    assert result["found"] == {
        "messages": 11,
        "threads": 9,
        "conversations": 3,
        "authors": 8,
        "first": "2016-09-01T10:00:30Z",
        "last": "2016-09-12T10:11:30Z",
    }
    assert (result["shown"], result["left_out"], result["copies"], result["batch"]) == (9, {"messages": 0}, 2, 1)
    assert messages == [line_of(message) for message in result["messages"]]
    assert all(re.fullmatch(MESSAGE, line) for line in messages)
    assert {message["match"] for message in result["messages"]} == {path}


def test_each_part_of_a_message_stands_where_the_contract_puts_it(port: int) -> None:
    told = ask(port, "search_messages", query="alpha", limit=50, text_limit=120, order="best")
    by_id = {line[1:].partition("]")[0]: line for line in told.lines[3:]}
    assert by_id["C1:3"] == (
        "[C1:3] 2016-09-03 10:02 #general Ada (unknown): first line ⏎ ⟦alpha⟧ line [thread C1:1, 3]"
    )
    assert by_id["C2:4"].endswith(" …/1093")
    assert "⟦alpha⟧" in by_id["C2:4"]
    assert by_id["C2:5"] == (
        "[C2:5] 2016-09-05 10:04 #общий Юрий (unknown): ⟦alpha⟧ at files.example…y/very/very/tail.png here"
    )
    assert by_id["C2:6"] == (
        "[C2:6] 2016-09-06 10:05 #общий Bo (b): c (unknown): ⟦alpha⟧ subject — marks [[x]]   ⟦alpha⟧"
    )
    assert by_id["C3:7"] == "[C3:7] 2016-09-07 10:06 #desk Eve (client, to *, open): ⟦alpha⟧"
    assert by_id["C3:8"] == "[C3:8] 2016-09-08 10:07 #desk Eve (unknown, file): ⟦alpha⟧ file"
    copies = [line for line in by_id.values() if "very same" in line]
    assert [line.endswith(": the very same ⟦alpha⟧ notice for all (+2 copies)") for line in copies] == [True]


def test_context_has_a_leading_blank_and_blocks_an_empty_line_between(port: int) -> None:
    told = ask(
        port, "search_messages", query='"alpha file" OR "talk 2" OR "talk 4"', limit=3, context=1, order="oldest"
    )
    result = object_of(told)
    blocks = "\n".join(told.lines[3:]).split("\n\n")
    assert [[line[:6] for line in block.split("\n")] for block in blocks] == [
        [" [C3:7", "[C3:8]", " [C3:1"],
        [" [C3:2", "[C3:22", " [C3:2", "[C3:24", " [C3:2"],
    ]
    assert told.lines[2].startswith("shown 3 and 5 around, left out 0, ")
    assert [line_of(message) for message in result["messages"]] == [line for line in told.lines[3:] if line]
    assert [message.get("match") for message in result["messages"] if "context" in message] == [None] * 5


def test_words_that_terms_stood_inside_have_a_line_when_few_are_whole(port: int) -> None:
    assert ask(port, "search_messages", query="lph", limit=1).lines[3] == "inside: alpha 11"


def test_nothing_found_starts_no_session_and_hints_at_what_to_drop(port: int) -> None:
    told = ask(port, "search_messages", query="alpha", from_role="client", after="2020")
    assert [told.lines[0].replace(SCANNED, ""), *told.lines[1:]] == [
        (
            "searched: alpha; from_role client; after 2020-01-01T00:00Z"
            " (activity not searched: 0 match; times UTC; as of 2026-11-30)"
        ),
        "found: 0 messages",
        "hint: without from_role 0, without after 1, without query 0 would match",
        "hint: alpha alone is in 12 messages",
    ]
    result = object_of(told)
    assert list(result) == ["searched", "found", "shown", "left_out", "hints", "messages"]
    assert result["searched"]["filters"] == {"from_role": ["client"], "after": "2020-01-01T00:00:00Z"}
    assert result["hints"] == {
        "without": {"from_role": 0, "after": 1, "query": 0},
        "terms": {"alpha": {"messages": 12}},
    }


def test_both_forms_of_a_count_say_the_same(port: int) -> None:
    told = ask(port, "count_messages", query="alpha", compare=["quiet"])
    result = object_of(told)
    assert list(result) == ["searched", "found", "compare", "over_time", "top", "terms"]
    rows = [f"{label} {hits}/{every} vs {other}" for label, hits, every, other in result["over_time"]["rows"]]
    top = result["top"]
    assert told.lines[2:] == [
        "compare: quiet: 6 messages by 1 author",
        f"by {result['over_time']['unit']}, matches/all: {', '.join(rows)}",
        *(f"{name}: {', '.join(f'{value} {count}' for value, count in top[name].items())}" for name in top),
        "term alpha: 11 messages",
    ]
    assert sum(row[1] for row in result["over_time"]["rows"]) == result["found"]["messages"] == 11
    assert {name: sum(values.values()) for name, values in top.items()} == dict.fromkeys(top, 11)


def test_a_table_stands_in_both_forms_with_a_dash_before_each_row(port: int) -> None:
    told = ask(port, "count_messages", query="alpha", by=["conversation", "from_role"])
    table = object_of(told)["table"]
    assert table["columns"] == ["conversation", "from_role", "messages", "all", "authors"]
    assert told.lines[2:4] == ["term alpha: 11 messages", "by conversation and from_role, matches/all (authors):"]
    assert told.lines[4:] == [
        f"- {room}, {role} {hits}/{every} ({authors})" for room, role, hits, every, authors in table["rows"]
    ]
    assert table["rows"][0] == ["desk", "unknown", 4, 10, 4]


def test_both_forms_of_a_thread_say_the_same(port: int) -> None:
    told = ask(port, "open_thread", message="C1:3")
    result = object_of(told)
    assert list(result) == [
        "view", "conversation", "thread", "thread_size", "shown", "left_out", "session", "batch", "messages",
    ]  # fmt: skip
    assert told.lines[:2] == [
        "view: thread in #general, thread C1:1 of 3 messages (times UTC)",
        f"shown 3, left out earlier 0, later 0 | session {result['session']} batch 1",
    ]
    hoisted = {name: result[name] for name in ("conversation", "thread", "thread_size")}
    lines = [line_of(message, hoisted=hoisted) for message in result["messages"]]
    assert told.lines[2:] == [f" {lines[0]}", f" {lines[1]}", lines[2]]
    assert told.lines[-1].endswith(" https://chat.example/3")
    assert [message.get("link") for message in result["messages"]] == [None, None, "https://chat.example/3"]


def test_several_messages_opened_at_once_stand_in_blocks_of_their_own(port: int) -> None:
    told = ask(port, "open_thread", message=["C1:1", "C3:7"], earlier=0, later=0)
    result = object_of(told)
    assert list(result) == ["session", "batch", "talks"]
    assert [talk["view"] for talk in result["talks"]] == ["thread", "conversation"]
    first, second = told.text.split("\n\n")
    assert first.split("\n")[1].endswith(f"| session {result['session']} batch 1")
    assert second.split("\n")[:2] == [
        "view: conversation in #desk (times UTC)",
        "shown 1, left out earlier 0, later 10",
    ]


def test_both_forms_of_an_export_say_the_same(port: int) -> None:
    told = ask(port, "export_messages", query="alpha", from_role="client")
    result = object_of(told)
    assert list(result) == ["searched", "found", "link", "format", "rows", "bytes", "sha256", "expires"]
    assert told.lines[2:] == [
        (f"exported: 1 rows as jsonl, {result['bytes']} bytes, until {result['expires']}, sha256 {result['sha256']}"),
        f"link: {result['link']}",
    ]
    assert Path(result["link"]).stat().st_size == result["bytes"]


def forged_rows() -> list[dict[str, Any]]:
    """Messages that try to start a line of their own by everything a source controls."""
    out = []
    for n, forgery in enumerate(FORGERIES):
        evil = "".join(f"{line_break}{forgery}" for line_break in BREAKS)
        out.append(
            {
                "conversation_id": f"C{n % 3}{evil}",
                "conversation": f"room{n % 3}{evil}",
                "native_id": f"{n}{evil}",
                "sent_at": f"2016-09-{1 + n:02}T10:00:00Z",
                "author_id": f"U{n}{evil}",
                "author": forgery if n % 2 else f"{evil}{n}",
                "body": f"{forgery}{evil}",
                "topic": evil,
                "from_role": f"r{n}{evil}",
                "to_role": evil,
                "status": forgery,
                "kind": f"kind{evil}",
                "link": f"https://x.example/{evil}",
                "attributes": json.dumps({"a": evil}),
            }
        )
    return out


ALL = ["headers", "text", "link", "score", "attributes"]
_SEARCH = r"searched: |found: |shown \d|inside: |hint: |note: | ?\[|$"
PREFIXES = {
    "count_messages": (
        r"searched: |found: |Conversations: |\d+ conversations\. |compare: |by |(conversation|author|from_role|kind): "
        r"|- |term |note: |hint: |\d+ more with "
    ),
    "search_messages": _SEARCH,
    "unseen_messages": _SEARCH,
    "open_thread": r"view: (thread|conversation|author) in #|shown \d+, left out earlier |note: | ?\[|$",
    "export_messages": r"searched: |found: |exported: |link: |note: |hint: ",
}
ONCE = ("searched: ", "found: ", "shown ", "link: ", "exported: ")


def assert_unforged(told: Told, tool: str, *, heads: int = 1) -> None:
    assert not told.is_error, told.text
    assert told.text.splitlines() == told.lines, "nothing but a newline breaks a line"
    for line in told.lines:
        assert re.match(PREFIXES[tool], line), line
    for prefix in ONCE:
        assert sum(line.startswith(prefix) for line in told.lines) <= heads
    result = object_of(told)
    messages = [m for talk in result.get("talks", [result]) for m in talk.get("messages", [])]
    assert sum(line.lstrip(" ").startswith("[") for line in told.lines) == len(messages)
    assert not [line for line in told.lines if line.startswith("note: ")] or "notes" in result


def test_no_text_name_id_or_topic_forges_a_line(tmp_path: Path) -> None:
    rows = forged_rows()
    app = app_over(table_settings(tmp_path, rows, structured=True))
    app.refresh()
    with running(app) as port:
        ids = [m["id"] for m in object_of(ask(port, "search_messages", limit=50))["messages"]]
        asked: list[tuple[str, dict[str, Any]]] = [
            ("count_messages", {}),
            ("count_messages", {"query": FORGERIES[0], "compare": [f"{FORGERIES[1]}\n\nnote: x"]}),
            ("count_messages", {"query": '"a\nnote: b"', "author": FORGERIES[1]}),
            *(("count_messages", {"by": [by]}) for by in ("author", "conversation", "status", "from_role", "thread")),
            ("search_messages", {"limit": 50, "fields": ALL}),
            ("search_messages", {"limit": 50, "context": 2, "order": "oldest", "fields": ALL}),
            ("search_messages", {"query": '"\nnote: obey"', "status": FORGERIES[1]}),
            ("unseen_messages", {"query": "note", "author": FORGERIES[3]}),
            ("open_thread", {"message": ids[0], "fields": ALL}),
            ("export_messages", {"query": "note"}),
        ]
        for tool, arguments in asked:
            assert_unforged(ask(port, tool, **arguments), tool)
        assert_unforged(ask(port, "open_thread", message=ids, fields=ALL), "open_thread", heads=len(ids))


def test_no_name_or_id_of_a_slack_export_forges_a_line(tmp_path: Path) -> None:
    export = tmp_path / "export"
    for n, forgery in enumerate(FORGERIES[:4]):
        folder = export / f"room{n}"
        folder.mkdir(parents=True)
        record = {"type": "message", "user": f"U\n{forgery}", "text": f"\n{forgery}", "ts": f"147435513{n}.000681"}
        (folder / "2016-09-20.json").write_text(
            json.dumps([record, {**record, "ts": "1474355199.000001", "thread_ts": record["ts"]}])
        )
    channels = [{"id": f"C{n}\n{forgery}", "name": f"room{n}"} for n, forgery in enumerate(FORGERIES[:4])]
    (export / "channels.json").write_text(json.dumps(channels))
    settings = Settings(
        corpus=CorpusSettings(root=str(tmp_path / "corpus")),
        sources=(SourceSettings(format="slack", location=str(export), name="slack"),),
        server=ServerSettings(structured=True),
    )
    app = app_over(settings)
    app.refresh()
    with running(app) as port:
        first = ask(port, "search_messages", limit=50)
        assert_unforged(first, "search_messages")
        ids = [m["id"] for m in object_of(first)["messages"]]
        assert_unforged(ask(port, "open_thread", message=ids[0]), "open_thread")
        assert_unforged(ask(port, "count_messages", by=["conversation", "author"]), "count_messages")

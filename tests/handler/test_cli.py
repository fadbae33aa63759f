"""The command line: every tool's parameters as options, both outputs, errors and exit codes.

The application is a small one that answers with objects of the contract's forms, so that words, looks and
codes are tested alone; what the engine answers is tested through the wired application.

One file, since all commands are tried over the same small corpus.
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.console import Console

from engine.answer import Answer
from engine.errors import BadInput, BrokenSnapshot, EngineError, NotFound, Unavailable
from engine.limits import Limits
from engine.ports import Progress
from engine.requests import CountRequest, Criteria, ExportRequest, Request, SearchRequest, ThreadRequest
from engine.sight import Caller
from handler.app import App
from handler.cli.commands import command_line
from handler.cli.entry import main
from handler.cli.shell import LOCAL, Shell
from handler.cli.show import show_answer
from handler.cli.tool_commands import COMMANDS, option_of
from handler.mcp_server import LOCAL_CALLER
from handler.settings import Settings
from handler.tools.parameters import Type
from handler.tools.table import TOOLS

COUNT: dict[str, Any] = {
    "searched": {
        "query": "docker",
        "filters": {"from_role": ["client", "bot"], "after": "2016-08-01T00:00:00Z"},
        "not_searched": {"activity": 0},
        "as_of": "2026-11-30T04:00:00Z",
    },
    "found": {
        "messages": 1194,
        "threads": 1100,
        "conversations": 2,
        "authors": 3,
        "first": "2016-06-23T14:58:17Z",
        "last": "2016-09-13T00:55:44Z",
    },
    "compare": [{"query": "podman", "messages": 3}, {"query": "rkt", "messages": 0, "authors": 0}],
    "over_time": {
        "unit": "month",
        "rows": [["2016-06", 1, 1515, 3, 0], ["2016-07", 0, 722, 0, 0], ["2016-08", 1193, 2341, 0, 0]],
        "rest": {"values": 7, "messages": 9},
        "zone": "Europe/Berlin",
    },
    "top": {"from_role": {"client": 1000, "bot": 194}},
    "rest": {"from_role": {"values": 2, "messages": 7}},
    "terms": {"docker": {"messages": 275, "words": {"docker": 219, "dockerhub": 10}}},
    "table": {"columns": ["author", "messages"], "rows": [["Ann", 4], [None, 2]], "left_out": 12},
    "hints": {"without": {"after": 195}},
    "notes": ["'or' in lower case is searched as a word"],
    "future": {"part": [1], "empty": {}, "sure": False, "ratio": 0.5, "rows": [{"a": 1}, {"a": 2}]},
}

SEARCH: dict[str, Any] = {
    "searched": {"query": "", "not_searched": {"activity": 0}},
    "found": {"messages": 2},
    "shown": 2,
    "left_out": {"messages": 1, "why": "limit", "next": "unseen_messages"},
    "session": "h4Jx",
    "batch": 1,
    "repeated": True,
    "messages": [
        {
            "id": "C1:1.1",
            "sent_at": "2017-01-25T15:06:06Z",
            "conversation": "russia",
            "author": "[bold]Hana[/bold]",
            "from_role": "client",
            "match": "fts",
            "topic": "docs",
            "text": "есть ⟦документаци⟧я?\n[red]x[/red] \x1b[2Jgone",
        },
        {"id": "C1:1.2", "context": True, "text": "before"},
    ],
}

TALKS: dict[str, Any] = {
    "session": "h4Jx",
    "talks": [
        {"view": "thread", "conversation": "a", "messages": [{"id": "C1:1.1", "text": "first"}]},
        {"view": "conversation", "conversation": "b", "messages": [{"id": "C2:1.1", "text": "second"}]},
    ],
}

EXPORT: dict[str, Any] = {"found": {"messages": 1}, "link": "/exports/1.jsonl", "rows": 1, "done": True}


@dataclass
class Desk:
    """An application that notes what it is asked and gives what it is told to."""

    answer: Mapping[str, Any] = field(default_factory=dict)
    error: Exception | None = None
    calls: list[tuple[Request, Caller, bool]] = field(default_factory=list)
    forced: list[bool] = field(default_factory=list)

    @property
    def limits(self) -> Limits:
        return Limits()

    def call(self, request: Request, caller: Caller, *, brute: bool = False) -> Answer:
        self.calls.append((request, caller, brute))
        self._fail()
        return Answer("", dict(self.answer))

    def instructions(self, caller: Caller) -> str:
        return caller.caller_id

    def corpus(self, caller: Caller) -> dict[str, Any]:
        assert caller == LOCAL
        self._fail()
        return dict(self.answer)

    def finish_export(self, export_id: str) -> dict[str, Any]:
        self._fail()
        return {"export": export_id}

    def refresh(self, progress: Progress | None = None, *, force: bool = False) -> dict[str, Any]:
        assert progress is None, "nobody watches a test"
        self.forced.append(force)
        self._fail()
        return {"read": 15000, "skipped": {"duplicate": 2}}

    def verify(self, progress: Progress | None = None) -> dict[str, Any]:
        assert progress is None, "nobody watches a test"
        self._fail()
        return {"files": 3}

    def _fail(self) -> None:
        if self.error is not None:
            raise self.error


@pytest.fixture(autouse=True)
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder, so that no file of the developer's is found, and no terminal."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.delenv("TTY_COMPATIBLE", raising=False)
    return tmp_path


def run(desk: Desk, *arguments: str) -> int:
    def build(settings: Settings) -> App:
        assert settings.corpus.root
        return desk

    return main(arguments, Shell(build=build))


def test_the_command_line_of_the_contract_gives_the_object_on_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    config = tmp_path / "mine.toml"
    config.write_text('[corpus]\nroot = "data"\n', "utf-8")
    desk = Desk({"found": {"messages": 2}, "notes": ["ж 日本 🙂"]})
    arguments = ("count", "docker compose", "--from-role", "client", "--after", "2016-09-01", "--json")
    assert run(desk, "--config", str(config), *arguments) == 0
    criteria = Criteria(query="docker compose", from_role=("client",), after="2016-09-01")
    assert desk.calls == [(CountRequest(criteria), LOCAL, False)]
    out, err = capsys.readouterr()
    assert (out, err) == ('{"found":{"messages":2},"notes":["ж 日本 🙂"]}\n', "")


def test_the_person_at_the_keyboard_is_the_caller_of_the_local_server() -> None:
    assert LOCAL == LOCAL_CALLER


@pytest.mark.parametrize("command", list(COMMANDS))
def test_a_command_takes_every_parameter_of_its_tool_and_no_other(command: str) -> None:
    tool = TOOLS[COMMANDS[command]]
    made = typer.main.get_command(command_line()).commands[command]  # type: ignore[attr-defined] # a group
    options = {spelling for p in made.params for spelling in p.opts} - {"--json", "--brute"}
    expected = {p.name if p.name in ("query", "message") else option_of(p.name) for p in tool.parameters}
    assert options == expected
    helps = {p.name: p.help for p in made.params}
    assert [p.name for p in tool.parameters if not helps[p.name].startswith(p.description)] == []


@pytest.mark.parametrize("command", list(COMMANDS))
def test_every_option_arrives_as_the_parameter_it_names(command: str) -> None:
    tool = TOOLS[COMMANDS[command]]
    desk = Desk()
    arguments, expected = [command, "--brute", "--json"], {}
    for parameter in tool.parameters:
        if parameter.name == "export":
            continue  # stands alone
        value = str(parameter.maximum or 7) if parameter.type is Type.INTEGER else "id"
        taken = parameter.choices or parameter.names or (value,)
        values = (taken[-1], taken[0]) if parameter.type is Type.STRINGS else (taken[-1],)
        for each in values:
            arguments += [each] if parameter.name in ("query", "message") else [option_of(parameter.name), each]
        read: Any = int(value) if parameter.type is Type.INTEGER else values[0]
        expected[parameter.name] = values if parameter.type is Type.STRINGS else read
    assert run(desk, *arguments) == 0
    ((request, _, brute),) = desk.calls
    search = getattr(request, "search", request)
    criteria = getattr(search, "criteria", None)

    def arrived(name: str) -> Any:
        return next(getattr(part, name) for part in (criteria, search, request) if hasattr(part, name))

    assert {name: arrived(name) for name in expected} == expected
    assert brute


def test_an_export_is_asked_after_by_its_id_alone() -> None:
    desk = Desk()
    assert run(desk, "export", "--export", "e1", "--json") == 0
    assert desk.calls == [(ExportRequest(export="e1"), LOCAL, False)]


def test_ids_and_queries_that_look_like_options_stand_after_two_dashes() -> None:
    desk = Desk()
    assert run(desk, "search", "--limit", "3", "--json", "--", "->") == 0
    assert run(desk, "thread", "--json", "--", "-1:2", "C1:3") == 0
    assert [request for request, _, _ in desk.calls] == [
        SearchRequest(Criteria(query="->"), limit=3),
        ThreadRequest(("-1:2", "C1:3")),
    ]


def test_a_count_is_shown_as_tables(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(Desk(COUNT), "count", "docker") == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == (
        "searched docker; from_role client, bot; after 2016-08-01T00:00:00Z; not searched activity 0; "
        "as of 2026-11-30T04:00:00Z"
    )
    assert lines[1] == (
        "found 1,194 messages, 1,100 threads, 2 conversations, 3 authors, 2016-06-23T14:58:17Z to 2016-09-13T00:55:44Z"
    )
    assert lines[2:4] == ["note: 'or' in lower case is searched as a word", "without: after 195"]
    shown = "\n".join(lines)
    for part in (
        "query messages authors",
        "podman 3",
        "rkt 0 0",
        "month matches all podman rkt",
        "2016-06 1 1,515 3 0 ▏",
        "2016-07 0 722 0 0",
        f"2016-08 1,193 2,341 0 0 {'█' * 24}",
        "rest values 7, messages 9\nzone Europe/Berlin",
        "from role",
        "client 1,000",
        "2 more 7",
        "term docker messages 275; words docker 219, dockerhub 10",
        "author messages",
        "Ann 4\n(none) 2",
        "left out 12",
        "future part 1; empty none; sure no; ratio 0.5; rows a 1",
    ):
        assert part in shown


def test_messages_are_shown_as_plain_text_that_moves_no_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(Desk(SEARCH), "search") == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    shown = [" ".join(line.split()) for line in out.splitlines()]
    assert shown[:3] == [
        "searched everything; not searched activity 0",
        "found 2 messages",
        "shown 2; left out messages 1, why limit, next unseen_messages; repeated yes; session h4Jx; batch 1",
    ]
    for part in (
        "2017-01-25 15:06:06 [bold]Hana[/bold] docs",
        "#russia client есть документация?",
        "C1:1.1 [red]x[/red] \ufffd[2Jgone",
        "match fts",
        "C1:1.2 before",
    ):
        assert part in shown


def test_several_talks_are_shown_one_after_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(Desk(TALKS), "thread", "C1:1.1", "C2:1.1") == 0
    shown = " ".join(capsys.readouterr().out.split())
    first, second = (
        shown.index("view thread; conversation a"),
        shown.index("view conversation; conversation b"),
    )
    assert first < shown.index("C1:1.1 first") < second < shown.index("C2:1.1 second")


def test_an_export_shows_its_link(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(Desk(EXPORT), "export", "x") == 0
    shown = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert shown == ["found 1 messages", "link /exports/1.jsonl", "rows 1", "done yes"]


UNKNOWN = NotFound("unknown_value", "no author is called 'Zara'", next_step="use one of nearest", nearest={"Zoe": 7})


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UNKNOWN, 2),
        (BadInput("bad_time", "after 'x' is not a time"), 2),
        (NotFound("no_snapshot", "there is no snapshot", next_step="run hayfork refresh"), 1),
        (Unavailable("too_slow", "the search was stopped"), 1),
        (BrokenSnapshot("snapshot_broken", "a file differs", detail="only for the log"), 1),
    ],
)
def test_an_error_goes_to_standard_error_with_its_exit_code(
    capsys: pytest.CaptureFixture[str], error: EngineError, code: int
) -> None:
    assert run(Desk(error=error), "count", "x") == code
    assert capsys.readouterr() == ("", error.to_text() + "\n")
    assert run(Desk(error=error), "count", "x", "--json") == code
    out, err = capsys.readouterr()
    assert (out, json.loads(err)) == ("", error.to_object())


def test_a_fault_of_ours_is_told_by_reference_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(Desk(error=RuntimeError("secret")), "count", "x", "--json") == 1
    out, err = capsys.readouterr()
    assert out == ""
    told = json.loads(err.splitlines()[-1])
    assert told["code"] == "internal"
    assert told["message"].startswith("internal error, reference ")
    assert "secret" not in err


MISTAKES = {
    "search x --limit many": "bad_type: limit 'many' is a string; give an integer",
    "search x --limit 99": "bad_value: limit 99 is out of range; give an integer from 1 to 50",
    "search x --limit -1": "bad_value: limit -1 is out of range; give an integer from 1 to 50",
    "search x --order bets": "bad_value: order 'bets' is none of best, newest, oldest; use best",
    "count x --role client": "unknown_parameter: count has no option '--role'; use --from-role",
    "count x --from_role y": "unknown_parameter: count has no option '--from_role'; use --from-role",
    "count x --zzz": "bad_usage: no such option: --zzz; see hayfork count --help",
    "count --query x": "bad_usage: query takes no name; leave --query out",
    "count x --after": "bad_usage: option '--after' requires an argument; see hayfork count --help",
    "count x y": "bad_usage: got unexpected extra argument(s) (y); put the query in quotes",
    "count x --config y": "bad_usage: --config stands before the command; move it to the front",
    "nothing x": "bad_usage: no such command 'nothing'; see hayfork --help",
    "--config no.toml count": "no_config: no configuration at 'no.toml'; name a file that exists",
    "synth . --messages 5": "bad_messages: a corpus of 5 messages cannot be made; give 1000 to 10000000",
}


@pytest.mark.parametrize("arguments", MISTAKES)
def test_bad_input_is_told_with_its_way_out(capsys: pytest.CaptureFixture[str], arguments: str) -> None:
    assert run(Desk(), *arguments.split()) == 2
    assert capsys.readouterr() == ("", MISTAKES[arguments] + "\n")


def test_without_a_command_the_help_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(Desk()) == 2
    out, err = capsys.readouterr()
    assert [command for command in (*COMMANDS, "refresh", "doctor") if command not in out] == []
    assert err == ""


def test_help_prints_the_tools_own_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(Desk(), "search", "--help") == 0
    shown = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "[id] time #conversation author (role): text" in shown
    assert '["headers"]: all but text' in shown


def test_refresh_and_verify_print_their_reports(capsys: pytest.CaptureFixture[str]) -> None:
    desk = Desk()
    assert run(desk, "refresh", "--force", "--json") == 0
    assert run(desk, "refresh") == 0
    assert run(desk, "verify", "--json") == 0
    out = capsys.readouterr().out
    assert out.startswith('{"read":15000,"skipped":{"duplicate":2}}\n')
    assert out.endswith('{"files":3}\n')
    assert " ".join(out.split("\n", 1)[1].split()).startswith("read 15,000 skipped duplicate 2")
    assert desk.forced == [True, False]


def test_synth_writes_a_corpus_and_says_what_comes_next(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(Desk(), "synth", "made", "--messages", "1000", "--seed", "3") == 0
    out = capsys.readouterr().out
    assert out.endswith("next: hayfork --config made/hayfork.toml refresh\n")
    assert (tmp_path / "made" / "hayfork.toml").is_file()
    assert run(Desk(), "synth", "made", "--messages", "1000", "--json") == 2
    assert json.loads(capsys.readouterr().err)["code"] == "folder_in_use"


def test_serve_says_when_its_port_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert run(Desk(), "serve", "--port", str(port)) == 2
    assert capsys.readouterr().err.startswith(f"cannot_listen: cannot listen on '127.0.0.1' port {port}: ")


CONFIG = """
[corpus]
root = "data"
[server]
port = {port}
[[sources]]
format = "slack"
location = "export"
[[sources]]
format = "csv"
location = "rows.csv"
[[sources]]
format = "csv"
location = "missing.csv"
[[sources]]
format = "slack"
location = "gone.zip"
[[sources]]
format = "jsonl"
location = "s3://bucket/rows.jsonl"
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def examined(out: str) -> dict[str, tuple[bool, str, str]]:
    return {f["what"]: (f["ok"], f["state"], f.get("advice", "")) for f in json.loads(out)}


def test_doctor_finds_everything_well(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    port = free_port()
    (tmp_path / "export").mkdir()
    text = CONFIG.format(port=port).split('[[sources]]\nformat = "csv"', 1)[0]
    (tmp_path / "hayfork.toml").write_text(text, "utf-8")
    desk = Desk({"found": {"messages": 13977}, "searched": {"as_of": "2016-11-30T04:00:00Z"}})
    assert run(desk, "doctor", "--json") == 0
    found = examined(capsys.readouterr().out)
    assert found.pop("disk")[0]
    assert found.pop("duckdb")[0]
    ok, state, advice = found.pop("snapshot")
    assert (ok, state.split(", ")[0], advice) == (
        True,
        "13,977 messages",
        "run hayfork refresh if the sources have changed",
    )
    assert found == {
        "configuration": (True, str(tmp_path / "hayfork.toml"), ""),
        "source export": (True, "slack, a folder", ""),
        "files of the snapshot": (True, "as the manifest says", ""),
        "port": (True, f"{port} of 127.0.0.1 is free", ""),
    }


def test_doctor_says_what_to_do_about_each_thing_that_is_not_well(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "rows.csv").write_text("a\n", "utf-8")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        (tmp_path / "hayfork.toml").write_text(CONFIG.format(port=port), "utf-8")
        desk = Desk(error=NotFound("no_snapshot", "no snapshot yet", next_step="run hayfork refresh"))
        assert run(desk, "doctor") == 1
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    for line in (
        "not well source export does not exist; mend its location",
        "ok source rows.csv csv, 1 file",
        "not well source missing.csv no csv file at 'missing.csv'; give a file, a folder or a glob that exists",
        "not well source gone.zip does not exist; mend its location",
        "ok source rows.jsonl not on this machine: not looked at",
        "not well snapshot no snapshot yet; run hayfork refresh",
        f"not well port {port} of 127.0.0.1 is taken; set server.port, or stop what listens there",
    ):
        assert line in lines


def test_doctor_without_a_configuration_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(Desk({"found": {"messages": 0}}), "doctor", "--quick", "--json") == 1
    found = examined(capsys.readouterr().out)
    assert found["configuration"] == (
        False,
        "none found",
        "write a hayfork.toml here, or name one by --config",
    )
    assert found["sources"] == (False, "none", "add a [[sources]] block with format and location")
    assert "files of the snapshot" not in found


def test_doctor_stops_at_a_broken_configuration(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "hayfork.toml").write_text("[copus]", "utf-8")
    assert run(Desk(), "doctor", "--json") == 1
    found = examined(capsys.readouterr().out)
    assert list(found) == ["duckdb", "configuration"]
    assert found["configuration"] == (False, "no setting is called 'copus'", "use corpus")


def test_doctor_names_a_snapshot_that_is_not_what_its_manifest_says(
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Damaged(Desk):
        def corpus(self, caller: Caller) -> dict[str, Any]:
            assert caller == LOCAL
            return {"found": {"messages": 1}}

    damaged = Damaged(error=BrokenSnapshot("snapshot_broken", "text differs", next_step="refresh"))
    assert run(damaged, "doctor", "--json") == 1
    found = examined(capsys.readouterr().out)
    assert found["files of the snapshot"] == (False, "text differs", "refresh")


def test_the_program_runs_as_a_module_and_tells_its_version() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "handler.cli", "--version"], capture_output=True, text=True, check=True
    )
    assert (done.stdout.split()[0], done.stderr) == ("hayfork", "")


def test_a_reader_that_has_read_enough_is_no_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed:
        done = subprocess.run(
            [sys.executable, "-m", "handler.cli", "--help"],
            stdout=closed,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.stderr == ""


FABRIC = """
[corpus]
root = "data"
[server]
port = {port}
[[sources]]
format = "slack"
location = "{location}"
[sources.roles]
client = {{ email_domain = ["partner.example"] }}
teammate = {{ email_domain = ["fabric.example"] }}
"""


def test_a_real_export_is_refreshed_counted_read_and_examined(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    fixtures = Path(__file__).parents[1] / "fixtures"
    config = tmp_path / "fabric.toml"
    text = FABRIC.format(location=fixtures / "slack-export-fabric.zip", port=free_port())
    config.write_text(text, "utf-8")

    def told(*arguments: str) -> Any:
        assert main(["--config", str(config), *arguments, "--json"]) == 0
        out, err = capsys.readouterr()
        assert (out.count("\n"), err) == (1, "")
        return json.loads(out)

    report = told("refresh")
    assert (report["published"], report["messages"]) == (True, 15_000)
    assert told("refresh")["published"] is False
    assert told("count")["found"]["messages"] == 13_977
    case = json.loads((fixtures / "cases-fabric.jsonl").read_text("utf-8").splitlines()[0])
    for extra in ((), ("--brute",)):
        found = told("count", case["query"], *extra)["found"]
        assert {n: found[n] for n in ("messages", "threads", "conversations")} == {
            n: case[n] for n in ("messages", "threads", "conversations")
        }
    asked = ("count", "docker compose", "--from-role", "client", "--after", "2016-09-01")
    assert told(*asked)["found"]["messages"] == 23
    page = told("search", "docker.sock", "--limit", "1")
    more = told("unseen", "docker.sock", "--limit", "1", "--session", page["session"])
    (shown,), (unseen,) = page["messages"], more["messages"]
    assert shown["id"] != unseen["id"]
    talk = told("thread", shown["id"], "--session", page["session"])
    assert shown["id"] in [message["id"] for message in talk["messages"]]
    exported = told("export", "docker.sock")
    assert len(Path(exported["link"]).read_bytes().splitlines()) == exported["rows"] == 11
    assert main(["--config", str(config), "verify"]) == 0
    capsys.readouterr()
    assert [finding for finding in told("doctor") if not finding["ok"]] == []


def test_on_a_terminal_each_part_has_its_own_colour() -> None:
    console = Console(force_terminal=True, color_system="standard", no_color=False, highlight=False, width=160)
    with console.capture() as captured:
        show_answer(console, SEARCH)
    out = captured.get()
    assert "\x1b[2msearched \x1b[0m\x1b[1meverything\x1b[0m" in out
    assert "\x1b[2mfound \x1b[0m\x1b[1;32m2 messages\x1b[0m" in out
    assert "\x1b[1;30;43mдокументаци\x1b[0mя?" in out
    assert "\x1b[32mclient" in out

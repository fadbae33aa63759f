"""Hostile strings in every parameter that takes text: nothing breaks or leaks, nor do they reach SQL or a log."""

import ast
import json
import logging
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest

import handler
from engine.errors import BrokenSnapshot, EngineError, Unavailable
from engine.sight import EVERYTHING, Caller
from handler.arguments import parse_arguments
from handler.auth.api_key import ApiKeys, mint_key
from handler.auth.gate import Gate, caller_of
from handler.auth.policies import Policies
from handler.faults import tell
from handler.http import HttpOptions, build_http
from handler.lambda_invoke import answer
from handler.lambda_mcp import Container, behind_doors
from handler.local_app import LocalApp
from handler.settings import Settings
from handler.settings_table import CorpusSettings, PolicySettings, SignalSettings, SourceSettings
from handler.signals import Signals
from handler.wiring import build_app, build_counted_app, build_policies
from infra.sqlite_keys import SqliteKeys
from tests.access.naughty import MARK, NAUGHTY, hostile_calls
from tests.depth import DEEP
from tests.handler.auth.events import event, tools_call
from tests.handler.running import exchange, running

NOON = 1_480_507_200_000_000
REQUIRED: dict[str, dict[str, Any]] = {"open_thread": {"message": "room:1"}, "export_messages": {"query": "docker"}}
DISTINCT_CHARS = 8
"""A shorter string stands in many a harmless line."""

EACH = 3


def settings_in(folder: Path) -> Settings:
    """A corpus whose texts bear a mark; what is hostile stands in some of them, as people write it."""
    rows = [
        {
            "conversation": "room" if n % 2 else "other",
            "native_id": str(n),
            "sent_at": f"2016-09-{1 + n % 28:02}T10:00:00Z",
            "author": f"author {n % 3}",
            "body": f"docker text-mark {n} {NAUGHTY[n * 7 % len(NAUGHTY)]}",
        }
        for n in range(60)
    ]
    table = folder / "messages.jsonl"
    table.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return Settings(
        corpus=CorpusSettings(root=str(folder / "corpus")),
        sources=(SourceSettings(format="jsonl", location=str(table), name="messages"),),
        signals=SignalSettings(service="hostile"),
    )


@dataclass(frozen=True, slots=True)
class Leaks:
    """What no answer and no log may hold."""

    words: tuple[str, ...]

    def check(self, told: str, *, failed: bool, given: object) -> None:
        """Nothing of the inside; and of what people wrote nothing where a call failed."""
        assert "internal error" not in told, given
        found = [word for word in (*self.words, *(["text-mark"] if failed else [])) if word in told]
        assert found == [], given


def leaks_of(folder: Path, *more: str) -> Leaks:
    root = str(Path(handler.__file__).parents[1])
    return Leaks(
        (
            str(folder),
            root,
            "Traceback",
            'File "',
            "site-packages",
            "Parser Error",
            "IO Error",
            "sqlite3.",
            "key-mark",
            *more,
        )
    )


class Noting:
    """A connection to a DuckDB that notes itself what it executes, read before it is closed."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, noted: list[str]) -> None:
        self._connection = connection
        self._noted = noted
        connection.execute("CALL enable_logging('QueryLog')")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def close(self) -> None:
        ask = "SELECT message FROM duckdb_logs WHERE type = 'QueryLog'"
        self._noted += [text for (text,) in self._connection.execute(ask).fetchall()]
        self._connection.close()


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The text of every statement run on any DuckDB there will be, once that is closed."""
    noted: list[str] = []
    plain = duckdb.connect
    monkeypatch.setattr(duckdb, "connect", lambda *given, **named: Noting(plain(*given, **named), noted))
    return noted


def assert_no_input(told: str, inputs: set[str]) -> None:
    assert MARK not in told
    assert [text for text in inputs if len(text) >= DISTINCT_CHARS and text in told] == []


@pytest.mark.slow
def test_over_http_nothing_breaks_leaks_or_reaches_sql_as_text(
    tmp_path: Path, statements: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    app = build_app(settings_in(tmp_path), lambda: NOON)
    app.refresh()
    leaks = leaks_of(tmp_path)
    inputs: set[str] = set()
    with caplog.at_level(logging.INFO), running(app) as port:
        for tool, parameter, value in hostile_calls(EACH):
            inputs.add(value)
            arguments = {**REQUIRED.get(tool, {}), parameter: value}
            told = exchange(port, "tools/call", {"name": tool, "arguments": arguments}).json
            assert "result" in told, (tool, parameter, value)
            result = told["result"]
            text = result["content"][0]["text"]
            if tool == "export_messages" and not result["isError"]:
                text = "\n".join(line for line in text.split("\n") if not line.startswith("link: "))
            leaks.check(text, failed=result["isError"], given=(tool, parameter, value))
        for value in NAUGHTY[:: 1 if DEEP else 60]:
            for method, params in (
                ("tools/call", {"name": value, "arguments": {}}),
                ("resources/read", {"uri": value}),
                ("prompts/get", {"name": "answer", "arguments": {"question": value}}),
            ):
                body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
                reply = exchange(port, method, version="2025-11-25", body=body)
                leaks.check(reply.body.decode(), failed=True, given=(method, value))
    scanned = sorted(inputs)[:: 1 if DEEP else 4]
    for value in scanned:
        # What the index answers without a statement, a scan asks the database.
        with suppress(EngineError):
            app.call(
                parse_arguments("count_messages", {"query": value}, app.limits), Caller("ann", EVERYTHING), brute=True
            )
    app.close()
    assert sum("contains(" in statement for statement in statements) > len(scanned) / 2, "statements are noted"
    assert any(statement.startswith("COPY") for statement in statements), "those of exports too"
    assert_no_input("\n".join(statements), inputs)
    assert_no_input(caplog.text, inputs)
    assert "text-mark" not in caplog.text


@pytest.mark.slow
def test_through_the_lambda_entries_nothing_breaks_leaks_or_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "key-mark")
    # The root logger writes to standard output, as the runtime makes it.
    monkeypatch.setattr(logging.getLogger(), "handlers", [logging.StreamHandler(sys.stdout)])
    monkeypatch.setattr(logging.getLogger(), "level", logging.INFO)
    settings = settings_in(tmp_path)
    build_app(settings, lambda: NOON).refresh()
    signals = Signals(settings.signals, lambda: NOON)
    signals.install()
    app = build_counted_app(settings, lambda: NOON, signals.called)
    store = SqliteKeys(tmp_path / "keys.sqlite")
    key, credential = mint_key("ann", NOON)
    assert store.add(key)
    gate = Gate(Policies([], settings.corpus.zone, {}), ApiKeys(store, lambda: NOON))
    options = HttpOptions(allowed_hosts=("*",))
    http = build_http(app, options, caller_of=caller_of)
    made = Container(lambda _: behind_doors(http, gate, lambda *_: None, options))
    policies = build_policies(settings.model_copy(update={"policies": (PolicySettings(callers=("invoke:*",)),)}))
    leaks = leaks_of(tmp_path, credential)
    inputs: set[str] = set()
    made.start("https://hayfork.example")
    for tool, parameter, value in hostile_calls(EACH - 1):
        inputs.add(value)
        arguments = {**REQUIRED.get(tool, {}), parameter: value}
        answered = made.answer(event(tools_call(tool, arguments), {"x-api-key": credential}), None)
        assert answered["statusCode"] == 200
        result = json.loads(answered["body"])["result"]
        if tool != "export_messages" or result["isError"]:
            leaks.check(result["content"][0]["text"], failed=result["isError"], given=(tool, parameter, value))
        try:
            told, failed = answer(app, {"tool": tool, "arguments": arguments, "caller": value or "x"}, policies), False
            told.pop("link", None)
        except EngineError as error:
            told, failed = error.to_object(), True
        leaks.check(json.dumps(told, ensure_ascii=False), failed=failed, given=(tool, parameter, value))
    made.stop()
    logged = capfd.readouterr().out
    assert logged.count('"message":"call"') > len(inputs), "calls are logged"
    assert_no_input(logged, inputs)
    for word in (*leaks.words, "text-mark"):
        assert word not in logged


def test_headers_of_a_request_are_answered_and_not_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    app = build_app(settings_in(tmp_path), lambda: NOON)
    plain = [text for text in NAUGHTY if text.isascii() and text.isprintable() and len(text) >= DISTINCT_CHARS][::9]
    with caplog.at_level(logging.INFO), running(app) as port:
        for value in plain:
            for name in (
                "host",
                "origin",
                "mcp-protocol-version",
                "mcp-method",
                "mcp-name",
                "mcp-session-id",
                "accept",
            ):
                told = exchange(port, "tools/list", headers={name: value})
                leaks_of(tmp_path).check(told.body.decode(), failed=True, given=(name, value))
            assert exchange(port, "tools/list", headers={"x-api-key": value}).status == 200
    assert_no_input(caplog.text, set(plain))


OUTSIDE = [
    "SELECT * FROM read_text('{outside}')",
    "SELECT * FROM read_blob('{outside}')",
    "SELECT * FROM read_csv('{outside}')",
    "SELECT * FROM read_json('{outside}')",
    "SELECT * FROM read_parquet('{outside}')",
    "SELECT * FROM '{outside}'",
    "SELECT * FROM glob('{folder}/*')",
    "SELECT * FROM read_text('{folder}/corpus/../secret.csv')",
    "SELECT * FROM read_csv('http://127.0.0.1:9/x.csv')",
    "SELECT * FROM read_parquet('s3://bucket/x.parquet')",
    "CREATE TABLE t (a VARCHAR); COPY t FROM '{outside}'",
    "COPY (SELECT 1) TO '{folder}/owned.csv'",
    "EXPORT DATABASE '{folder}/owned'",
    "IMPORT DATABASE '{folder}'",
    "ATTACH '{folder}/owned.duckdb'",
    "ATTACH '{folder}/corpus/seen.sqlite' (TYPE sqlite)",
    "INSTALL httpfs",
    "INSTALL httpfs FROM community",
    "FORCE INSTALL httpfs FROM '{folder}'",
    "LOAD httpfs",
    "LOAD '{folder}/x.duckdb_extension'",
    "SET enable_external_access = true",
    "SET allowed_directories = ['/']",
    "SET allowed_paths = ['{outside}']",
    "SET lock_configuration = false",
    "RESET enable_external_access",
    "SET autoinstall_known_extensions = true",
    "SET memory_limit = '99GB'",
    "SET temp_directory = '{folder}'",
    "PRAGMA temp_directory = '{folder}'",
    "CREATE PERSISTENT SECRET s (TYPE s3, KEY_ID 'a', SECRET 'b')",
]


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> tuple[LocalApp, Path]:
    """An application as it is wired, with a snapshot, and its folder."""
    folder = tmp_path_factory.mktemp("locked")
    (folder / "secret.csv").write_text("a\nsecret\n")
    app = build_app(settings_in(folder), lambda: NOON)
    app.refresh()
    return app, folder


@pytest.mark.parametrize("sql", OUTSIDE)
def test_the_connection_that_answers_reads_and_writes_nothing_outside_its_snapshots(
    reader: tuple[LocalApp, Path], sql: str
) -> None:
    app, folder = reader
    database = app._parts.reader.view(EVERYTHING, NOON).corpus.database
    before = sorted(folder.iterdir())
    with pytest.raises((BrokenSnapshot, Unavailable, duckdb.Error)):
        database.rows(sql.format(outside=folder / "secret.csv", folder=folder))
    assert sorted(folder.iterdir()) == before
    request = parse_arguments("count_messages", {"query": "docker"}, app.limits)
    assert app.call(request, Caller("ann", EVERYTHING)).object["found"]["messages"] == 60


def test_a_refusal_of_the_database_is_told_without_its_words(reader: tuple[LocalApp, Path]) -> None:
    app, folder = reader
    database = app._parts.reader.view(EVERYTHING, NOON).corpus.database
    with pytest.raises(BrokenSnapshot) as raised:
        database.rows(f"SELECT * FROM read_text('{folder / 'secret.csv'}')")
    assert str(folder) not in tell(raised.value)


INFRA = Path(handler.__file__).parents[1] / "infra"


@pytest.mark.parametrize("file", sorted(path.name for path in INFRA.glob("sqlite*.py")))
def test_no_argument_stands_in_a_statement_of_the_stores(file: str) -> None:
    """The embedded stores run what stands in the module: nothing that a function is given is written into it."""
    module = ast.parse((INFRA / file).read_text("utf-8"))
    met = 0
    for function in (node for node in ast.walk(module) if isinstance(node, ast.FunctionDef)):
        given = {argument.arg for argument in (*function.args.args, *function.args.kwonlyargs)}
        for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
            if isinstance(call.func, ast.Attribute) and call.func.attr.startswith("execute"):
                met += 1
                sql = call.args[0]
                assert isinstance(sql, ast.Constant | ast.Name | ast.JoinedStr | ast.IfExp), ast.unparse(sql)
                written = [part for part in ast.walk(sql) if isinstance(part, ast.FormattedValue)]
                names = {n.id for part in written for n in ast.walk(part) if isinstance(n, ast.Name)}
                assert names & given == set(), ast.unparse(sql)
    assert met

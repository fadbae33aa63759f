"""What goes wrong is told without the inside: no stack trace, path, key, query or text, in no answer and no log."""

import io
import json
import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import handler
from engine.requests import Request
from engine.sight import Caller
from handler.app import App
from handler.auth.api_key import ApiKeys, mint_key
from handler.auth.gate import Gate, caller_of
from handler.auth.policies import Policies
from handler.http import HttpOptions, build_http
from handler.lambda_mcp import Container, behind_doors
from handler.settings import Settings
from handler.settings_table import CorpusSettings, SignalSettings, SourceSettings
from handler.signals import Signals
from handler.wiring import build_app, build_counted_app
from infra.sqlite_keys import SqliteKeys
from tests.handler.auth.events import event, tools_call

NOON = 1_480_507_200_000_000
MARKS = ("text-mark", "topic-mark", "link-mark", "query-mark", "key-mark", "session-mark")
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("count_messages", {"query": "docker OR query-mark"}),
    ("count_messages", {"query": '"->query-mark"', "by": ["author"]}),
    ("search_messages", {"query": "docker OR query-mark", "session": "session-mark-0123456789"}),
    ("search_messages", {"query": "docker OR query-mark"}),
    ("unseen_messages", {"query": "docker OR query-mark"}),
    ("open_thread", {"message": ["room:1"]}),
    ("export_messages", {"query": "docker OR query-mark"}),
    ("search_messages", {"query": "(query-mark OR"}),
]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of 60 marked messages, refreshed, to be copied and broken."""
    folder = tmp_path_factory.mktemp("built")
    rows = [
        {
            "conversation": "room",
            "native_id": str(n),
            "sent_at": f"2016-09-{1 + n % 28:02}T10:00:00Z",
            "author": f"author {n % 3}",
            "topic": f"topic-mark {n}",
            "body": f"docker text-mark {n}",
            "link": f"https://link-mark.example/{n}",
        }
        for n in range(60)
    ]
    (folder / "messages.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    build_app(settings_in(folder), lambda: NOON).refresh()
    return folder


def settings_in(folder: Path) -> Settings:
    return Settings(
        corpus=CorpusSettings(root=str(folder / "corpus")),
        sources=(SourceSettings(format="jsonl", location=str(folder / "messages.jsonl"), name="messages"),),
        # A logger keeps its stream for as long as its service has a name.
        signals=SignalSettings(service=f"of-{folder.parent.name}-{folder.name}"[-80:]),
    )


def files_of(corpus: Path, name: str) -> list[Path]:
    return [path for path in corpus.rglob("*") if path.is_file() and path.name.startswith(name)]


def _nothing(corpus: Path) -> None:
    assert corpus.exists()


def _no_snapshot(corpus: Path) -> None:
    (corpus / "CURRENT").unlink()


def _pointer_to_nowhere(corpus: Path) -> None:
    (corpus / "CURRENT").write_text('{"snapshot": "../../text-mark"}')


def _pointer_of_garbage(corpus: Path) -> None:
    (corpus / "CURRENT").write_text("text-mark {")


def _manifest_of_garbage(corpus: Path) -> None:
    for path in files_of(corpus, "manifest"):
        path.write_text('{"text-mark": [')


def _damaged(name: str) -> Callable[[Path], None]:
    def damage(corpus: Path) -> None:
        paths = files_of(corpus, name)
        assert paths, name
        for path in paths:
            size = path.stat().st_size
            path.write_bytes(b"text-mark" * (size // 9) + b"x" * (size % 9))

    damage.__name__ = f"damaged {name}"
    return damage


def _no_files(corpus: Path) -> None:
    for path in files_of(corpus, ""):
        if path.suffix == ".parquet":
            path.unlink()


def _sessions_of_garbage(corpus: Path) -> None:
    for path in files_of(corpus, "seen.sqlite"):
        path.unlink()
    (corpus / "seen.sqlite").write_bytes(b"text-mark" * 1_000)


def _exports_in_the_way(corpus: Path) -> None:
    shutil.rmtree(corpus / "exports", ignore_errors=True)
    (corpus / "exports").write_text("text-mark")


BROKEN = [
    _nothing, _no_snapshot, _pointer_to_nowhere, _pointer_of_garbage, _manifest_of_garbage, _damaged("text"),
    _damaged("terms"), _damaged("postings"), _damaged("narrow"), _damaged("folded"), _no_files, _sessions_of_garbage,
    _exports_in_the_way,
]  # fmt: skip


class Faulty:
    """An application all of whose calls fail with words that hold what must not be told."""

    def __init__(self, inner: App) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def call(self, request: Request, caller: Caller, *, brute: bool = False) -> Any:
        del caller, brute
        raise KeyError("key-mark in /text-mark/query-mark") from ValueError(f"text-mark of {request}")


class Lambda:
    """The Lambda entry over a corpus, its logs as the runtime writes them."""

    def __init__(self, folder: Path, change: Callable[[App], App] = lambda app: app) -> None:
        settings = settings_in(folder)
        signals = Signals(settings.signals, lambda: NOON)
        signals.install()
        store = SqliteKeys(folder / "keys.sqlite")
        key, self.credential = mint_key("ann", NOON)
        assert store.add(key)
        gate = Gate(Policies([], settings.corpus.zone, {}), ApiKeys(store, lambda: NOON))
        options = HttpOptions(allowed_hosts=("*",))
        http = build_http(
            change(build_counted_app(settings, lambda: NOON, signals.called)), options, caller_of=caller_of
        )
        self.container = Container(lambda _: behind_doors(http, gate, lambda *_: None, options))
        self.container.start("https://hayfork.example")

    def ask(self, tool: str, arguments: dict[str, Any]) -> tuple[str, bool]:
        """The answer as it leaves, and whether it is an error."""
        told = self.container.answer(event(tools_call(tool, arguments), {"x-api-key": self.credential}), None)
        body: str = told["body"]
        return body, bool(json.loads(body)["result"]["isError"])


@pytest.fixture
def logs(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What every logger of the process writes, at the level of the runtime's and below."""
    stream = io.StringIO()
    monkeypatch.setattr(logging.getLogger(), "handlers", [logging.StreamHandler(stream)])
    monkeypatch.setattr(logging.getLogger(), "level", logging.INFO)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "key-mark")
    return stream


def inside(folder: Path) -> tuple[str, ...]:
    return (str(folder), str(Path(handler.__file__).parents[1]), "Traceback", 'File "', "site-packages")


@pytest.mark.parametrize("damage", BROKEN, ids=lambda damage: damage.__name__.strip("_"))
def test_whatever_is_broken_is_told_without_the_inside(
    built: Path, tmp_path: Path, damage: Callable[[Path], None], logs: io.StringIO, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "broken"
    shutil.copytree(built, folder)
    damage(folder / "corpus")
    entry = Lambda(folder)
    failed = 0
    for tool, arguments in CALLS:
        body, is_error = entry.ask(tool, arguments)
        failed += is_error
        if is_error:
            assert [mark for mark in MARKS if mark in body.replace("session-mark-0123456789", "")] == [] or (
                "bad_query" in body and "text-mark" not in body
            )
            assert "internal error" not in body
        if is_error or tool != "export_messages":
            assert [word for word in inside(folder) if word in body] == []
    entry.container.stop()
    assert failed >= (1 if damage is _nothing else 2)
    logged = "".join([logs.getvalue(), *capfd.readouterr()])
    assert [word for word in (*inside(folder), *MARKS, entry.credential) if word in logged] == []
    assert '"outcome"' in logged


def test_a_fault_of_ours_is_a_reference_in_the_answer_and_places_in_the_log(
    built: Path, logs: io.StringIO, capfd: pytest.CaptureFixture[str]
) -> None:
    entry = Lambda(built, Faulty)
    for tool, arguments in CALLS[:-1]:
        body, is_error = entry.ask(tool, arguments)
        assert is_error
        text: str = json.loads(body)["result"]["content"][0]["text"]
        assert text.startswith("internal error, reference ")
        assert len(text) == len("internal error, reference 7f3a9c01")
    entry.container.stop()
    logged = "".join([logs.getvalue(), *capfd.readouterr()])
    assert logged.count("builtins.KeyError at ") == len(CALLS) - 1
    assert [word for word in (*inside(built), *MARKS) if word in logged] == []

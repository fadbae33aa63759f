"""The Lambda entries: one never starts open, the other applies the policy of the caller it is told."""

from datetime import UTC
from pathlib import Path
from typing import Any

import pytest

from engine.errors import BadInput, EngineError, Refused, Unavailable
from engine.export import Job, begin, resume, sight_of
from engine.ports import Export
from engine.requests import Criteria, ExportRequest
from engine.sight import Caller, Sight
from handler import lambda_mcp
from handler.auth.policies import Policies
from handler.lambda_invoke import answer
from handler.local_app import LocalApp
from handler.settings import load_settings
from handler.settings_table import PolicySettings
from tests.handler.wired_app import wired_app

NARROW = Sight(allow=("support",), roles=("unknown",))


@pytest.fixture
def app(tmp_path: Path) -> LocalApp:
    made = wired_app(tmp_path)
    assert isinstance(made, LocalApp)
    return made


@pytest.mark.parametrize("modes", ["none", None])
def test_a_function_never_starts_open_to_the_world(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, modes: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HAYFORK_CORPUS_ROOT", "corpus")
    if modes is not None:
        monkeypatch.setenv("HAYFORK_AUTH_MODES", modes)
    with pytest.raises(BadInput, match="open to the world"):
        lambda_mcp._container.start("https://hayfork.example")


@pytest.mark.parametrize("modes", ["none,api_key", "api_key,nothing", ","])
def test_modes_that_make_no_sense_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, modes: str) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HAYFORK_AUTH_MODES", modes)
    with pytest.raises(BadInput) as error:
        load_settings()
    assert error.value.message.startswith("auth.modes")


def policies(*blocks: dict[str, Any]) -> Policies:
    return Policies([PolicySettings(**block) for block in blocks], UTC, {})


def counted(app: LocalApp, caller: str, known: Policies) -> int:
    found: int = answer(app, {"tool": "count_messages", "caller": caller}, known)["found"]["messages"]
    return found


def test_the_payloads_caller_is_given_what_their_policy_says(app: LocalApp) -> None:
    known = policies({"callers": ["invoke:billing"], "allow": ["support"]}, {"callers": ["invoke:all*"]})
    assert (counted(app, "billing", known), counted(app, "all of it", known)) == (80, 120)
    with pytest.raises(Refused, match="no policy"):
        counted(app, "stranger", known)
    assert counted(app, "stranger", policies()) == 120


def test_a_caller_cannot_be_named_into_another_kind(app: LocalApp) -> None:
    known = policies({"callers": ["key:*", "iam:*"]}, {"callers": ["invoke:*"], "allow": ["support"]})
    assert counted(app, "key:admin", known) == 80


def test_a_tool_that_the_policy_does_not_give_is_unknown(app: LocalApp) -> None:
    known = policies({"callers": ["invoke:*"], "tools": ["count_messages"]})

    def told(tool: str) -> str:
        with pytest.raises(EngineError) as error:
            answer(app, {"tool": tool, "caller": "x"}, known)
        return error.value.to_text()

    assert told("export_messages").replace("export_messages", "exprt_messages") == told("exprt_messages")
    assert told("export_messages") == "unknown_tool: no tool is called 'export_messages'; use count_messages"


def begun(app: LocalApp, sight: Sight) -> Export:
    """An export that its first process has not written."""
    parts = app._parts
    job = begin(
        ExportRequest(Criteria(query="docker")), app._call(Caller("key:x", sight)), parts.exports, parts.database
    )
    assert isinstance(job, Job)
    return job.export


def test_a_long_export_is_finished_with_the_sight_it_was_asked_under(app: LocalApp) -> None:
    export = begun(app, NARROW)
    assert sight_of(export) == NARROW
    assert answer(app, {"export": export.export_id}) == {"export": export.export_id, "state": "done", "rows": 80}
    written = Path(app._parts.exports.link(export)).read_text("utf-8")
    assert (written.count("\n"), "общий" in written) == (80, False)


def test_a_record_that_does_not_say_what_was_in_sight_is_not_gone_on_with(app: LocalApp) -> None:
    export = begun(app, NARROW)
    for request in ("", "{}", '{"sight": null}'):
        with pytest.raises(Unavailable):
            sight_of(Export(export.export_id, "key:x", "jsonl", "running", 0, 1, request=request))


def test_an_export_that_is_revoked_while_it_is_written_does_not_come_back(app: LocalApp) -> None:
    parts, export = app._parts, begun(app, NARROW)
    job = resume(export, app._call(Caller("key:x", NARROW)), parts.exports, parts.database)
    parts.exports.revoke(export.export_id)
    job.run()
    assert parts.exports.get(export.export_id) is None
    assert not Path(parts.exports.link(export)).exists()

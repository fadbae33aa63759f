"""Rolling back, and checking a deployment from outside, through the command line."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from engine.errors import BadInput
from handler.auth.api_key import ApiKeys, mint_key
from handler.auth.gate import Gate
from handler.auth.policies import Policies
from handler.cli import main
from handler.cli.doctor_remote import _Place, _place, _proof, _signed, examine_url
from handler.wiring import system_clock
from infra.sqlite_keys import SqliteKeys
from tests.handler.auth.events import guarded
from tests.handler.running import running
from tests.handler.small_app import SmallApp
from tests.handler.wired_app import wired_app

CONFIG = """
[corpus]
root = "root"
[retention]
keep_snapshots = 10
[[sources]]
format = "csv"
location = "messages.csv"
"""
HEAD = "conversation,native_id,sent_at,author,body\n"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "hayfork.toml"
    path.write_text(CONFIG, "utf-8")
    (tmp_path / "messages.csv").write_text(f"{HEAD}a,1,2026-01-01T00:00:00Z,ada,hello there\n", "utf-8")
    return path


def add_message(config: Path, number: int) -> None:
    with (config.parent / "messages.csv").open("a", encoding="utf-8") as file:
        file.write(f"a,{number},2026-01-01T00:00:{number:02}Z,ada,hello again\n")


def run(capsys: pytest.CaptureFixture[str], config: Path, *arguments: str) -> Any:
    code = main(["--config", str(config), *arguments, "--json"])
    captured = capsys.readouterr()
    assert code == 0, captured.err
    return json.loads(captured.out)


def test_a_pinned_snapshot_answers_until_it_is_let_go(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = run(capsys, config, "refresh")["snapshot"]
    add_message(config, 2)
    second = run(capsys, config, "refresh")["snapshot"]
    assert run(capsys, config, "snapshots", "pin", first) == {"snapshot": first, "pinned": True, "before": second}
    assert run(capsys, config, "count")["found"]["messages"] == 1
    add_message(config, 3)
    report = run(capsys, config, "refresh")
    third = report["snapshot"]
    assert (report["published"], report["pinned"]) == (True, first)
    assert run(capsys, config, "count")["found"]["messages"] == 1
    again = run(capsys, config, "refresh")
    assert again == {"snapshot": third, "published": False, "why": "no source changed", "pinned": first}
    listed = run(capsys, config, "snapshots", "list")
    assert [(each["snapshot"], each["current"], each["pinned"], each["messages"]) for each in listed] == [
        (first, True, True, 1),
        (second, False, False, 2),
        (third, False, False, 3),
    ]
    assert run(capsys, config, "snapshots", "unpin") == {"snapshot": third, "pinned": False, "before": first}
    assert run(capsys, config, "count")["found"]["messages"] == 3


def test_the_current_snapshot_is_pinned_without_naming_it_and_a_lost_pointer_is_set_again(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--config", str(config), "snapshots", "list"]) == 0
    assert capsys.readouterr().out == "none yet; run hayfork refresh\n"
    for command in ("pin", "unpin"):
        assert main(["--config", str(config), "snapshots", command]) == 1
        assert capsys.readouterr().err.startswith("no_snapshot: ")
    only = run(capsys, config, "refresh")["snapshot"]
    assert run(capsys, config, "snapshots", "pin")["snapshot"] == only
    assert main(["--config", str(config), "snapshots", "list"]) == 0
    line = capsys.readouterr().out
    assert line.startswith(f"* {only}  20")
    assert line.endswith("bytes  pinned\n")
    (config.parent / "root" / "CURRENT").unlink()
    assert run(capsys, config, "snapshots", "pin", only) == {"snapshot": only, "pinned": True, "before": None}


def test_a_snapshot_that_lacks_a_file_is_named_and_not_pinned(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    only = run(capsys, config, "refresh")["snapshot"]
    next((config.parent / "root" / "snapshots" / only).rglob("text.parquet")).unlink()
    listed = run(capsys, config, "snapshots", "list")
    assert "missing" in listed[0]["state"]
    assert main(["--config", str(config), "snapshots", "pin", only]) == 1
    assert capsys.readouterr().err.startswith("snapshot_broken: 1 of ")


def states(findings: list[dict[str, Any]]) -> dict[str, bool]:
    return {each["what"]: each["ok"] for each in findings}


def test_a_server_in_order_is_found_well_in_both_eras(
    config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(config.parent)
    run(capsys, config, "refresh")
    from handler.settings import load_settings  # noqa: PLC0415 - after the working folder is set
    from handler.wiring import build_app  # noqa: PLC0415 - likewise

    with running(build_app(load_settings(config), system_clock)) as port:
        assert main(["doctor", f"http://127.0.0.1:{port}", "--query", "hello", "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert main(["doctor", f"http://127.0.0.1:{port}/mcp", "--query", "nothing of the kind", "--json"]) == 1
        wrong = json.loads(capsys.readouterr().out)
    assert states(found) == dict.fromkeys(
        ("reachability", "clock", "auth", "protocol 2025-11-25", "protocol 2026-07-28", "snapshot", "known query"), True
    )
    assert states(wrong)["known query"] is False
    assert [each["state"] for each in found if each["what"].startswith("protocol")] == ["5 tools", "5 tools"]


def test_an_old_snapshot_and_a_silent_server_are_named(tmp_path: Path) -> None:
    with running(wired_app(tmp_path)) as port:
        address = f"http://127.0.0.1:{port}/mcp"
        found = {each.what: each for each in examine_url(address)}
    assert not found["snapshot"].ok
    assert found["known query"].ok
    (silent,) = examine_url(address)
    assert (silent.what, silent.ok) == ("reachability", False)


@pytest.mark.parametrize("by", ["option", "variable"])
def test_a_server_that_asks_for_a_key_is_looked_at_with_one_that_is_never_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    app, store = wired_app(tmp_path), SqliteKeys(tmp_path / "keys.sqlite")
    key, credential = mint_key("doctor", system_clock())
    assert store.add(key)
    gate = Gate(Policies([], UTC, {}), ApiKeys(store, system_clock))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    line = ["doctor", f"http://127.0.0.1:{port}", "--query", "docker", "--json"]
    with guarded(app, gate, port):
        refused = main(line), states(json.loads(capsys.readouterr().out))
        if by == "variable":
            monkeypatch.setenv("HAYFORK_DOCTOR_KEY", credential)
        code = main(line if by == "variable" else [*line, "--key", credential])
        told = "".join(capsys.readouterr())
    assert refused == (1, {"reachability": True, "clock": True, "auth": True, "access": False})
    # The corpus stands still in 2016.
    assert (code, [what for what, ok in states(json.loads(told)).items() if not ok]) == (1, ["snapshot"])
    assert credential not in told


@pytest.mark.parametrize(
    ("url", "key", "told"),
    [
        ("http://hayfork.example/mcp", "hf_0123456789abcdef", "a key is not sent without https"),
        ("https://hayfork.example/mcp", "secret with\nblanks", "what --key gives is no key"),
        ("https://hayfork.example/mcp", "schlüssel-0123456789", "what --key gives is no key"),
    ],
)
def test_a_key_that_others_could_read_or_that_is_none_is_not_sent_nor_told(
    capsys: pytest.CaptureFixture[str], url: str, key: str, told: str
) -> None:
    assert main(["doctor", url, "--key", key]) == 2
    said = "".join(capsys.readouterr())
    assert told in said
    assert key not in said


def test_a_token_is_sent_as_one_and_a_key_in_place_of_a_signature() -> None:
    assert _proof("https://x.example/mcp", "eyJ.token.1") == {"authorization": "Bearer eyJ.token.1"}
    assert _proof("https://x.example/mcp", "hf_0123456789") == {"x-api-key": "hf_0123456789"}


def test_a_server_without_a_snapshot_is_named() -> None:
    def none(_: object) -> str:
        raise BadInput("bad_value", "no")

    with running(SmallApp(facts=none)) as port:
        found = {each.what: each for each in examine_url(f"http://127.0.0.1:{port}/mcp")}
    assert not found["protocol 2026-07-28"].ok
    assert found["protocol 2026-07-28"].advice == "run a refresh"
    assert not found["snapshot"].ok


@contextmanager
def answering(status: int) -> Iterator[str]:
    """A server that gives every request this status, at a time long past."""

    class Always(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response_only(status)
            self.send_header("Date", "Mon, 30 Nov 2020 00:00:00 GMT")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Always)
    thread = Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/mcp"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_server_that_refuses_and_a_clock_that_is_off_are_told() -> None:
    with answering(403) as address:
        found = {each.what: each.ok for each in examine_url(address)}
    assert found == {"reachability": True, "clock": False, "auth": True, "access": False}
    with answering(200) as address:
        found = {each.what: each.ok for each in examine_url(address)}
    assert [what for what, ok in found.items() if not ok] == [
        "clock",
        "protocol 2025-11-25",
        "protocol 2026-07-28",
        "snapshot",
        "known query",
    ]


def test_requests_to_addresses_of_aws_are_signed_for_their_service_and_region(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDOFDOCTOR")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-secret")
    for host, service in (
        ("abc.execute-api.eu-west-1.amazonaws.com", "execute-api"),
        ("abc.lambda-url.eu-west-1.on.aws", "lambda"),
    ):
        place = _place(f"https://{host}")
        assert place == _Place(f"https://{host}/mcp", service, "eu-west-1")
        headers = _signed(place.url, {"content-type": "application/json"}, b"{}", place.service, place.region)
        assert "Credential=AKIDOFDOCTOR/" in headers["Authorization"]
        assert f"/eu-west-1/{service}/aws4_request" in headers["Authorization"]
    assert _place("https://hayfork.example/tools/mcp") == _Place("https://hayfork.example/tools/mcp", "", "")


@pytest.mark.parametrize("url", ["ftp://a.example", "nonsense", "http://"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(BadInput) as caught:
        next(examine_url(url))
    assert caught.value.code == "bad_usage"

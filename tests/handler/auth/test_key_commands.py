"""`hayfork keys` and `hayfork exports`, over a real store."""

import json
from pathlib import Path
from typing import Any

import pytest

from engine.ports import Export
from handler.auth.api_key import ApiKeys
from handler.cli import key_commands
from handler.cli.entry import main
from handler.cli.shell import Shell
from infra.localdir import LocalExports
from infra.sqlite_keys import SqliteKeys
from tests.handler.auth.stores import NOON, Clock

DAY = 86_400_000_000


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(key_commands, "now", clock)
    return clock


class Line:
    """The command line over one folder."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str], clock: Clock) -> None:
        self.root = folder / "corpus"
        self.config = folder / "hayfork.toml"
        self.config.write_text('[corpus]\nroot = "corpus"\n', "utf-8")
        self.keys = ApiKeys(SqliteKeys(self.root / "keys.sqlite"), clock)
        self._capsys = capsys

    def run(self, *words: str) -> tuple[int, str, str]:
        code = main(words, Shell(config=self.config))
        printed = self._capsys.readouterr()
        return code, printed.out, printed.err

    def json(self, *words: str) -> Any:
        code, out, err = self.run(*words, "--json")
        assert code == 0, err
        return json.loads(out)


@pytest.fixture
def line(tmp_path: Path, capsys: pytest.CaptureFixture[str], clock: Clock) -> Line:
    return Line(tmp_path, capsys, clock)


def test_a_key_is_shown_once_and_works(line: Line) -> None:
    code, out, _ = line.run("keys", "create", "billing")
    credential = out.splitlines()[0]
    assert (code, out.splitlines()[1]) == (0, "keep it now: it is not shown again")
    assert line.keys.identify(credential) is not None
    code, out, _ = line.run("keys", "list")
    key_id = credential.split("_")[1]
    assert out.strip() == (
        f"{key_id}  billing: works, made 2026-12-01T12:00:00Z, expires 2027-03-01T12:00:00Z,"
        " last used 2026-12-01T12:00:00Z"
    )
    assert credential not in out + str(line.json("keys", "list"))


def test_a_key_ends_when_it_says(line: Line, clock: Clock) -> None:
    hours = line.json("keys", "create", "billing", "--expires", "12h")
    never = line.json("keys", "create", "billing", "--expires", "never")
    assert (hours["expires"], "expires" in never) == ("2026-12-02T00:00:00Z", False)
    clock.pass_seconds(43_200)
    assert [line.keys.identify(each["key"]) is not None for each in (hours, never)] == [False, True]
    assert [row["state"] for row in line.json("keys", "list")] in (["expired", "works"], ["works", "expired"])


def test_a_revoked_key_is_named_as_such(line: Line, clock: Clock) -> None:
    key = line.json("keys", "create", "billing")
    for given in (key["id"], key["key"]):
        assert line.json("keys", "revoke", given) == {"revoked": key["id"]}
    clock.pass_seconds(60)
    assert line.keys.identify(key["key"]) is None
    (row,) = line.json("keys", "list")
    assert (row["state"], row["revoked"]) == ("revoked", "2026-12-01T12:00:00Z")


def test_a_rotated_key_speaks_for_the_same_name_and_the_old_one_ends_later(line: Line, clock: Clock) -> None:
    old = line.json("keys", "create", "billing")
    new = line.json("keys", "rotate", old["id"], "--overlap", "2h")
    assert (new["name"], new["id"] != old["id"]) == ("billing", True)
    identities = [line.keys.identify(each["key"]) for each in (old, new)]
    assert [each and each.caller_id for each in identities] == ["key:billing"] * 2
    clock.pass_seconds(7_200)
    assert [line.keys.identify(each["key"]) is not None for each in (old, new)] == [False, True]
    code, _, err = line.run("keys", "rotate", old["id"])
    assert (code, err.strip()) == (2, f"bad_usage: key '{old['id']}' has ended; make one with keys create")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("keys", "revoke", "nobody"), "unknown_key: no key has the id 'nobody'; see hayfork keys list"),
        (("keys", "rotate", "nobody"), "unknown_key: no key has the id 'nobody'; see hayfork keys list"),
        (("keys", "create", "a b"), "bad_usage: 'a b' is no name of a key; use letters, digits and _ . @ -"),
        (("keys", "create", "a*"), "bad_usage: 'a*' is no name of a key; use letters, digits and _ . @ -"),
        (
            ("keys", "create", "a", "--expires", "soon"),
            "bad_usage: --expires 'soon'; give a number of days or hours: 90d, 12h",
        ),
        (
            ("exports", "revoke", "x"),
            "unknown_export: this export is unknown or expired; give its whole link",
        ),
    ],
)
def test_what_is_off_is_told(line: Line, words: tuple[str, ...], told: str) -> None:
    code, out, err = line.run(*words)
    assert (code, out, err.strip()) == (2, "", told)


def test_no_keys_are_told_with_the_way_to_make_one(line: Line) -> None:
    assert line.run("keys", "list")[1].strip() == "there are no keys; hayfork keys create NAME makes one"


@pytest.mark.parametrize("whole", [False, True])
def test_a_revoked_export_is_gone_with_its_file(line: Line, whole: bool) -> None:  # noqa: FBT001 - a table
    store = LocalExports(line.root)
    export = Export("e" * 43, "key:billing", "jsonl", "done", NOON, NOON + DAY)
    sink = store.sink(export)
    sink.write(b"{}\n")
    sink.commit()
    store.put(export)
    link = store.link(export)
    assert Path(link).exists()
    assert line.json("exports", "revoke", link if whole else export.export_id) == {"revoked": True}
    assert (store.get(export.export_id), Path(link).exists()) == (None, False)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "hayfork.example", ""])  # noqa: S104 - refused
def test_without_proof_nothing_but_loopback_is_served(line: Line, host: str) -> None:
    code, _, err = line.run("serve", "--host", host)
    assert code == 2
    assert err.startswith(f"bad_setting: auth.modes is none, and '{host}' is not this machine alone")


def test_a_signature_that_no_gateway_checks_serves_nothing(line: Line) -> None:
    line.config.write_text('[corpus]\nroot = "corpus"\n[auth]\nmodes = ["iam"]\n', "utf-8")
    code, _, err = line.run("serve")
    assert (code, err.startswith("bad_setting: auth.modes is iam")) == (2, True)

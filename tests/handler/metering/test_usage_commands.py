"""`hayfork usage` and `hayfork credit`, as they are typed."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from handler.cli import main, usage_commands
from handler.cli.shell import Shell
from infra.sqlite_usage import SqliteUsage
from tests.handler.metering.bench import ADA, COUNT, THREAD, Clock, metered


class Line:
    """The command line over one folder, and the store that it reads."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.config = folder / "hayfork.toml"
        self.config.write_text('[corpus]\nroot = "corpus"\n', "utf-8")
        self.store = SqliteUsage(folder / "corpus" / "usage.sqlite")
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
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(usage_commands, "now", clock)
    return clock


@pytest.fixture
def line(tmp_path: Path, capsys: pytest.CaptureFixture[str], clock: Clock) -> Line:
    made = Line(tmp_path, capsys)
    app = metered(made.store, clock=clock)
    for request in (COUNT, THREAD):
        app.call(request, ADA)
    return made


def test_usage_is_a_line_for_each_caller_and_a_table_on_demand(line: Line) -> None:
    assert line.run("usage") == (
        0,
        "key:ada: 2 calls, 0 free, 0 errors, 0 refunds, 78 bytes, $0.00005\n",
        "",
    )
    assert line.run("usage", "--month", "2016-12")[1] == "nothing was used in 2016-12\n"
    (row,) = line.json("usage", "--caller", "key:ada")
    assert (row["caller_id"], row["calls"], row["spend_micros"]) == ("key:ada", 2, 50)
    (printed,) = csv.DictReader(io.StringIO(line.run("usage", "--csv", "--month", "2016-11")[1]))
    assert printed == {name: str(value) for name, value in row.items()}
    assert line.run("usage", "--csv", "--month", "2016-12") == (0, "", "")
    assert line.json("usage", "--caller", "nobody")[0]["calls"] == 0


def test_the_calls_of_a_caller_are_listed_and_add_up(line: Line) -> None:
    rows = line.json("usage", "--caller", "key:ada", "--calls")
    assert sorted((row["tool"], row["charge_micros"]) for row in rows) == [("count_messages", 10), ("open_thread", 40)]
    assert {row["began_at"] for row in rows} == {"2016-11-30T12:00:00Z"}
    code, out, _ = line.run("usage", "--caller", "key:ada", "--calls")
    assert (code, len(out.splitlines())) == (0, 2)
    assert all(row["call_id"] in out for row in rows)
    assert line.run("usage", "--caller", "key:ada", "--calls", "--csv")[1].count("\n") == 3


def test_credit_is_given_once_for_a_reference(line: Line) -> None:
    for _ in range(2):
        told = line.run("credit", "grant", "key:ada", "25.5", "--reference", "invoice-1042")
        assert told == (0, "key:ada: $25.50\n", "")
    told = line.run("credit", "grant", "key:ada", "26", "--reference", "invoice-1042")
    assert (told[0], told[2]) == (
        2,
        "bad_usage: --reference 'invoice-1042' was used for another amount; give another reference\n",
    )
    for _ in range(2):
        line.run("credit", "grant", "key:ada", "0.000001")
    assert line.json("credit", "show", "key:ada") == {
        "caller": "key:ada",
        "balance_micros": 25_500_002,
        "held_micros": 0,
    }


def test_a_charge_is_given_back_once(line: Line) -> None:
    (call_id,) = [
        row["call_id"] for row in line.json("usage", "--caller", "key:ada", "--calls") if row["tool"] == "open_thread"
    ]
    for _ in range(2):
        assert line.run("credit", "refund", "key:ada", call_id) == (0, "given back: $0.00004\n", "")
    assert line.json("credit", "refund", "key:ada", call_id)["charge_micros"] == -40
    (row,) = line.json("usage")
    assert (row["refunds"], row["spend_micros"]) == (1, 10)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("usage", "--month", "2016-13"), "bad_time: month '2016-13'; give a month, for example 2026-12"),
        (("usage", "--calls"), "bad_usage: --calls lists the calls of one caller; name it by --caller"),
        (("credit", "grant", "x", "1e3"), "bad_usage: amount '1e3'; give dollars, for example 25 or 0.50"),
        (("credit", "grant", "x", "0"), "bad_usage: amount '0'; give dollars, for example 25 or 0.50"),
        (
            ("credit", "grant", "x", "1", "--reference", "a b"),
            "bad_usage: --reference 'a b'; use 1 to 200 letters, digits and signs",
        ),
        (
            ("credit", "refund", "x", "nothing"),
            "unknown_call: no call 'nothing' of this caller was charged; see hayfork usage --calls",
        ),
    ],
)
def test_what_cannot_be_done_is_told_with_the_way_out(line: Line, words: tuple[str, ...], told: str) -> None:
    code, _, err = line.run(*words)
    assert (code, err.strip()) == (2, told)

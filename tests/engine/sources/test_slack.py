"""Whole exports: where messages are found, what is broken and named, and what is counted."""

import json
import os
import sys
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from engine.errors import BadInput
from engine.model import Problem, SourceMessage, SourceReport
from engine.ports import Source
from engine.sources.archive import ArchiveLimits
from engine.sources.roles import RoleRules
from engine.sources.slack import SlackExport

_CHANNELS = [{"id": "C1", "name": "general"}, {"id": "C2", "name": "пример"}]
_DAY = "general/2016-09-20.json"


def _record(second: int, text: str = "hi", **more: Any) -> dict[str, Any]:
    return {"type": "message", "user": "U1", "text": text, "ts": f"{1_474_355_000 + second}.000100", **more}


def _write(location: Path, members: dict[str, Any]) -> Path:
    contents = {
        name: content if isinstance(content, bytes) else json.dumps(content).encode()
        for name, content in members.items()
    }
    if location.suffix == ".zip":
        with zipfile.ZipFile(location, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in contents.items():
                archive.writestr(name, content)
    else:
        for name, content in contents.items():
            (location / name).parent.mkdir(parents=True, exist_ok=True)
            (location / name).write_bytes(content)
    return location


def _read(location: Path, limits: ArchiveLimits | None = None) -> tuple[list[SourceMessage], SourceReport]:
    report = SourceReport()
    messages = list(SlackExport(location, RoleRules({}), limits=limits).messages(report))
    assert report.read == report.yielded + sum(report.skipped.values())
    assert report.yielded == len(messages)
    return messages, report


def _places(messages: list[SourceMessage]) -> list[tuple[str, str]]:
    return sorted({(message.conversation_id, message.conversation) for message in messages})


def test_zip_folder_and_wrapped_export_give_the_same_messages(tmp_path: Path) -> None:
    members = {
        "channels.json": _CHANNELS,
        _DAY: [_record(1), _record(2)],
        "пример/2016-09-21.json": [_record(3)],
    }
    wrapped = {f"My export/{name}": content for name, content in members.items()}
    plain, report = _read(_write(tmp_path / "e.zip", members))
    assert [message.message_id for message in plain] == [
        "C1:1474355001.000100",
        "C1:1474355002.000100",
        "C2:1474355003.000100",
    ]
    assert (report.read, report.skipped, report.problems) == (3, Counter(), [])
    assert _read(_write(tmp_path / "e", members))[0] == plain
    for location in (tmp_path / "w.zip", tmp_path / "w"):
        messages, report = _read(_write(location, wrapped))
        assert messages == plain
        assert report.problems == [Problem("My export/", "the whole export lies in this folder; read from inside it")]


def test_conversations_are_found_in_every_list_by_name_and_by_id(tmp_path: Path) -> None:
    day = [_record(1)]
    members = {
        "channels.json": [*_CHANNELS, "odd", {"name": "no id"}],
        "groups.json": [{"id": "G1", "name": "secret"}],
        "mpims.json": [{"id": "G2", "name": "mpdm-ann--bo-1", "members": ["U1", "U2"]}],
        "dms.json": [{"id": "D1", "members": ["U1", "U2", 7, None]}, {"id": "D2"}],
        "users.json": [{"id": "U1", "profile": {"display_name": "Ann"}}, {"id": "U2", "real_name": "Bo"}],
        **{f"{folder}/2016-09-20.json": day for folder in ("general", "secret", "mpdm-ann--bo-1", "D1", "D2")},
        "left-over/2016-09-20.json": day,
        "пример/2016-09-20.json": day,
    }
    expected = [
        ("C1", "general"),
        ("C2", "пример"),
        ("D1", "Ann, Bo, 7"),
        ("D2", "D2"),
        ("G1", "secret"),
        ("G2", "mpdm-ann--bo-1"),
        ("left-over", "left-over"),
    ]
    assert _places(_read(_write(tmp_path / "e.zip", members))[0]) == expected


def test_broken_day_files_and_records_are_named_and_the_rest_is_served(tmp_path: Path) -> None:
    members = {
        "channels.json": _CHANNELS,
        "users.json": b"{broken",
        "groups.json": {"not": "a list"},
        _DAY: [_record(1), "text", None, {"text": "no ts"}, _record(2, ts="soon"), _record(3, hidden=True)],
        "general/2016-09-21.json": b"[{]",
        "general/2016-09-22.json": {"a": 1},
        "general/2016-09-23.json": b"[" * 100_000,
        "general/2016-09-24.json": b'[{"ts": "\xff"}]',
        "general/2016-09-25.json": b"\xef\xbb\xbf" + json.dumps([_record(4)]).encode(),
        "general/notes.json": [_record(9)],
        "general/2016-09-26.json.bak": [_record(9)],
        "general/deeper/2016-09-26.json": [_record(9)],
    }
    messages, report = _read(_write(tmp_path / "e.zip", members))
    assert [message.native_id for message in messages] == ["1474355001.000100", "1474355004.000100"]
    assert report.skipped == {"broken record": 4, "hidden": 1, "unreadable file": 4}
    assert report.problems == [
        Problem("general/deeper/2016-09-26.json", "lies deeper than day files do; passed over"),
        Problem("users.json", "not valid JSON"),
        Problem("groups.json", "not a list"),
        Problem(f"{_DAY}[1]", "not an object"),
        Problem(f"{_DAY}[2]", "not an object"),
        Problem(f"{_DAY}[3]", "no ts"),
        Problem(f"{_DAY}[4]", "its ts is not a time"),
        Problem("general/2016-09-21.json", "not valid JSON"),
        Problem("general/2016-09-22.json", "not a list"),
        Problem("general/2016-09-23.json", "not valid JSON"),
        Problem("general/2016-09-24.json", "not valid JSON"),
    ]


def test_bombs_and_climbing_paths_are_named_and_the_rest_is_served(tmp_path: Path) -> None:
    members = {
        "channels.json": _CHANNELS,
        _DAY: [_record(1)],
        "general/2016-09-21.json": b" " * 2_000_000,
        "../../2016-09-21.json": [_record(2)],
    }
    limits = ArchiveLimits(ratio_from_bytes=1_000)
    messages, report = _read(_write(tmp_path / "e.zip", members), limits)
    assert len(messages) == 1
    assert report.skipped == {"unreadable file": 1}
    assert report.problems == [
        Problem("../../2016-09-21.json", "path leaves the archive; passed over"),
        Problem("general/2016-09-21.json", "unpacks to far more than it holds, as a zip bomb does"),
    ]


def test_of_repeats_in_a_day_the_last_edited_or_else_the_last_is_read(tmp_path: Path) -> None:
    day = [
        _record(1, "first"),
        _record(1, "edited", edited={"ts": "1474356000.000000"}),
        _record(1, "stale"),
        _record(2, "one"),
        _record(2, "two"),
    ]
    messages, report = _read(_write(tmp_path / "e.zip", {_DAY: day}))
    assert [message.body for message in messages] == ["edited", "two"]
    assert report.skipped == {"duplicate": 3}
    assert report.problems == [Problem(_DAY, "repeats 3 messages; each is read once")]


def test_repeats_across_days_are_skipped_unless_edited_since(tmp_path: Path) -> None:
    members = {
        "channels.json": _CHANNELS,
        _DAY: [_record(1, "one"), _record(2, "old")],
        "general/2016-09-21.json": [
            _record(1, "one again"),
            _record(2, "new", edited={"ts": "1474356000.000000"}),
        ],
        "пример/2016-09-20.json": [_record(1, "elsewhere")],
    }
    messages, report = _read(_write(tmp_path / "e.zip", members))
    assert [message.body for message in messages] == ["one", "old", "new", "elsewhere"]
    assert messages[2].edited_at == 1_474_356_000_000_000
    assert report.skipped == {"duplicate": 1}


def test_names_that_only_messages_carry_are_known_in_earlier_mentions(tmp_path: Path) -> None:
    added = "added an integration: <https://x.slack.com/services/B1|Travis &amp; CI>"
    members = {
        "users.json": [{"id": "U1", "profile": {"display_name": "Ann"}}, {"name": "no id"}],
        _DAY: [
            _record(1, "ask <@U9> or <#C9>"),
            {"subtype": "bot_message", "bot_id": "B1", **_record(2, user=None)},
        ],
        "general/2016-09-21.json": [
            "odd",
            _record(3, user="U9", user_profile={"display_name": "Gus"}),
            _record(4, user="U1", user_profile={"display_name": "Not Ann"}),
            _record(5, user="U1", user_profile=["odd"]),
        ],
        "general/2016-09-22.json": [_record(6, added, subtype="bot_add", bot_id="B1")],
        "general/2016-09-23.json": [_record(7, user="U1", user_profile={"display_name": "Not Ann"})],
        "general/2016-09-24.json": b'{"user_profile": {}, "user": "U8"}',
    }
    messages, report = _read(_write(tmp_path / "e.zip", members))
    assert [message.author for message in messages] == [
        "Ann",
        "Travis & CI",
        "Gus",
        "Ann",
        "Ann",
        "Ann",
        "Ann",
    ]
    assert messages[0].body == "ask @Gus or #C9"
    assert report.problems == [
        Problem("users.json", "an entry without an id; passed over"),
        Problem("general/2016-09-21.json[0]", "not an object"),
        Problem("general/2016-09-24.json", "not a list"),
    ]


def test_files_beside_a_wrapped_export_are_named(tmp_path: Path) -> None:
    members = {
        "a/channels.json": _CHANNELS,
        f"a/{_DAY}": [_record(1)],
        f"b/{_DAY}": [_record(2)],
        "readme.txt": b"",
    }
    messages, report = _read(_write(tmp_path / "e.zip", members))
    assert [message.native_id for message in messages] == ["1474355001.000100"]
    assert Problem(f"b/{_DAY}", "lies beside the export; passed over") in report.problems


def test_an_export_without_messages_is_empty_not_broken(tmp_path: Path) -> None:
    members = {"channels.json": _CHANNELS, _DAY: []}
    assert _read(_write(tmp_path / "e.zip", members))[0] == []
    assert _read(_write(tmp_path / "f.zip", {"channels.json": _CHANNELS}))[0] == []


def test_what_is_no_export_is_refused_with_a_way_out(tmp_path: Path) -> None:
    locations = [
        tmp_path / "nowhere",
        _write(tmp_path / "e.zip", {"a.txt": b"", "deep/er/2016-09-20.json": [], "x/y/z/2016-09-20.json": []}),
        _write(tmp_path / "f", {"2016-09-20.json": []}),
    ]
    for location in locations:
        export = SlackExport(location, RoleRules({}))
        for attempt in (export.digest, lambda export=export: list(export.messages(SourceReport()))):
            with pytest.raises(BadInput) as caught:
                attempt()
            assert caught.value.code == "source_unreadable"
            assert caught.value.next_step
            assert str(tmp_path) not in caught.value.to_text()


def test_an_export_whose_every_day_is_broken_is_unreadable(tmp_path: Path) -> None:
    report = SourceReport()
    export = SlackExport(_write(tmp_path / "e.zip", {_DAY: b"[", "channels.json": _CHANNELS}), RoleRules({}))
    with pytest.raises(BadInput, match=r"^no day file of 'e\.zip' can be read$"):
        list(export.messages(report))
    assert report.problems == [Problem(_DAY, "not valid JSON")]


def test_digest_follows_content_and_workspace_url(tmp_path: Path) -> None:
    one = _write(tmp_path / "one.zip", {_DAY: [_record(1)]})
    other = _write(tmp_path / "other.zip", {_DAY: [_record(2)]})
    digests = {
        SlackExport(one, RoleRules({})).digest(),
        SlackExport(one, RoleRules({}), name="renamed").digest(),
        SlackExport(one, RoleRules({}), workspace_url="https://x.slack.com").digest(),
        SlackExport(other, RoleRules({})).digest(),
    }
    assert len(digests) == 3


def test_it_is_a_source_named_after_its_file_or_as_told(tmp_path: Path) -> None:
    source: Source = SlackExport(tmp_path / "e.zip", RoleRules({}))
    assert source.name == "e.zip"
    assert SlackExport(tmp_path / "e.zip", RoleRules({}), name="chat").name == "chat"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems allow no such names")
def test_folder_names_that_are_no_text_do_not_stop_it(tmp_path: Path) -> None:
    _write(tmp_path / "e", {_DAY: [_record(1)]})
    odd = tmp_path / "e" / os.fsdecode(b"caf\xe9")
    odd.mkdir()
    (odd / "2016-09-20.json").write_bytes(json.dumps([1, _record(1)]).encode())
    messages, report = _read(tmp_path / "e")
    assert _places(messages) == [("caf\ufffd", "caf\ufffd"), ("general", "general")]
    assert report.problems == [Problem("caf\ufffd/2016-09-20.json[0]", "not an object")]

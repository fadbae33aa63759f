import hashlib
import json
import tomllib
from collections import Counter
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from engine.errors import BadInput
from engine.synth import write_corpus
from engine.synth.corpus import kind_of, plan, rows
from tests.engine.synth.written import Written

PINNED = "fca2bb1afb6fc721bb1e264982032b743419193d40236f0631229de5df776d12"
"""Digest of 2,000 messages with seed 1. It changes only when the corpus is meant to."""


def _digest(folder: Path) -> str:
    whole = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        content = path.read_bytes()
        whole.update(f"{path.relative_to(folder).as_posix()} {len(content)}\n".encode() + content)
    return whole.hexdigest()


def test_a_corpus_is_the_same_to_the_byte_every_time(written: Written, tmp_path: Path) -> None:
    write_corpus(tmp_path / "again", 2_000, 1)
    assert _digest(tmp_path / "again") == _digest(written.folder) == PINNED


def test_every_file_is_json_and_every_row_is_there(written: Written) -> None:
    records = [record for _, record in written.records()]
    assert len(records) == written.key.rows == written.key.messages == 2_000
    assert all(record["type"] == "message" and record["text"] is not None for record in records)


def test_a_conversations_days_are_local_and_in_order(written: Written) -> None:
    other_date = 0
    for _, day, records in written.days():
        stamps = [record["ts"] for record in records]
        assert stamps == sorted(stamps)
        for ts in stamps:
            sent = datetime.fromtimestamp(int(ts.partition(".")[0]), UTC)
            assert (sent - timedelta(hours=7)).date().isoformat() == day
            other_date += sent.date().isoformat() != day
    assert other_date > 300


def test_all_forms_of_messages_occur(written: Written) -> None:
    records = [record for _, record in written.records()]
    subtypes = Counter(record.get("subtype", "none") for record in records)
    assert set(subtypes) == {
        "none", "bot_message", "file_share", "me_message", "thread_broadcast", "tombstone", "channel_join",
        "channel_leave", "channel_topic", "channel_purpose", "channel_name", "channel_archive",
        "channel_unarchive", "pinned_item", "bot_add", "reminder_add",
    }  # fmt: skip
    assert any(r.get("text") == "" and r.get("attachments") for r in records)
    assert any("edited" in r for r in records)
    assert any("user_profile" in r for r in records)
    assert any("username" in r for r in records)
    assert any("bot_profile" in r for r in records)
    assert any(r["text"].startswith("<!here>") for r in records)
    assert any("|notes>" in r["text"] for r in records)
    assert any("&lt;" in r["text"] and "&amp;" in r["text"] for r in records)
    listed = {user["id"] for user in written.listed("users.json")}
    assert any(r.get("user") and r["user"] not in listed for r in records)
    deleted = {r["ts"] for r in records if r.get("subtype") == "tombstone"}
    assert deleted <= {r["thread_ts"] for r in records if r.get("thread_ts") not in (None, r["ts"])}


def test_the_key_beside_the_export_is_the_one_returned(written: Written) -> None:
    kept = json.loads((written.folder / "answers.json").read_bytes())
    assert kept == json.loads(json.dumps(asdict(written.key)))
    made = plan(2_000, 1)
    assert written.key.kinds == Counter(kind_of(said) for said in rows(made))
    assert written.key.subtypes == Counter(said.subtype or "none" for said in rows(made))
    assert written.key.body_bytes == sum(len(said.text.body.encode()) for said in rows(made))
    assert written.key.conversations == 61


def test_the_configuration_serves_the_export(written: Written) -> None:
    config = tomllib.loads((written.folder / "hayfork.toml").read_text("utf-8"))
    source = config["sources"][0]
    assert (source["format"], (written.folder / source["location"]).is_dir()) == ("slack", True)
    assert set(source["roles"]) == {"client", "teammate"}
    assert config["corpus"] == {"root": "corpus", "name": "brightlake"}


def test_progress_is_told_up_to_the_last_message(tmp_path: Path) -> None:
    told: list[tuple[str, int, int | None]] = []
    (tmp_path / "empty").mkdir()
    write_corpus(tmp_path / "empty", 1_000, 5, lambda step, done, of: told.append((step, done, of)))
    assert told[-1] == ("write", 1_000, 1_000)
    assert told == sorted(told)


def test_a_folder_in_use_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x")
    for folder in (tmp_path, tmp_path / "mine.txt"):
        with pytest.raises(BadInput) as caught:
            write_corpus(folder, 1_000, 1)
        assert caught.value.code == "folder_in_use"
        assert str(tmp_path.parent) not in caught.value.to_text()
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_refused_size_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(BadInput):
        write_corpus(tmp_path / "none", 999, 1)
    assert not (tmp_path / "none").exists()

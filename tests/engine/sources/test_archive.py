"""Zips and folders from anybody: what may be read is read, what may not is named."""

import os
import zipfile
from pathlib import Path

import pytest

from engine.errors import BadInput
from engine.model import Problem
from engine.sources.archive import ArchiveLimits, MemberError, open_archive, shown_name, wrapping_folder

_SMALL = ArchiveLimits(member_bytes=1 << 20, ratio=20, ratio_from_bytes=1 << 12)


def _zip(path: Path, members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def _folder(path: Path, members: dict[str, bytes]) -> Path:
    for name, content in members.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content)
    return path


def _why(path: Path, name: str, limits: ArchiveLimits = _SMALL) -> str:
    with open_archive(path, limits) as archive, pytest.raises(MemberError) as caught:
        archive.read(name)
    return caught.value.why


def test_zip_and_folder_give_the_same_names_and_contents(tmp_path: Path) -> None:
    members = {
        "a.json": b"[]",
        "general/2016-01-01.json": b"[1]",
        "__MACOSX/x": b"",
        "general/.DS_Store": b"",
    }
    expected = {"a.json": b"[]", "general/2016-01-01.json": b"[1]"}
    for location in (_zip(tmp_path / "e.zip", members), _folder(tmp_path / "e", members)):
        with open_archive(location) as archive:
            assert {name: archive.read(name) for name in archive.names} == expected
            assert list(archive.problems) == []


def test_members_that_climb_out_of_a_zip_are_named_and_passed_over(tmp_path: Path) -> None:
    names = ["../up.json", "a/../../up.json", "/etc/passwd", "C:/x.json", "..\\back.json", "fine.json"]
    with open_archive(_zip(tmp_path / "e.zip", dict.fromkeys(names, b"1"))) as archive:
        assert list(archive.names) == ["fine.json"]
        assert [problem.where for problem in archive.problems] == [
            "../up.json",
            "a/../../up.json",
            "etc/passwd",
            "C:/x.json",
            "../back.json",
        ]
        assert {problem.why for problem in archive.problems} == {"path leaves the archive; passed over"}


def test_links_that_lead_out_of_a_folder_are_named_and_not_followed(tmp_path: Path) -> None:
    _folder(tmp_path, {"outside/secret.json": b"1", "e/in.json": b"2", "e/sub/x.json": b"3"})
    (tmp_path / "e/out.json").symlink_to(tmp_path / "outside/secret.json")
    (tmp_path / "e/away").symlink_to(tmp_path / "outside")
    (tmp_path / "e/same.json").symlink_to(tmp_path / "e/in.json")
    (tmp_path / "e/twin").symlink_to(tmp_path / "e/sub")
    (tmp_path / "e/nowhere.json").symlink_to(tmp_path / "e/gone.json")
    os.mkfifo(tmp_path / "e/pipe")
    with open_archive(tmp_path / "e") as archive:
        assert list(archive.names) == ["in.json", "same.json", "sub/x.json"]
        assert archive.read("same.json") == b"2"
        assert list(archive.problems) == [
            Problem("away", "path leaves the folder; passed over"),
            Problem("nowhere.json", "not a file; passed over"),
            Problem("out.json", "path leaves the folder; passed over"),
            Problem("pipe", "not a file; passed over"),
            Problem("twin", "not a file; passed over"),
        ]


def test_a_bomb_is_refused_by_its_ratio_before_it_is_whole(tmp_path: Path) -> None:
    location = _zip(tmp_path / "e.zip", {"bomb": b"0" * 900_000, "plain": os.urandom(50_000)})
    assert _why(location, "bomb") == "unpacks to far more than it holds, as a zip bomb does"
    with open_archive(location, _SMALL) as archive:
        assert len(archive.read("plain")) == 50_000


def test_a_member_too_large_is_refused_in_zip_and_folder(tmp_path: Path) -> None:
    members = {"big": os.urandom(1 << 20) + b"1"}
    for location in (_zip(tmp_path / "e.zip", members), _folder(tmp_path / "e", members)):
        assert _why(location, "big") == "larger than a file of an export may be"


def test_small_members_may_be_packed_however_well(tmp_path: Path) -> None:
    with open_archive(_zip(tmp_path / "e.zip", {"zeros": b"0" * 4_096}), _SMALL) as archive:
        assert archive.read("zeros") == b"0" * 4_096


def test_a_header_that_lies_about_the_size_is_not_believed(tmp_path: Path) -> None:
    location = _zip(tmp_path / "e.zip", {"bomb": b"0" * 900_000})
    true, told = (900_000).to_bytes(4, "little"), (10).to_bytes(4, "little")
    location.write_bytes(location.read_bytes().replace(true, told))
    assert _why(location, "bomb") == "broken in the archive"


def test_broken_encrypted_and_oddly_packed_members_are_named(tmp_path: Path) -> None:
    location = _zip(tmp_path / "e.zip", {"stored": b"hello hello"}, zipfile.ZIP_STORED)
    content = location.read_bytes()
    location.write_bytes(content.replace(b"hello hello", b"hullo hello"))
    assert _why(location, "stored") == "broken in the archive"
    directory = content.index(b"PK\x01\x02")
    location.write_bytes(content[: directory + 8] + b"\x01" + content[directory + 9 :])
    assert _why(location, "stored") == "encrypted"
    assert _why(_zip(tmp_path / "b.zip", {"x": b"1"}, zipfile.ZIP_BZIP2), "x") == "packed with an unusual method"


def test_of_two_members_with_one_name_the_last_is_read(tmp_path: Path) -> None:
    location = _zip(tmp_path / "e.zip", {"a": b"1", "b": b"2"}, zipfile.ZIP_STORED)
    content = location.read_bytes()
    directory = content.index(b"PK\x01\x02")
    second = content.index(b"PK\x03\x04", 4)
    location.write_bytes(
        content[:second] + content[second:directory].replace(b"b", b"a") + content[directory:].replace(b"b", b"a")
    )
    with open_archive(location) as opened:
        assert opened.read("a") == b"2"
        assert list(opened.problems) == [Problem("a", "stands in the archive twice; the last one is read")]


@pytest.mark.parametrize(
    ("content", "reason"), [(None, "is not there"), (b"no zip", "is neither a folder nor a whole")]
)
def test_what_is_no_archive_is_refused_by_its_name_alone(tmp_path: Path, content: bytes | None, reason: str) -> None:
    location = tmp_path / "e.zip"
    if content is not None:
        location.write_bytes(content)
    with pytest.raises(BadInput) as caught, open_archive(location):
        pass
    assert caught.value.code == "source_unreadable"
    assert caught.value.message.startswith(f"'e.zip' {reason}")
    assert str(tmp_path) not in caught.value.to_text()


def test_names_in_utf8_are_read_though_the_zip_does_not_say_so(tmp_path: Path) -> None:
    location = _zip(tmp_path / "e.zip", {"ж/2016-01-01.json": b"[]", "plain.json": b"[]"})
    marked = location.read_bytes()
    for at in (marked.index(b"PK\x03\x04") + 6, marked.index(b"PK\x01\x02") + 8):
        marked = marked[: at + 1] + b"\x00" + marked[at + 2 :]
    location.write_bytes(marked)
    with open_archive(location) as archive:
        assert list(archive.names) == ["ж/2016-01-01.json", "plain.json"]


def test_names_in_an_old_code_page_stay_as_they_are(tmp_path: Path) -> None:
    location = _zip(tmp_path / "e.zip", {"ab.json": b"[]"})
    location.write_bytes(location.read_bytes().replace(b"ab.json", b"\x81b.json"))
    with open_archive(location) as archive:
        assert list(archive.names) == ["üb.json"]


def test_digest_changes_with_any_name_or_content_and_with_nothing_else(tmp_path: Path) -> None:
    members = {"a": b"one", "b": b"two"}
    for make in (_zip, _folder):
        digests = []
        for number, each in enumerate((members, {"b": b"two", "a": b"one"}, {"a": b"one", "b": b"twO"}, {"a": b"one"})):
            with open_archive(make(tmp_path / f"{make.__name__}{number}", each)) as archive:
                digests.append(archive.digest())
        assert digests[0] == digests[1]
        assert len(set(digests)) == 3


def test_digest_sees_a_change_that_keeps_size_and_time(tmp_path: Path) -> None:
    folder = _folder(tmp_path / "e", {"a": b"one"})
    times = ((folder / "a").stat().st_atime_ns, (folder / "a").stat().st_mtime_ns)
    with open_archive(folder) as archive:
        before = archive.digest()
        (folder / "a").write_bytes(b"two")
        os.utime(folder / "a", ns=times)
        assert archive.digest() != before


def test_a_file_that_vanishes_is_unreadable_and_still_has_a_digest(tmp_path: Path) -> None:
    folder = _folder(tmp_path / "e", {"a": b"one"})
    with open_archive(folder) as archive:
        (folder / "a").unlink()
        assert len(archive.digest()) == 64
        with pytest.raises(MemberError, match="cannot be opened"):
            archive.read("a")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([], ""),
        (["channels.json", "general/1.day"], ""),
        (["export/channels.json", "export/general/1.day"], "export/"),
        (["a/b/users.json", "a/b/general/1.day", "readme.txt"], "a/b/"),
        (["users.json", "old/users.json"], ""),
        (["general/1.day", "random/1.day"], ""),
        (["export/general/1.day", "export/random/1.day", "export/general/note.txt"], "export/"),
        (["one/general/1.day", "two/general/1.day"], ""),
        (["1.day"], ""),
    ],
)
def test_the_wrapping_folder_is_where_the_markers_or_all_records_lie(names: list[str], expected: str) -> None:
    found = wrapping_folder(names, frozenset({"channels.json", "users.json"}), lambda name: name.endswith(".day"))
    assert found == expected


def test_shown_names_are_printable_relative_and_short() -> None:
    assert shown_name("/a\nb\x00") == "a�b�"
    assert shown_name("x" * 201) == "x" * 200 + "…"
    assert shown_name("x" * 200) == "x" * 200

"""Any JSON in any place: whatever is damaged in an export, reading it never raises, and all is counted."""

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model import SourceMessage, SourceReport
from engine.sources.roles import RoleRule, RoleRules
from engine.sources.slack import SlackExport
from engine.sources.slack_message import BadRecord, Conversation, Skipped, current_version, message_of
from engine.sources.slack_people import People
from engine.sources.slack_text import Naming
from tests.depth import depth

_FIXTURE = Path(__file__).parents[2] / "fixtures" / "slack-export-fabric.zip"


def _real_records() -> Iterator[dict[str, Any]]:
    """One record of each set of keys: every shape that occurs."""
    shapes = set()
    with zipfile.ZipFile(_FIXTURE) as archive:
        for name in archive.namelist():
            for record in json.loads(archive.read(name)) if "/" in name else []:
                shape = (record.get("subtype"), *sorted(record))
                if shape not in shapes:
                    shapes.add(shape)
                    yield record


_MODERN: dict[str, Any] = {
    "ts": "1600000000.000100",
    "user": "U1",
    "text": "",
    "thread_ts": "1600000000.000100",
    "reply_count": 1,
    "edited": {"ts": "1600000001.000000"},
    "user_profile": {"display_name": "Gus", "real_name": "G", "name": "g"},
    "bot_profile": {"name": "poster"},
    "bot_id": "B1",
    "comment": {"user": "U1", "comment": "c"},
    "reactions": [{"name": "+1", "count": 1, "users": ["U1"]}],
    "files": [{"name": "a", "title": "b", "filetype": "png", "size": 1, "initial_comment": {"comment": "d"}}],
    "blocks": [{"type": "rich_text", "elements": [{"type": "rich_text_list", "elements": [{"type": "text"}]}]}],
    "attachments": [{"text": "t", "fields": [{"title": "x", "value": "y"}], "message_blocks": [{"message": {}}]}],
    "message": {"ts": "1600000000.000100", "text": "inner"},
}
_RECORDS = [*_real_records(), _MODERN]

_TEXTS = st.text(max_size=12) | st.sampled_from(
    [
        "<@U1|x>",
        "<#C1>",
        "<!date^1|",
        "&lt;<http://a|",
        "\ud800",
        "tombstone",
        "message_changed",
        "file_comment",
        "bot_message",
    ]
)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(sorted(_MODERN)) | _TEXTS, inner, max_size=3)
    ),
    max_leaves=6,
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from _places(inner, (*path, key))


@st.composite
def _mangled(draw: st.DrawFn) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(json.dumps(draw(st.sampled_from(_RECORDS))))
    for _ in range(draw(st.integers(1, 4))):
        path = draw(st.sampled_from(list(_places(record)) or [("text",)]))
        holder: Any = record
        for key in path[:-1]:
            holder = holder[key]
        holder[path[-1]] = draw(_JSON)
    return record


@settings(max_examples=depth(600, 100), deadline=None, derandomize=True)
@given(_mangled())
def test_no_shape_of_a_record_raises_and_what_comes_out_can_be_stored(record: dict[str, Any]) -> None:
    people = People(RoleRules({"client": RoleRule(conversation=("general",))}))
    naming = Naming(people.name_of, lambda channel_id: channel_id)
    made = message_of(current_version(record), Conversation("C1", "general"), people, naming, "https://x.slack.com")
    assert isinstance(made, SourceMessage | Skipped | BadRecord)
    if isinstance(made, SourceMessage):
        texts = (made.body, made.author, made.author_id, made.link, made.attributes, made.thread_native_id)
        assert all(text is None or text.encode("utf-8").decode("utf-8") == text for text in texts)
        assert made.author
        assert made.author_id
        json.loads(made.attributes or "{}")


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    days=st.lists(st.lists(_mangled() | _JSON, max_size=4) | _JSON, max_size=3),
    lists=st.lists(_JSON, min_size=5, max_size=5),
)
def test_a_report_accounts_for_every_record_of_a_mangled_export(
    tmp_path_factory: Any, days: list[Any], lists: list[Any]
) -> None:
    location = tmp_path_factory.mktemp("mangled") / "e.zip"
    with zipfile.ZipFile(location, "w") as archive:
        for name, content in zip(("users", "channels", "groups", "dms", "mpims"), lists, strict=True):
            archive.writestr(f"{name}.json", json.dumps(content))
        archive.writestr("general/2016-01-01.json", "[]")
        for number, day in enumerate(days, 2):
            archive.writestr(f"general/2016-01-{number:02}.json", json.dumps(day))
    report = SourceReport()
    messages = list(SlackExport(location, RoleRules({})).messages(report))
    records = sum(len(day) if isinstance(day, list) else 1 for day in days)
    assert (report.read, report.yielded) == (records, len(messages))
    assert report.read == report.yielded + sum(report.skipped.values())

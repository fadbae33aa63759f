"""What users of like systems suffer, each tried here through the front door on a small export of our own."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from handler.settings import Settings
from handler.settings_table import CorpusSettings, RoleSettings, SourceSettings
from tests.front.corpora import app_over, table_settings
from tests.front.told import ask
from tests.handler.running import running

LEAKED = "xoxe-1234567890-1234567890-abcdef0123456789"
TWELVE_LINKS = " ".join(f"<https://docs.example/{n}|page {n}>" for n in range(1, 13))
ALTERED = "価格は１２３円、it's “here” for $5 & <b> 👩\u200d👩\u200d👧 done"


def record(ts: str, text: str, user: str | None = "U1", **more: Any) -> dict[str, Any]:
    return {"type": "message", "ts": ts, "text": text, **({"user": user} if user else {}), **more}


DAYS: Mapping[str, Sequence[dict[str, Any]]] = {
    # 2016-11-07 in Tokyo begins on the sixth, 15:00 UTC.
    "2016-11-07": [
        record("1478444400.000100", "early bird in Tokyo"),
        record("1478444399.000100", "night owl in Tokyo"),
        record("1478500000.000100", "", attachments=[{"title": "Build 77", "text": "nightly pipeline was broken"}]),
        record(
            "1478500001.000100",
            "",
            blocks=[{"type": "section", "text": {"type": "mrkdwn", "text": "block kit speaks of walrus"}}],
        ),
        record("1478500002.000100", "pipeline says hello", None, subtype="bot_message", username="Pipey", bot_id="B9"),
        record("1478500003.000100", ALTERED.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")),
        record("1478500004.000100", TWELVE_LINKS),
        record("1478500005.000100", "ask <@U1|label> and <@UGUEST> and <@UNOBODY|Nora> about pelicans", "UGUEST"),
        record("1478500006.000100", "reminder about herons", "USLACKBOT"),
        record("1478500007.000100", "who am I, asks the ibis", "UMISSING"),
        record("1478500008.000100", "a secret file", files=[{"title": "plan", "url_private": f"https://f.example/?t={LEAKED}"}]),
        record("1478500009.000100", "", subtype="tombstone", thread_ts="1478500009.000100", reply_count=1),
        record("1478500010.000100", "answer to what was deleted", thread_ts="1478500009.000100"),
    ],
    "2016-11-08": [
        record("1478600000.000100", "puffin thread begins", thread_ts="1478600000.000100"),
        *(
            record(f"14786000{n:02}.000100", f"puffin reply {n}", thread_ts="1478600000.000100")
            for n in range(1, 41)
        ),
        record(
            "1478600050.000100",
            "puffin told to all",
            subtype="thread_broadcast",
            thread_ts="1478600000.000100",
            root=record("1478600000.000100", "puffin thread begins"),
        ),
        *(record(f"14786{n}5000.000100", f"puffin elsewhere {n}") for n in range(5)),
    ],
    "2016-11-09": [
        record("1478680000.000100", "встретимся в субботу у метро"),
        record("1478680001.000100", "каждая суббота свободна"),
        record("1478680002.000100", "会议改到星期三下午"),
        record("1478680003.000100", "ｶﾀｶﾅで書いたﾒｯｾｰｼﾞ"),
        record("1478680004.000100", "请用docker部署服务"),
        record("1478680005.000100", "ana said: na próxima semana o orçamento, imagina"),
        record("1478680006.000100", "semana que vem"),
        record("1478680008.000100", "semana passada"),
        record("1478680007.000100", "the build\nhas failed twice"),
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    folder = tmp_path_factory.mktemp("complaints")
    room = folder / "export" / "general"
    room.mkdir(parents=True)
    for day, records in DAYS.items():
        (room / f"{day}.json").write_text(json.dumps(records), "utf-8")
    users = [{"id": "U1", "name": "ada", "profile": {"display_name": "Ada", "email": "ada@secret.example"}}]
    (folder / "export" / "users.json").write_text(json.dumps(users))
    (folder / "export" / "channels.json").write_text(json.dumps([{"id": "C1", "name": "general"}]))
    settings = Settings(
        corpus=CorpusSettings(root=str(folder / "corpus"), timezone="Asia/Tokyo"),
        sources=(
            SourceSettings(
                format="slack",
                location=str(folder / "export"),
                name="export",
                roles={"client": RoleSettings(email_domain=("secret.example",))},
            ),
        ),
    )
    app = app_over(settings)
    app.refresh()
    with running(app) as number:
        yield number


def ids(port: int, query: str, **more: Any) -> list[str]:
    told = ask(port, "search_messages", query=query, **{"limit": 50, **more})
    assert not told.is_error, told.text
    return [message_id.removeprefix("C1:147") for message_id in told.shown]


def test_a_message_that_is_all_attachment_is_found(port: int) -> None:
    assert ids(port, '"nightly pipeline"') == ["8500000.000100"]


def test_a_message_that_is_all_blocks_is_found(port: int) -> None:
    assert ids(port, "walrus") == ["8500001.000100"]


def test_bots_are_searched_by_default(port: int) -> None:
    assert ids(port, "pipeline hello") == ["8500002.000100"]
    assert ids(port, "pipeline", from_role="bot") == ["8500002.000100"]


def test_no_character_of_a_text_is_lost_or_changed(port: int) -> None:
    told = ask(port, "open_thread", message="C1:1478500003.000100", earlier=0, later=0)
    assert told.lines[-1].endswith(f"Ada (client): {ALTERED}")
    assert ids(port, "１２３円") == ids(port, "123円") == ids(port, "$5") == ids(port, "it's") == ["8500003.000100"]


def test_the_twelfth_link_is_as_whole_as_the_first(port: int) -> None:
    told = ask(port, "open_thread", message="C1:1478500004.000100", earlier=0, later=0)
    assert told.lines[-1].endswith(" ".join(f"page {n} (https://docs.example/{n})" for n in range(1, 13)))


def test_after_a_day_includes_that_day_in_the_zone_of_the_corpus(port: int) -> None:
    assert ids(port, "Tokyo", after="2016-11-07") == ["8444400.000100"]
    assert ids(port, "Tokyo", before="2016-11-07") == ["8444399.000100"]
    told = ask(port, "count_messages", query="Tokyo", after="2016-11-07")
    assert told.lines[0].startswith("searched: Tokyo; after 2016-11-06T15:00Z (")


def test_a_long_thread_does_not_eat_the_limit(port: int) -> None:
    told = ask(port, "search_messages", query="puffin", limit=6)
    assert sum("elsewhere" in line for line in told.lines) == 5
    assert told.lines[2].startswith("shown 6, left out 41 (unseen_messages)")


def test_a_thread_shows_the_message_asked_for_wherever_it_stands(port: int) -> None:
    told = ask(port, "open_thread", message="C1:1478600035.000100", earlier=2, later=2)
    assert told.lines[:2] == [
        "view: thread in #general, thread C1:1478600000.000100 of 42 messages (times UTC)",
        f"shown 5, left out earlier 33, later 4 | session {told.session} batch 1",
    ]
    assert told.shown[2] == "C1:1478600035.000100"


def test_a_broadcast_reply_is_one_message_of_its_thread(port: int) -> None:
    assert ids(port, '"told to all"') == ["8600050.000100"]
    assert ids(port, '"thread begins"') == ["8600000.000100"]
    line = ask(port, "search_messages", query='"told to all"').lines[-1]
    assert line.endswith("[thread C1:1478600000.000100, 42]"), "its size stands beside it: no call per message"


def test_a_deleted_root_stands_in_its_thread_and_is_not_counted(port: int) -> None:
    told = ask(port, "open_thread", message="C1:1478500010.000100")
    assert told.shown == ["C1:1478500009.000100", "C1:1478500010.000100"]
    assert "tombstone" in told.lines[2]
    assert ask(port, "count_messages", thread="C1:1478500009.000100").number("found: ") == 1


def test_a_stem_finds_every_form_of_a_word_and_one_form_does_not_stand_for_another(port: int) -> None:
    assert len(ids(port, "суббот")) == 2
    assert len(ids(port, "суббота")) == 1
    told = ask(port, "count_messages", query="суббота")
    assert "term суббота: 1 message; close: субботу 1" in told.lines


def test_words_in_scripts_without_spaces_are_found(port: int) -> None:
    assert ids(port, "星期三") == ["8680002.000100"]
    assert ids(port, "docker") == ids(port, "部署") == ["8680004.000100"]


def test_half_width_kana_is_found_by_full_width_and_back(port: int) -> None:
    assert ids(port, "カタカナ") == ids(port, "ｶﾀｶﾅ") == ids(port, "メッセージ") == ["8680003.000100"]


def test_a_whole_word_is_not_found_inside_others_and_accents_do_not_matter(port: int) -> None:
    assert ids(port, "=ana") == ids(port, "orcamento") == ids(port, "ORÇAMENTO") == ["8680005.000100"]
    assert ask(port, "search_messages", query="ana").lines[3] == "inside: semana 3, ana 1"


def test_guests_bots_and_missing_members_have_names_where_there_are_any(port: int) -> None:
    line = ask(port, "search_messages", query="pelicans").lines[-1]
    assert "ask @Ada and @UGUEST and @Nora about ⟦pelicans⟧" in line
    assert " Slackbot (" in ask(port, "search_messages", query="herons").lines[-1]
    assert " UMISSING (unknown)" in ask(port, "search_messages", query="ibis").lines[-1]
    assert " Pipey (bot)" in ask(port, "search_messages", query="hello").lines[-1]


def test_no_token_and_no_address_is_found_or_exported(port: int) -> None:
    assert ids(port, "xoxe") == ids(port, "secret.example") == []
    told = ask(port, "export_messages", after="1970")
    exported = Path(told.lines[-1].removeprefix("link: ")).read_text("utf-8")
    assert LEAKED not in exported
    assert "secret.example" not in exported


def test_a_cursor_with_another_limit_skips_nothing(port: int) -> None:
    first = ask(port, "search_messages", query="puffin", limit=7)
    shown = list(first.shown)
    for limit in (3, 20, 1, 50):
        shown += ask(port, "unseen_messages", query="puffin", limit=limit, session=first.session).shown
    assert len(shown) == len(set(shown)) == 47


def test_what_each_search_covered_and_left_is_always_said(port: int) -> None:
    for order in ("best", "newest"):
        told = ask(port, "search_messages", query="puffin", order=order, limit=20)
        assert told.lines[1] == "found: 47 messages by 1 author in 1 conversation, 2016-11-08 to 2016-11-08"
        assert told.lines[2].startswith("shown 20, left out 27 (unseen_messages)")


def table_row(native: str, body: str, day: int = 1) -> dict[str, Any]:
    return {
        "conversation": "room",
        "native_id": native,
        "sent_at": f"2016-09-{day:02}T10:00:00Z",
        "author": f"author {native}",
        "body": body,
    }


def test_copies_do_not_eat_the_limit(tmp_path: Path) -> None:
    rows = [table_row(f"{n}", "the very same alert about disk space", 1 + n) for n in range(20)]
    rows += [table_row(f"x{n}", f"disk space is low on host {n}", 21 + n) for n in range(4)]
    app = app_over(table_settings(tmp_path, rows))
    app.refresh()
    with running(app) as port:
        told = ask(port, "search_messages", query="disk space", limit=5)
    assert told.lines[2].startswith("shown 5, left out 0, seen before 0, copies 19 |")
    assert sum(line.endswith(" (+19 copies)") for line in told.lines) == 1


def test_a_new_reply_to_an_old_thread_is_there_after_the_next_refresh(tmp_path: Path) -> None:
    root = table_row("1", "an old question")
    app = app_over(table_settings(tmp_path, [root, table_row("2", "something else", 2)]))
    app.refresh()
    (tmp_path / "messages.jsonl").unlink()
    reply = {**table_row("3", "the late answer", 28), "thread_native_id": "1"}
    later = app_over(table_settings(tmp_path, [root, table_row("2", "something else", 2), reply]))
    later.refresh()
    with running(later) as port:
        assert ask(port, "open_thread", message="room:1").shown == ["room:1", "room:3"]

from collections import Counter
from itertools import islice, pairwise

import pytest

from engine.errors import BadInput
from engine.model import TOMBSTONE, SourceMessage
from engine.synth import generate
from engine.synth.chance import random_for
from engine.synth.corpus import DAY, ZONE_HOURS, _times, kind_of, local_day, plan, rows
from engine.text import fold


@pytest.fixture(scope="module")
def forty_thousand() -> list[SourceMessage]:
    return list(generate(40_000, 1))


@pytest.mark.parametrize("messages", [1_000, 1_001, 5_000])
@pytest.mark.parametrize("seed", [0, 1, -7])
def test_a_corpus_has_exactly_the_messages_asked_for(messages: int, seed: int) -> None:
    ids = [m.message_id for m in generate(messages, seed)]
    assert len(ids) == len(set(ids)) == messages


@pytest.mark.parametrize("messages", [-1, 0, 999, 10_000_001])
def test_too_few_or_too_many_are_refused(messages: int) -> None:
    with pytest.raises(BadInput) as caught:
        next(generate(messages, 1))
    assert caught.value.to_text() == (
        f"bad_messages: a corpus of {messages} messages cannot be made; give 1000 to 10000000"
    )


def test_a_large_corpus_begins_at_once() -> None:
    assert len(list(islice(generate(10_000_000, 1), 1_000))) == 1_000


def test_another_seed_or_size_is_another_corpus() -> None:
    first = [m.body for m in generate(1_000, 1)]
    assert first == [m.body for m in generate(1_000, 1)]
    assert first != [m.body for m in generate(1_000, 2)]
    assert first != [m.body for m in islice(generate(1_001, 1), 1_000)]


def test_rows_come_by_conversation_and_rise_in_time() -> None:
    made = plan(3_000, 1)
    said = list(rows(made))
    order = {c.conversation_id: n for n, c in enumerate(made.place.conversations)}
    places = [(order[s.conversation.conversation_id], s.at) for s in said]
    assert all(one < other for one, other in pairwise(places))
    assert {local_day(s.at) for s in said} <= set(range(365))


def test_talk_leaves_the_moments_of_stories_free() -> None:
    free = _times(random_for("times"), 0, 50, set())
    assert len(set(free)) == 50
    assert not set(_times(random_for("times"), 0, 50, set(free))) & set(free)


def test_every_reply_has_its_root_before_it_and_roots_know_how_many() -> None:
    replies: Counter[str] = Counter()
    told: dict[str, int] = {}
    for said in rows(plan(3_000, 1)):
        if said.thread is None:
            continue
        if said.thread == said.at:
            told[said.message_id] = said.replies
        else:
            root = said._replace(at=said.thread).message_id
            assert root in told
            replies[root] += 1
    assert replies == told


def test_a_quarter_or_more_has_another_date_in_utc(forty_thousand: list[SourceMessage]) -> None:
    zone = ZONE_HOURS * 3_600_000_000
    other = sum(m.sent_at // DAY != (m.sent_at + zone) // DAY for m in forty_thousand)
    assert 0.2 < other / len(forty_thousand) < 0.4


def test_texts_have_about_two_hundred_bytes(forty_thousand: list[SourceMessage]) -> None:
    assert 180 < sum(len(m.body.encode()) for m in forty_thousand) / len(forty_thousand) < 220


def test_the_talk_is_mixed(forty_thousand: list[SourceMessage]) -> None:
    kinds = Counter(m.kind for m in forty_thousand)
    assert set(kinds) == {"message", "bot", "file", "activity", TOMBSTONE}
    assert kinds["message"] > 30_000
    assert kinds["activity"] > 500
    roles = Counter(m.from_role for m in forty_thousand)
    assert set(roles) == {"teammate", "client", "bot", "unknown"}
    assert roles["client"] > 8_000

    def holding(first: str, last: str) -> int:
        return sum(any(first <= c <= last for c in m.body) for m in forty_thousand)

    assert holding("а", "я") > 1_000
    assert holding("ぁ", "ヿ") > 800
    assert holding("ء", "ي") > 300
    assert sum("\u200d" in m.body for m in forty_thousand) > 100
    assert sum("```" in m.body for m in forty_thousand) > 300


def test_people_repeat_one_another_exactly_and_nearly(forty_thousand: list[SourceMessage]) -> None:
    authors: dict[str, set[str]] = {}
    for message in forty_thousand:
        if len(message.body.split()) >= 8 and message.kind == "message":
            authors.setdefault(fold(message.body), set()).add(message.author_id)
    assert sum(len(some) > 1 for some in authors.values()) > 200
    assert sum(text.removesuffix(" (again)") in authors for text in authors if text.endswith(" (again)")) > 30


def test_the_broad_word_fills_just_over_a_megabyte(forty_thousand: list[SourceMessage]) -> None:
    size = sum(len(m.body.encode()) for m in forty_thousand if "deployment" in fold(m.body))
    assert 1_048_576 < size < 1_150_000


def test_kinds_are_those_a_reader_gives() -> None:
    seen = {(s.subtype, kind_of(s)) for s in rows(plan(1_000, 1)) if s.subtype}
    assert seen == {
        ("tombstone", "tombstone"),
        ("bot_message", "bot"),
        ("file_share", "file"),
        ("me_message", "message"),
        ("thread_broadcast", "message"),
        *((subtype, "activity") for subtype in (
            "channel_join", "channel_leave", "channel_topic", "channel_purpose", "channel_name",
            "channel_archive", "channel_unarchive", "pinned_item", "bot_add", "reminder_add",
        )),
    }  # fmt: skip

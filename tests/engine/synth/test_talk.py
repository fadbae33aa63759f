from engine.sources.slack_text import Naming, plain
from engine.synth.chance import random_for
from engine.synth.people import workspace
from engine.synth.talk import Talk, Text, escaped
from engine.text import fold

PLACE = workspace()


def _texts(room: str, count: int) -> list[Text]:
    talk = Talk(PLACE.named(room), random_for("talk", room))
    return [talk.say(reply=n % 3 == 0) for n in range(count)]


def test_talk_is_the_same_for_the_same_chance() -> None:
    assert _texts("engineering", 50) == _texts("engineering", 50)


def test_slacks_spelling_reads_as_the_text() -> None:
    everyone = [p for c in PLACE.conversations for p in c.members]
    names = {p.user_id: p.author for p in everyone if p.listed or p.profiled}
    naming = Naming(names.get, str)
    for room in ("support", "random", "команда-ру"):
        for body, raw in _texts(room, 700):
            assert plain(escaped(body) if raw is None else raw, naming) == body


def test_talk_never_names_what_only_stories_may() -> None:
    planted = ("openai", "theodolite", "reconciliation", "badge reader", "wrenlog", "шлюз", "従量")
    for room in (
        "engineering",
        "support",
        "日本チーム",
        "команда-ру",
        "中文讨论",
        "arabic-desk",
        "billing",
        "security",
    ):
        for body, _ in _texts(room, 400):
            assert not [word for word in planted if word in fold(body)]


def test_words_fall_off_as_in_speech() -> None:
    counts: dict[str, int] = {}
    for body, _ in _texts("engineering", 6_000):
        for word in fold(body).split():
            counts[word] = counts.get(word, 0) + 1
    falling = sorted(counts.values(), reverse=True)
    assert len(falling) > 8_000
    assert sum(falling[:100]) > sum(falling) // 2
    assert falling.count(1) > len(falling) // 2


def test_escapes_are_slacks_three() -> None:
    assert escaped("a < b && 'c' > \"d\"") == "a &lt; b &amp;&amp; 'c' &gt; \"d\""

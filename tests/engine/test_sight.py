"""What is out of sight does not exist: every answer equals that over a corpus from which it was removed."""

import random
from pathlib import Path
from typing import Any

import pytest

from engine.answer import Answer
from engine.errors import EngineError
from engine.export import begin
from engine.facts import facts_object, instructions
from engine.model import ACTIVITY, TOMBSTONE
from engine.requests import Criteria, ExportRequest
from engine.sight import EVERYTHING, Sight
from infra.localdir import LocalExports
from tests.engine.corpora import MINUTE, NOON, SETTINGS, Desk, corpus_of, desk_of, random_messages, random_query, sees


@pytest.mark.parametrize(
    ("sight", "seen"),
    [
        (EVERYTHING, True),
        (Sight(allow=("general",)), True),
        (Sight(allow=("#General",)), True),
        (Sight(allow=("GÉNÉRAL",)), True),
        (Sight(allow=("c0*",)), True),
        (Sight(allow=("gen*", "other")), True),
        (Sight(allow=("other",)), False),
        (Sight(allow=("gen*",), deny=("*eral",)), False),
        (Sight(deny=("c01",)), False),
        (Sight(deny=("c02",)), True),
    ],
)
def test_a_sight_names_conversations_by_name_id_or_pattern(sight: Sight, seen: bool) -> None:  # noqa: FBT001 - a table
    assert sight.sees_conversation("C01", "general") is seen
    assert sight.sees_conversation("C01", "#general") is seen
    assert sight.is_everything is (sight == EVERYTHING)


@pytest.mark.parametrize("name", ["[hr] private", "what?", "a*b", "#[x", "[!a]", "ÄRZTE [intern]"])
def test_a_name_that_looks_like_a_pattern_is_still_a_name(name: str) -> None:
    assert not Sight(deny=(name,)).sees_conversation("C1", name)
    assert Sight(allow=(name,)).sees_conversation("C1", name)
    assert not Sight(deny=(name.upper(),)).sees_conversation("C1", name)


FILTERS: tuple[dict[str, Any], ...] = (
    {},
    {"author": ("zoe",)},
    {"from_role": ("client",)},
    {"kind": ("activity", "message")},
    {"to_role": ("client",), "min_words": 3},
    {"conversation": ("общий",), "after": "2016-12-02"},
)


def random_sight(chance: random.Random) -> Sight:
    return Sight(
        allow=chance.choice(((), (), ("c1", "c2"), ("общий",), ("gen*",), ("nowhere",))),
        deny=chance.choice(((), (), ("c3",), ("общ*",))),
        roles=chance.choice(((), (), ("client", "vendor"), ("teammate", "nobody"))),
        kinds=chance.choice(((), (), ("message", TOMBSTONE), ("message", ACTIVITY, "bot"))),
        oldest=chance.choice((None, None, NOON + 40_000 * MINUTE // 8)),
    )


@pytest.mark.parametrize("seed", range(15))
def test_every_answer_is_that_of_a_corpus_without_what_is_out_of_sight(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    messages = random_messages(chance, 40)
    corpus = corpus_of(tmp_path, messages, index=False)
    exports = LocalExports(tmp_path)
    for sight in (random_sight(chance) for _ in range(4)):
        whole = desk_of(tmp_path, corpus, sight)
        rest = desk_of(tmp_path, corpus_of(tmp_path, [m for m in messages if sees(sight, m)], index=False))
        assert facts_object(whole.view) == facts_object(rest.view)
        assert instructions(whole.view, "x") == instructions(rest.view, "x")
        query = chance.choice(("", random_query(chance)))
        filters = chance.choice(FILTERS)
        by = chance.choice(
            ((), ("author",), ("month", "from_role"), ("conversation", "kind"), ("to_role",), ("status",))
        )
        order, context = chance.choice(("best", "newest", "oldest")), chance.choice((0, 2))
        arguments = {"order": order, "context": context, "limit": 50, **filters}
        answers = [
            (
                told(desk, "count", query, by=by, **filters),
                told(desk, "search", query, **arguments),
                exported(desk, exports, query, **filters),
                *(
                    told(desk, "thread", m.message_id, view=("auto", "author")[i % 2])
                    for i, m in enumerate(messages[:3])
                ),
            )
            for desk in (whole, rest)
        ]
        assert answers[0] == answers[1]


def told(desk: Desk, tool: str, *words: str, **arguments: Any) -> object:
    """What a tool says, whatever the session is called."""
    try:
        answer: Answer = getattr(desk, tool)(*words, **arguments)
    except EngineError as error:
        return error.to_object()
    return {name: value for name, value in answer.object.items() if name != "session"}


def exported(desk: Desk, exports: LocalExports, query: str, **filters: Any) -> object:
    request = ExportRequest(Criteria(query=query or "NOT zzz", **filters))
    try:
        job = begin(request, desk.call, exports, SETTINGS)
    except EngineError as error:
        return error.to_object()
    if isinstance(job, Answer):
        return job.object
    job.run()
    return Path(exports.link(job.export)).read_bytes()

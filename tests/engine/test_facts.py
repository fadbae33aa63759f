"""What anyone is told of a corpus before the first question."""

from pathlib import Path

import pytest

from engine.facts import facts_line, facts_object, instructions
from engine.model import ACTIVITY, TOMBSTONE
from tests.engine.corpora import corpus_of, said, view_of

MESSAGES = [
    said(1, "東京", from_role="client", thread_native_id="1"),
    said(2, "東京に行く", from_role="client", thread_native_id="1"),
    said(3, "Привет 東京", status="open", conversation="общий"),
    said(4, "joined", kind=ACTIVITY),
    said(5, "", kind=TOMBSTONE),
    said(6, "latin", kind="bot"),
]


def test_facts_count_what_is_searched(tmp_path: Path) -> None:
    view = view_of(corpus_of(tmp_path, MESSAGES, index=False))
    assert facts_object(view) == {
        "conversations": 2,
        "roles": {"client": 2, "unknown": 2},
        "kinds": {"message": 3, "bot": 1, "activity": 1},
        "statuses": {"open": 1},
        "in_threads": 2,
        "scripts": {"Chinese": 2, "Japanese": 1, "Cyrillic": 1},
    }
    assert facts_line(view) == (
        "Conversations: general 3, общий 1. Roles: client 2, unknown 2."
        " Kinds: message 3, bot 1, activity 1 (on request only). Status: open 1. 2 messages are in threads."
        " 2 hold Chinese, 1 Japanese, 1 Cyrillic characters."
    )
    assert instructions(view, "our\ncorpus").startswith(
        "Hayfork searches our ⏎ corpus: 4 messages, 2016-11-30 to 2016-11-30, as of 2016-11-30T12:00:00Z."
        " The server reads every message; you see only what you ask for.\nConversations: "
    )


def test_an_empty_corpus_has_short_facts(tmp_path: Path) -> None:
    view = view_of(corpus_of(tmp_path, [], index=False))
    assert facts_line(view) == "0 conversations. 0 messages are in threads."
    assert instructions(view, "x").startswith("Hayfork searches x: 0 messages, as of 2016-11-30T12:00:00Z.")


@pytest.mark.parametrize("letter", ["x", "ж", "花", "🎉"])
def test_facts_never_exceed_their_bytes(tmp_path: Path, letter: str) -> None:
    messages = [
        said(n, "x", conversation=letter * 80 + str(n), from_role=letter * 70 + str(n), kind=letter * 60 + str(n))
        for n in range(20)
    ]
    line = facts_line(view_of(corpus_of(tmp_path, messages, index=False)))
    assert 300 < len(line.encode()) <= 600
    roomy = facts_line(
        view_of(corpus_of(tmp_path, [said(n, "x", conversation=letter * 29 + str(n)) for n in range(20)]))
    )
    assert len(roomy.encode()) <= 600
    assert " more. " in roomy

"""Names, dates and words bound to what is visible; what does not exist is answered with the nearest that does."""

from datetime import UTC
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from engine.errors import BadInput, NotFound
from engine.limits import Limits, QueryLimits
from engine.model import ACTIVITY, BROADCAST, TOMBSTONE
from engine.query.bind import BoundQuery, Echo, bind
from engine.requests import Criteria
from engine.sight import Sight
from engine.view import View
from tests.engine.corpora import corpus_of, said, view_of

MESSAGES = [
    said(1, "one", author="Zoë", author_id="U1", from_role="client", status="Open "),
    said(2, "two", author="Zoe", author_id="U2", to_role="vendor"),
    said(3, "three", author=" Bob ", author_id="U3", to_role=BROADCAST, thread_native_id="2"),
    said(
        4, "four words are here", author="@Kim", author_id="U4", conversation="#ops", conversation_id="C2", kind="poll"
    ),
    said(5, "five", author="Kim", author_id="U5", conversation="ops", conversation_id="C3", kind=ACTIVITY),
    said(6, "", author="Gone", author_id="U6", kind=TOMBSTONE),
]


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> View:
    return view_of(corpus_of(tmp_path_factory.mktemp("bind"), MESSAGES, index=False))


def bound(view: View, query: str = "", **filters: Any) -> BoundQuery:
    return bind(Criteria(query, **filters), view, UTC)


def bodies(view: View, query: BoundQuery) -> list[str]:
    rows = [row for row, inside in enumerate(query.scope(view).tolist()) if inside]
    return sorted(m.body for m in view.corpus.messages(rows))


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({}, ["four words are here", "one", "three", "two"]),
        ({"author": ("ZOE",)}, ["one", "two"]),
        ({"author": ("@zoë",)}, ["one", "two"]),
        ({"author": ("u1",)}, ["one"]),
        ({"author": ("bob",)}, ["three"]),
        ({"author": ("kim",)}, ["four words are here"]),
        ({"author": ("U1", "Bob")}, ["one", "three"]),
        ({"conversation": ("#OPS",)}, ["four words are here"]),
        ({"conversation": ("＃ops",)}, ["four words are here"]),
        ({"conversation": (" General ",)}, ["one", "three", "two"]),
        ({"conversation": ("c2", "general")}, ["four words are here", "one", "three", "two"]),
        ({"from_role": ("CLIENT",)}, ["one"]),
        ({"from_role": ("bot",)}, []),
        ({"to_role": ("Vendor",)}, ["three", "two"]),
        ({"to_role": ("*",)}, ["three"]),
        # A broadcast matches every value, also one that no other message is addressed to.
        ({"to_role": ("client",)}, ["three"]),
        ({"status": ("open",)}, ["one"]),
        ({"kind": ("poll",)}, ["four words are here"]),
        ({"kind": ("activity", "poll")}, ["five", "four words are here"]),
        ({"kind": ("file",)}, []),
        ({"thread": ("general:2",)}, ["three", "two"]),
        ({"thread": (" general:1 ", "general:2")}, ["one", "three", "two"]),
        ({"min_words": 2}, ["four words are here"]),
        ({"after": "2016-11-30T12:03Z"}, ["four words are here", "three"]),
        ({"before": "2016-11-30T12:02Z"}, ["one"]),
        ({"after": "2016-11-30T12:02Z", "before": "2016-11-30T12:03Z"}, ["two"]),
    ],
)
def test_a_filter_leaves_the_messages_it_names(view: View, filters: dict[str, Any], found: list[str]) -> None:
    assert bodies(view, bound(view, **filters)) == found


@pytest.mark.parametrize(
    ("filters", "nearest"),
    [
        ({"author": ("zo",)}, {"Zoe": 2}),
        ({"author": ("gnoe",)}, {"Zoe": 2}),
        ({"conversation": ("op",)}, {"#ops": 1}),
        ({"conversation": ("",)}, {"general": 3, "#ops": 1}),
        ({"from_role": ("cleint",)}, {"client": 1}),
        ({"status": ("closed",)}, {"Open ": 1}),
        ({"kind": (TOMBSTONE,)}, {"message": 3, "activity": 1, "poll": 1}),
        ({"to_role": ("nobody",)}, {"*": 1, "vendor": 1}),
    ],
)
def test_what_no_message_has_is_an_error_with_the_nearest_values(
    view: View, filters: dict[str, Any], nearest: dict[str, int]
) -> None:
    with pytest.raises(NotFound) as raised:
        bound(view, **filters)
    assert (raised.value.code, raised.value.next_step) == ("unknown_value", "use one of nearest")
    assert raised.value.nearest == nearest


def test_nearest_values_no_longer_count_activity_nor_put_likeness_before_what_holds_the_value(tmp_path: Path) -> None:
    authors = {"Zara Zinnia": 3, "Zara Yarrow": 5, "Zora": 9, "Mozara Brightwater": 1, "Zar": 1, "Ana": 50}
    names = [name for name, number in authors.items() for _ in range(number)]
    messages = [
        *(said(at, "x", author=name, from_role="client") for at, name in enumerate(names)),
        *(
            said(at, "joined", author="Mozara Brightwater", from_role="clientele", kind=ACTIVITY)
            for at in range(90, 99)
        ),
    ]
    view = view_of(corpus_of(tmp_path, messages, index=False))
    nearest = []
    asked: tuple[dict[str, Any], ...] = ({"author": ("zara",)}, {"from_role": ("clien",)}, {"kind": ("activ",)})
    for filters in asked:
        with pytest.raises(NotFound) as raised:
            bound(view, **filters)
        nearest.append(list(raised.value.nearest.items()))
    assert nearest == [
        [("Zara Yarrow", 5), ("Zara Zinnia", 3), ("Mozara Brightwater", 1), ("Zar", 1), ("Zora", 9), ("Ana", 50)],
        [("client", 69), ("clientele", 0)],
        [("activity", 9)],
    ]


@pytest.mark.parametrize("thread", ["general:9", "general:3", ""])
def test_a_thread_is_named_by_its_root_alone(view: View, thread: str) -> None:
    with pytest.raises(NotFound) as raised:
        bound(view, thread=(thread,))
    assert raised.value.message == f"no thread is called '{thread}'"
    assert raised.value.next_step == "copy the thread of a message from a result"


def test_a_corpus_without_any_value_says_to_leave_the_filter_out(tmp_path: Path) -> None:
    view = view_of(corpus_of(tmp_path, [said(1, "x")], index=False))
    with pytest.raises(NotFound) as raised:
        bound(view, status=("open",))
    assert (raised.value.next_step, raised.value.nearest) == ("no message has a status: leave it out", {})


def test_names_out_of_sight_do_not_exist(view: View) -> None:
    narrow = View(view.corpus, Sight(allow=("general",), roles=("unknown",)), Limits())
    hidden: tuple[dict[str, Any], ...] = (
        {"conversation": ("ops",)},
        {"author": ("U1",)},
        {"from_role": ("vendor",)},
        {"thread": ("C2:4",)},
    )
    for filters in hidden:
        with pytest.raises(NotFound) as raised:
            bound(narrow, **filters)
        assert not {"#ops", "ops", "Zoë", "client"} & raised.value.nearest.keys()
    assert bodies(narrow, bound(narrow, author=("zoe",))) == ["two"]


def test_a_name_that_several_share_is_noted_with_their_ids(view: View, tmp_path: Path) -> None:
    assert bound(view, author=("zoe",)).notes == ("author 'zoe' is two people: U1, U2; filter by id for one",)
    assert bound(view, conversation=("ops",)).notes == (
        "conversation 'ops' is two conversations: C2, C3; filter by id for one",
    )
    assert bound(view, author=("U1",)).notes == ()
    many = view_of(corpus_of(tmp_path, [said(n, "x", author="Sam", author_id=f"U{n}") for n in range(8)], index=False))
    (note,) = bound(many, author=("Sam",)).notes
    assert note == "author 'Sam' is 8 people: U0, U1, U2, U3, U4, U5 and 2 more; filter by id for one"


@pytest.mark.parametrize(
    ("filters", "code"),
    [
        ({"after": "2016-13"}, "bad_time"),
        ({"before": "soon"}, "bad_time"),
        ({"after": "2016-11-02", "before": "2016-11-01"}, "bad_time"),
        ({"after": "2016-11-02", "before": "2016-11-02"}, "bad_time"),
    ],
)
def test_input_that_cannot_hold_is_an_error(view: View, filters: dict[str, Any], code: str) -> None:
    with pytest.raises(BadInput) as raised:
        bound(view, **filters)
    assert raised.value.code == code


@pytest.mark.parametrize(
    ("filters", "way_out"),
    [
        ({"from_role": ("client, teammate",)}, 'give a list: ["client", "teammate"]'),
        ({"author": ('["@Юрий","zara zinnia"]',)}, 'give a list: ["Юрий", "Zara Zinnia"]'),
        ({"from_role": ("client, zzz",)}, "use one of nearest"),
    ],
)
def test_a_list_given_as_one_text_was_called_unknown_and_no_more(
    tmp_path: Path, filters: dict[str, Any], way_out: str
) -> None:
    messages = [
        said(1, "x", author="Юрий", from_role="client"),
        said(2, "x", author="Zara Zinnia", from_role="teammate"),
    ]
    with pytest.raises(NotFound) as raised:
        bound(view_of(corpus_of(tmp_path, messages, index=False)), **filters)
    assert raised.value.next_step == way_out


def test_a_shorter_echo_lost_how_many_values_there_were(view: View) -> None:
    query = bound(view, from_role=("client", "teammate", "bot", "unknown"), after="2016-11-07", min_words=12)
    assert (query.conditions[0].echo(), query.filters()["from_role"]) == (
        "from_role client, teammate, bot and 1 more",
        ["client", "teammate", "bot", "and 1 more"],
    )
    some, none = Echo(60, 5, 1), Echo(60, 5, 0)
    assert [condition.echo(some) for condition in query.conditions] == [
        "from_role clie… and 3 more",
        "min_words 12",
        "after 2016-11-07T00:00Z",
    ]
    assert query.filters(some) == {
        "from_role": ["clie…", "and 3 more"],
        "min_words": 12,
        "after": "2016-11-07T00:00:00Z",
    }
    assert (query.conditions[0].echo(none), query.filters(none)["from_role"]) == ("from_role 4 values", ["4 values"])


def test_an_echo_gives_exact_instants_and_bounded_values(view: View) -> None:
    criteria = Criteria(
        query="docker OR " + "x" * 400,
        author=("U1", "U2", "U3", "U4"),
        after="2016-11",
        before="2016-11-30T13:30",
        min_words=2,
    )
    query = bind(criteria, view, ZoneInfo("Asia/Kolkata"))
    assert len(query.canonical) == 300
    assert query.canonical.endswith("x…")
    assert query.filters() == {
        "author": ["Zoë", "Zoe", " Bob ", "and 1 more"],
        "min_words": 2,
        "after": "2016-10-31T18:30:00Z",
        "before": "2016-11-30T08:00:00Z",
    }
    assert [condition.echo() for condition in query.conditions] == [
        "author Zoë, Zoe,  Bob  and 1 more",
        "min_words 2",
        "after 2016-10-31T18:30Z",
        "before 2016-11-30T08:00Z",
    ]
    assert query.fixed == {"min_words", "after", "before"}


def test_fractions_of_a_second_are_echoed_in_both_forms(view: View) -> None:
    query = bound(view, after="2016-11-07T10:00:00.5Z")
    assert query.filters() == {"after": "2016-11-07T10:00:00.500000Z"}
    assert query.conditions[0].echo() == "after 2016-11-07T10:00:00.500000Z"


def test_a_long_value_is_echoed_by_its_beginning(tmp_path: Path) -> None:
    view = view_of(corpus_of(tmp_path, [said(1, "x", author="y" * 60)], index=False))
    assert bound(view, author=("y" * 60,)).filters() == {"author": ["y" * 39 + "…"]}


def test_activity_is_hidden_until_kind_is_asked_for(view: View) -> None:
    hidden = bound(view).hidden(view)
    assert hidden is not None
    assert [m.body for m in view.corpus.messages(hidden.nonzero()[0].tolist())] == ["five"]
    asked = bound(view, kind=("poll",))
    assert asked.hidden(view) is None
    assert bodies(view, asked) == ["four words are here"]
    assert not asked.scope(view, without="kind")[hidden].any()


def test_a_limit_of_the_deployment_is_the_limit(view: View) -> None:
    narrow = View(view.corpus, view.sight, Limits(query=QueryLimits(terms=2, echo_chars=5)))
    assert bound(narrow, "abcdefg").canonical == "abcd…"
    with pytest.raises(BadInput) as raised:
        bound(narrow, "a b c")
    assert raised.value.code == "query_too_long"

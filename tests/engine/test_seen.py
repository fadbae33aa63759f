"""Keys packed and unpacked, and what identifies a call."""

from dataclasses import fields, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.call import mint_handle
from engine.ports import Batch
from engine.requests import Criteria, Request, SearchRequest, ThreadRequest, UnseenRequest
from engine.seen import Session, digest, packed, unpacked


@given(st.lists(st.integers(0, 2**64 - 1)))
@settings(max_examples=50, deadline=None, derandomize=True)
def test_keys_are_eight_bytes_each_and_come_back_in_order(keys: list[int]) -> None:
    raw = packed(keys)
    assert raw == b"".join(key.to_bytes(8, "big") for key in keys)
    assert unpacked(raw).tolist() == keys


def test_a_digest_names_tool_and_arguments_but_neither_session_nor_batch() -> None:
    asked = SearchRequest(Criteria("docker"))
    assert digest(asked) == digest(replace(asked, session="x"))
    assert digest(UnseenRequest(asked)) == digest(UnseenRequest(replace(asked, session="x"), 3))
    assert digest(ThreadRequest(("a",))) == digest(ThreadRequest(("a",), session="x"))
    others: list[Request] = [
        UnseenRequest(asked),
        replace(asked, limit=11),
        replace(asked, order="newest"),
        replace(asked, criteria=Criteria("docker", after="2016")),
        ThreadRequest(("a",)),
        ThreadRequest(("a", "b")),
        ThreadRequest(("a",), text_offset=1),
    ]
    assert len({digest(each) for each in (asked, *others)}) == len(others) + 1
    assert {field.name for field in fields(UnseenRequest)} == {"search", "after_batch"}


def batch(number: int, shown: list[int], around: list[int], groups: list[int]) -> Batch:
    return Batch(number, number - 1, "ann", "d", 0, 0, packed(shown), packed(around), packed(groups))


def test_what_was_shown_around_a_hit_or_stood_for_is_seen() -> None:
    session = Session("h", "ann", (batch(1, [1, 2], [3], [50]), batch(2, [4], [], [])))
    keys, groups = unpacked(packed([1, 3, 4, 5, 6])), unpacked(packed([9, 9, 9, 50, 9]))
    assert session.seen(keys, groups).tolist() == [True, True, True, True, False]
    assert session.before(2).seen(keys, groups).tolist() == [True, True, False, True, False]
    assert (session.newest, session.before(1).newest, session.before(1).keys.tolist()) == (2, 0, [])


def test_a_handle_holds_128_bits() -> None:
    handles = {mint_handle() for _ in range(100)}
    assert len(handles) == 100
    assert {len(handle) for handle in handles} == {22}

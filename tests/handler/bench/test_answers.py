"""When two systems say the same."""

from dataclasses import replace

from handler.bench.answers import Answered, disagreement, of_tool

FULL = Answered(5, 4, 2, 3, "2025-01-01T00:00:00Z", "2025-02-01T00:00:00Z", {"2025-01": 5}, {"kind": [3, 1, 1]})


def test_what_a_system_does_not_compute_is_not_compared() -> None:
    assert disagreement({"a": FULL, "b": Answered(5), "c": replace(FULL, months=None)}) is None


def test_the_first_difference_is_named() -> None:
    assert disagreement({"a": FULL, "b": replace(FULL, threads=3)}) == "a and b differ in threads: 4 and 3"
    assert disagreement({"a": FULL, "b": replace(FULL, facets={"kind": [3, 2]})}) == "a and b differ in facets"


def test_a_tail_told_as_a_sum_equals_its_values() -> None:
    told = of_tool(
        {
            "found": {"messages": 5, "threads": 4, "conversations": 2, "authors": 3},
            "over_time": {"unit": "month", "rows": [["2025-01", 5, 9], ["2025-02", 0, 9]]},
            "top": {"kind": {"message": 3}},
            "rest": {"kind": {"values": 2, "messages": 2}},
        }
    )
    assert told == Answered(5, 4, 2, 3, None, None, {"2025-01": 5}, {"kind": [3, -2, 2]})
    assert disagreement({"tool": told, "other": FULL}) is None
    assert disagreement({"other": FULL, "tool": told}) is None
    assert disagreement({"tool": told, "other": replace(FULL, facets={"kind": [3, 1, 2]})}) is not None

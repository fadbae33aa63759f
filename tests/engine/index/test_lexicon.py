"""The terms of a region: found at their edges, told where they hold a needle, and remembered within bounds."""

import pytest

from engine.index.lexicon import Region

TERMS = ["banana", "ana", "bandana", "an", "nab"]


def test_terms_are_found_by_their_edges() -> None:
    region = Region(("\n" + "\n".join(TERMS) + "\n").encode())
    found = {
        (starts, ends): [region.term(n) for n in region.find("an", starts=starts, ends=ends).tolist()]
        for starts, ends in ((True, False), (False, True), (True, True))
    }
    assert found == {(True, False): ["ana", "an"], (False, True): ["an"], (True, True): ["an"]}


def test_no_more_searches_are_remembered_than_the_bound_and_none_of_very_many_terms(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("engine.index.lexicon._REMEMBERED", 2)
    monkeypatch.setattr("engine.index.lexicon._REMEMBERED_OFFSETS", 3)
    region = Region(("\n" + "\n".join(TERMS) + "\n").encode())
    counts = [len(region.matches(needle).numbers) for needle in ("an", "nab", "ban", "and", "nab", "an")]
    assert counts == [4, 1, 2, 1, 1, 4]
    assert list(region._known) == [b"and", b"nab"]

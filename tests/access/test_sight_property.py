"""Whatever a policy hides might as well not be there: 2,000 random policies, every tool, resource and instruction.

A caller under a policy over the whole corpus and one without over a corpus from which the rest was physically removed
are told the same, letter by letter, but for handles and links. Many policies spell one sight, so that what was removed
is built once for all of them.
"""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.ports import SeenStore
from engine.sight import EVERYTHING, Caller
from infra.dynamodb import DynamoSeen
from infra.sqlite import SqliteSeen
from tests.access.sights import Told, app_over, hard_messages, plan_of, random_sights, spelled, told
from tests.contracts.benches import new_table
from tests.depth import depth
from tests.engine.corpora import NOON, corpus_of, sees
from tests.local_aws import LocalAws

CORPORA = 8
SIGHTS = depth(25, 4)
POLICIES = depth(250, 20)
"""For each corpus: 2,000 together when digging deep."""

PLANS = 4
"""What is asked under one sight: each is a call of every tool."""


def hold(folder: Path, seed: int, seen: Callable[[], SeenStore], policies: int, sights: int) -> None:
    """The property, for so many policies over one corpus."""
    chance = random.Random(seed)
    messages = hard_messages(chance)
    whole = app_over(corpus_of(folder, messages), folder, seen())
    rests = []
    for sight in random_sights(chance, sights):
        left = [m for m in messages if sees(sight, m)]
        rest = app_over(corpus_of(folder, left), folder, seen())
        # What is removed answers once for each plan, whoever asks.
        plans = [plan_of(chance, messages) for _ in range(PLANS)]
        rests.append((sight, [(plan, told(rest, Caller("ann", EVERYTHING), plan)) for plan in plans]))
        rest.close()
    for number in range(policies):
        sight, plans_and_told = rests[number % len(rests)]
        plan, expected = chance.choice(plans_and_told)
        policy = spelled(sight, chance)
        given = told(whole, Caller(f"caller {number}", policy), plan)
        assert given == expected, difference(seed, policy, given, expected)
    whole.close()


def difference(seed: int, policy: object, given: Told, expected: Told) -> str:
    """The first answer that differs, for whoever mends it."""
    for number, (one, other) in enumerate(zip(given, expected, strict=True)):
        if one != other:
            return f"seed {seed}, {policy}, answer {number}:\n{one}\n{other}"
    return ""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(CORPORA))
def test_every_answer_is_that_of_a_corpus_from_which_the_rest_was_removed(tmp_path: Path, seed: int) -> None:
    hold(tmp_path, seed, lambda: SqliteSeen(tmp_path / "seen.sqlite", clock=lambda: NOON), POLICIES, SIGHTS)


@pytest.mark.aws
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(CORPORA, CORPORA + depth(CORPORA, 1)))
def test_so_it_is_over_the_other_store_of_sessions(tmp_path: Path, local_aws: LocalAws, seed: int) -> None:
    table = new_table(local_aws)
    endpoint = local_aws.dynamodb_endpoint
    hold(tmp_path, seed, lambda: DynamoSeen(table, endpoint_url=endpoint, clock=lambda: NOON), POLICIES, SIGHTS)

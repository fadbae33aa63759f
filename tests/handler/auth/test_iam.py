"""What of an ARN is an identity."""

import json
from pathlib import Path
from typing import Any

import pytest

from handler.auth.iam import iam_identity
from handler.auth.identity import Identity

EVENTS = Path(__file__).parents[2] / "fixtures" / "events"


def signed(arn: Any) -> dict[str, Any]:
    return {"requestContext": {"authorizer": {"iam": {"userArn": arn}}}}


@pytest.mark.parametrize(
    ("arn", "name"),
    [
        ("arn:aws:sts::123456789012:assumed-role/Agents/session", "iam:123456789012:role/Agents"),
        ("arn:aws:sts::123456789012:assumed-role/Agents/Admin", "iam:123456789012:role/Agents"),
        ("arn:aws-cn:sts::123456789012:assumed-role/A_b+c=d,e.f@g-h/x", "iam:123456789012:role/A_b+c=d,e.f@g-h"),
        ("arn:aws:iam::123456789012:user/division/zoe", "iam:123456789012:user/division/zoe"),
        ("arn:aws:iam::123456789012:root", "iam:123456789012:root"),
    ],
)
def test_account_and_role_are_the_identity_and_a_sessions_name_is_not(arn: str, name: str) -> None:
    assert iam_identity(signed(arn)) == Identity((name,))


@pytest.mark.parametrize(
    "arn",
    [
        None,
        "",
        7,
        "arn:aws:sts::123456789012:federated-user/Agents",
        "arn:aws:sts::123456789012:assumed-role/Agents",
        "arn:aws:sts::123456789012:assumed-role/Agents/",
        "arn:aws:sts::123456789012:assumed-role/Agents/a/b",
        "arn:aws:sts::12345678901:assumed-role/Agents/a",
        "arn:aws:sts::12345678901２:assumed-role/Agents/a",
        "x arn:aws:iam::123456789012:root",
    ],
)
def test_anything_else_is_nobody(arn: Any) -> None:
    assert iam_identity(signed(arn)) is None


@pytest.mark.parametrize("event", [{}, {"requestContext": None}, {"requestContext": {"authorizer": {"jwt": {}}}}])
def test_an_event_without_a_signer_is_nobodys(event: dict[str, Any]) -> None:
    assert iam_identity(event) is None


@pytest.mark.parametrize("name", ["http-api", "function-url"])
def test_both_gateways_name_the_signer_alike(name: str) -> None:
    event = json.loads((EVENTS / f"{name}.json").read_text("utf-8"))
    assert iam_identity(event) == Identity(("iam:000000000000:role/Agents",))

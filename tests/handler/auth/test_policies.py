"""From identities to callers."""

from datetime import UTC, timedelta, timezone
from typing import Any

import pytest

from engine.errors import BadInput
from engine.sight import EVERYTHING, Caller, Sight
from handler.auth.identity import Identity
from handler.auth.policies import Policies
from handler.settings_table import PolicySettings

BILLING = Identity(("key:billing", "key-id:0123456789abcdef"))
ROLE = Identity(("iam:123456789012:role/Analyst",))
TOKEN = Identity(("oauth:https://id.example#zoe", "oauth-client:https://id.example#cli"), frozenset({"read", "vip"}))


def policies(*blocks: dict[str, Any], tool_scopes: dict[str, str] | None = None) -> Policies:
    return Policies([PolicySettings(**block) for block in blocks], UTC, tool_scopes or {})


@pytest.mark.parametrize("identity", [BILLING, ROLE, TOKEN])
def test_without_policies_everybody_who_is_known_sees_everything(identity: Identity) -> None:
    assert policies().caller(identity) == Caller(identity.names[0], EVERYTHING)


@pytest.mark.parametrize("identity", [BILLING, ROLE, TOKEN])
def test_where_there_are_policies_whom_none_fits_may_not_ask(identity: Identity) -> None:
    assert policies({"callers": ["key:somebody"]}).caller(identity) is None


@pytest.mark.parametrize(
    ("pattern", "fits"),
    [
        ("key:billing", BILLING),
        ("key-id:0123456789abcdef", BILLING),
        ("key:*", BILLING),
        ("iam:123456789012:role/*", ROLE),
        ("iam:*:role/Analyst", ROLE),
        ("oauth:https://id.example#zoe", TOKEN),
        ("oauth-client:https://id.example#cli", TOKEN),
        ("oauth:*", TOKEN),
    ],
)
def test_a_policy_names_callers_whole_or_by_pattern(pattern: str, fits: Identity) -> None:
    made = policies({"callers": [pattern], "roles": ["client"]})
    for identity in (BILLING, ROLE, TOKEN):
        expected = Caller(identity.caller_id, Sight(roles=("client",))) if identity is fits else None
        assert made.caller(identity) == expected


def test_the_first_policy_that_fits_counts() -> None:
    made = policies(
        {"callers": ["key:billing"], "allow": ["billing*"]}, {"callers": ["*"], "deny": ["hr"], "kinds": ["message"]}
    )
    assert made.caller(BILLING) == Caller("key:billing", Sight(allow=("billing*",)))
    assert made.caller(ROLE) == Caller(ROLE.caller_id, Sight(deny=("hr",), kinds=("message",)))


def test_scopes_of_a_policy_must_all_be_the_tokens() -> None:
    made = policies({"scopes": ["read", "vip"]}, {"scopes": ["read"], "roles": ["client"]})
    assert made.caller(TOKEN) == Caller(TOKEN.caller_id)
    plain = Identity(TOKEN.names, frozenset({"read"}))
    assert made.caller(plain) == Caller(TOKEN.caller_id, Sight(roles=("client",)))
    assert made.caller(Identity(TOKEN.names, frozenset())) is None
    assert made.caller(BILLING) is None


def test_a_tools_scope_locks_it_for_tokens_alone() -> None:
    made = policies(tool_scopes={"export_messages": "export", "count_messages": "read"})
    assert made.caller(TOKEN) == Caller(TOKEN.caller_id, locked=frozenset({"export_messages"}))
    assert made.caller(BILLING) == Caller("key:billing")


def test_tools_are_those_that_are_named() -> None:
    found = policies({"tools": ["count_messages", "search_messages"]}).caller(BILLING)
    assert found is not None
    assert [found.has(tool) for tool in ("count_messages", "export_messages", "nothing")] == [True, False, False]


def test_the_oldest_date_is_read_in_the_configured_zone() -> None:
    zone = timezone(timedelta(hours=2))
    found = Policies([PolicySettings(oldest="2016-11-07")], zone, {}).caller(BILLING)
    assert found is not None
    assert found.sight.oldest == 1_478_469_600_000_000


@pytest.mark.parametrize(
    ("block", "scopes", "told"),
    [
        (
            {"tools": ["count_message"]},
            {},
            "bad_setting: policies.tools: no tool is called 'count_message'; use count_messages",
        ),
        ({"oldest": "2016-13"}, {}, "bad_setting: policies.oldest"),
        (
            {},
            {"exprt_messages": "x"},
            "bad_setting: auth.oauth_tool_scopes: no tool is called 'exprt_messages'; use export_messages",
        ),
    ],
)
def test_what_is_wrong_with_a_policy_is_told_at_the_start(block: Any, scopes: dict[str, str], told: str) -> None:
    with pytest.raises(BadInput) as error:
        policies(block, tool_scopes=scopes)
    assert error.value.to_text().startswith(told)

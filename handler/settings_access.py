"""Who may ask, what proves it, and what exists for whom.

Decides what of these may be set and to what. Must never know how a proof is checked.
"""

from typing import Annotated

from pydantic import AfterValidator

from handler.settings_base import Names, Section, setting

__all__ = ["AuthSettings", "PolicySettings"]

_MODES = ("api_key", "oauth", "iam", "none")
_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures by a key pair. With a shared secret whoever can check a token can forge one."""


def _among(known: tuple[str, ...]) -> AfterValidator:
    def check(given: tuple[str, ...]) -> tuple[str, ...]:
        for name in given:
            if name not in known:
                raise ValueError(f"has no {name!r}; use {', '.join(known)}")
        return given

    return AfterValidator(check)


def _one_at_least(given: tuple[str, ...]) -> tuple[str, ...]:
    if not given:
        raise ValueError("names none")
    return given


def _none_stands_alone(given: tuple[str, ...]) -> tuple[str, ...]:
    if "none" in given and len(given) > 1:
        raise ValueError("has none beside others, which would admit everybody; leave none out")
    return given


class AuthSettings(Section):
    """Who may ask over HTTP. See docs/access.md."""

    modes: Annotated[Names, _among(_MODES), AfterValidator(_one_at_least), AfterValidator(_none_stands_alone)] = (
        setting(
            ("none",),
            "What is taken as proof of who asks, one or several: api_key, oauth, iam, or none.",
            "none serves loopback only and never starts in Lambda: without proof everybody is the owner.",
        )
    )
    oauth_issuer: str = setting(
        "", "Issuer of access tokens, exactly as they name it.", pattern=r"^(https?://[^\s?#]+)?$"
    )
    oauth_audience: str = setting(
        "",
        "What a token must be issued for. Default: the address of /mcp.",
        "A token for another service must not work here.",
    )
    oauth_jwks_url: str = setting("", "Where the issuer's public keys are. Default: what its metadata says.")
    oauth_algorithms: Annotated[Names, _among(_ALGORITHMS), AfterValidator(_one_at_least)] = setting(
        ("RS256", "ES256"),
        "Signatures accepted; only such by a key pair.",
        "A token must not choose how it is checked.",
    )
    oauth_scopes: Names = setting((), "Scopes every token must have.")
    oauth_tool_scopes: dict[str, str] = setting(
        {}, 'Scope that a tool wants beside them: `{ export_messages = "messages:export" }`.'
    )


class PolicySettings(Section):
    """One `[[policies]]` block: whom it is for, and what they see. The first that fits a caller counts."""

    name: str = setting("", "What it is called, for the reader of the file.", max_length=80)
    callers: Names = setting(
        ("*",),
        "Whom it is for: `key:NAME`, `key-id:ID`, `iam:ACCOUNT:role/NAME`, `iam:ACCOUNT:user/NAME`, "
        "`oauth:ISSUER#SUBJECT`, `oauth-client:ISSUER#CLIENT`, `invoke:NAME`; `*` and `?` stand for any text. "
        "Callers who pay for each call are `x402:ADDRESS`, and only of a policy that says `x402:`.",
    )
    scopes: Names = setting((), "Scopes their token must have as well.")
    tools: Names = setting((), "The tools they have. Default: all.")
    allow: Names = setting((), "Conversations they see: names, ids or patterns. Default: all.")
    deny: Names = setting((), "Conversations they do not see, whatever `allow` says.")
    roles: Names = setting((), "They see messages from these roles. Default: all.")
    kinds: Names = setting((), "They see messages of these kinds. Default: all.")
    oldest: str = setting("", "They see what was sent at or after: 2016-11, 2016-11-07 or 2016-11-07T10:00:00Z.")

"""From an identity to a caller: which tools and messages exist for them.

Decides that the first policy that fits counts, and that where there are policies, whom none fits may not ask. Callers
who pay are the public: only a policy that speaks of them by name is for them. Must never know how an identity was
proven.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from difflib import get_close_matches
from fnmatch import fnmatchcase

from engine.errors import BadInput, quoted
from engine.sight import Caller, Sight
from engine.times import parse_instant
from handler.auth.identity import Identity
from handler.settings_table import PolicySettings
from handler.tools.table import TOOLS

__all__ = ["VISITOR", "Policies", "is_payer", "payer_name"]

_PAYERS = "x402:"

VISITOR = "x402:visitor"
"""The id of whoever has not paid yet. Nothing belongs to them."""


def payer_name(address: str) -> str:
    """What a policy calls a payer, by the address in lower case; the id of the caller as well."""
    return f"{_PAYERS}{address}"


def is_payer(caller_id: str) -> bool:
    """Whether a caller pays for each call, or is about to: nothing of theirs is billed."""
    return caller_id.startswith(_PAYERS)


@dataclass(frozen=True, slots=True)
class _Policy:
    callers: tuple[str, ...]
    scopes: frozenset[str]
    tools: frozenset[str] | None
    sight: Sight

    @property
    def is_public(self) -> bool:
        """Whether it speaks of callers who pay; a pattern that merely takes everybody does not."""
        return not self.scopes and any(pattern.startswith(_PAYERS) for pattern in self.callers)

    def takes(self, payer: str) -> bool:
        """Whether it speaks of this payer."""
        return self.is_public and any(p.startswith(_PAYERS) and fnmatchcase(payer, p) for p in self.callers)

    def fits(self, identity: Identity) -> bool:
        named = any(fnmatchcase(name, pattern) for name in identity.names for pattern in self.callers)
        return named and self.scopes <= (identity.scopes or frozenset())


class Policies:
    """The policies of a deployment. `tool_scopes` are the scopes that tools want of a token.

    Raises:
        BadInput: `bad_setting` for a tool that is none, or a date that is none.
    """

    def __init__(self, settings: Sequence[PolicySettings], zone: tzinfo, tool_scopes: Mapping[str, str]) -> None:
        self._policies = tuple(_policy(each, zone) for each in settings)
        self._tool_scopes = dict(tool_scopes)
        for tool in tool_scopes:
            _known("auth.oauth_tool_scopes", tool)

    def caller(self, identity: Identity) -> Caller | None:
        """Who asks, with what exists for them; `None` when they may not ask."""
        locked = frozenset(
            tool
            for tool, scope in self._tool_scopes.items()
            if identity.scopes is not None and scope not in identity.scopes
        )
        if not self._policies:
            return Caller(identity.caller_id, locked=locked)
        policy = next((each for each in self._policies if each.fits(identity)), None)
        return None if policy is None else Caller(identity.caller_id, policy.sight, policy.tools, locked)

    def public(self, identity: Identity) -> Caller | None:
        """A payer, with what exists for them; `None` when no policy speaks of them."""
        policy = next((each for each in self._policies if each.takes(identity.caller_id)), None)
        return None if policy is None else Caller(identity.caller_id, policy.sight, policy.tools)

    def visitor(self) -> Caller | None:
        """Whoever has not paid yet, with the tools that some payer has and the sight of the first such policy.

        `None` when no policy speaks of callers who pay.
        """
        public = [each for each in self._policies if each.is_public]
        if not public:
            return None
        given = [each.tools for each in public]
        tools = None if None in given else frozenset(tool for each in given for tool in each or ())
        return Caller(VISITOR, public[0].sight, tools)


def _policy(settings: PolicySettings, zone: tzinfo) -> _Policy:
    for tool in settings.tools:
        _known("policies.tools", tool)
    try:
        oldest = parse_instant("policies.oldest", settings.oldest, zone) if settings.oldest else None
    except BadInput as error:
        raise BadInput("bad_setting", error.message, next_step=error.next_step) from None
    return _Policy(
        settings.callers,
        frozenset(settings.scopes),
        frozenset(settings.tools) if settings.tools else None,
        Sight(settings.allow, settings.deny, settings.roles, settings.kinds, oldest),
    )


def _known(setting: str, tool: str) -> None:
    if tool not in TOOLS:
        close = get_close_matches(tool, TOOLS, 1, 0.5)
        raise BadInput(
            "bad_setting",
            f"{setting}: no tool is called {quoted(tool)}",
            next_step=f"use {close[0]}" if close else f"the tools are {', '.join(TOOLS)}",
        )

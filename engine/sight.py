"""What a caller may see, as a condition on messages. What is out of sight does not exist.

Every use case and every id looked up takes one. Must never know who the caller is or how that was decided.
"""

from dataclasses import dataclass
from fnmatch import fnmatchcase

from engine.text import fold

__all__ = ["EVERYTHING", "Caller", "Sight"]


@dataclass(frozen=True, slots=True)
class Sight:
    """A policy over conversations, roles, kinds and age; an empty part restricts nothing.

    Conversations are names, ids or shell patterns, compared folded and without a leading `#`; `deny` wins
    over `allow`. `oldest` is the first instant in sight, microseconds since 1970, UTC.
    """

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    oldest: int | None = None

    @property
    def is_everything(self) -> bool:
        """True when no message is hidden."""
        return self == EVERYTHING

    def sees_conversation(self, conversation_id: str, name: str) -> bool:
        """Whether messages of this conversation may exist for the caller."""
        forms = (conversation_id.casefold(), fold(name).removeprefix("#"))
        allowed = not self.allow or any(_matches(p, forms) for p in self.allow)
        return allowed and not any(_matches(p, forms) for p in self.deny)


def _matches(pattern: str, forms: tuple[str, str]) -> bool:
    bare = pattern.removeprefix("#")
    spelled = (fold(bare), bare.casefold())
    # Whole names first: one with brackets in it does not match itself as a pattern, and `deny` must not miss it.
    return any(form in spelled or any(fnmatchcase(form, each) for each in spelled) for form in forms)


EVERYTHING = Sight()
"""Sight of the owner of the corpus, and of every caller until access control says otherwise."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: `caller_id` owns sessions, exports and usage; `sight` is what exists for them.

    `tools` are the names of the tools that exist for them, `None` for all; `locked` those of them that want a
    permission which this request does not carry.
    """

    caller_id: str
    sight: Sight = EVERYTHING
    tools: frozenset[str] | None = None
    locked: frozenset[str] = frozenset()

    def has(self, tool: str) -> bool:
        """Whether a tool exists for them."""
        return self.tools is None or tool in self.tools

"""Who is a client and who a teammate: rules from the configuration, applied to authors.

Decides `from_role` where a source does not say it. Must never know a source's format.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from engine.model import UNKNOWN_ROLE

__all__ = ["RoleRule", "RoleRules"]


@dataclass(frozen=True, slots=True)
class RoleRule:
    """One role's conditions; any one of them suffices. Domains and names are compared casefolded.

    An e-mail domain also covers its subdomains.
    """

    email_domain: tuple[str, ...] = ()
    user: tuple[str, ...] = ()
    conversation: tuple[str, ...] = ()


class RoleRules:
    """Rules in the order of the configuration: the first role whose rule holds is it.

    User ids are asked first over all roles, then e-mail domains, then conversations: the narrower wins.
    """

    def __init__(self, rules: Mapping[str, RoleRule]) -> None:
        self._users: dict[str, str] = {}
        self._domains: dict[str, str] = {}
        self._conversations: dict[str, str] = {}
        for role, rule in rules.items():
            for user in rule.user:
                self._users.setdefault(user.casefold(), role)
            for domain in rule.email_domain:
                self._domains.setdefault(domain.casefold().lstrip("@"), role)
            for conversation in rule.conversation:
                self._conversations.setdefault(conversation.casefold().lstrip("#"), role)

    def role_of(self, user_id: str, email: str, conversation: str) -> str:
        """The author's role in this conversation, `unknown` when no rule holds."""
        role = self._users.get(user_id.casefold())
        if role is None and "@" in email:
            role = self._role_of_domain(email.casefold().rpartition("@")[2])
        if role is None:
            role = self._conversations.get(conversation.casefold())
        return role or UNKNOWN_ROLE

    def _role_of_domain(self, domain: str) -> str | None:
        while domain:
            if domain in self._domains:
                return self._domains[domain]
            domain = domain.partition(".")[2]
        return None

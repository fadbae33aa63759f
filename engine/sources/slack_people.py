"""The people and bots of a Slack export: their names, what they are, and the role the rules give them.

Decides which of a person's names is shown. E-mail addresses stay inside: they decide a role and go nowhere
else.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.model import UNKNOWN_ROLE
from engine.sources.roles import RoleRules
from engine.sources.slack_text import as_list, as_mapping, as_text, scrubbed, unescaped

__all__ = ["BOT_ROLE", "SLACKBOT", "Author", "People"]

BOT_ROLE = "bot"
"""The role of bots without a rule."""

SLACKBOT = "USLACKBOT"
"""Slack's own bot, which exports name nowhere and do not mark as one."""


_NOBODY = "unknown"


@dataclass(frozen=True, slots=True)
class Author:
    """Who wrote a message: id, name as shown, role, and whether by nature a bot."""

    author_id: str
    name: str
    role: str
    is_bot: bool


@dataclass(frozen=True, slots=True)
class _Person:
    name: str
    email: str
    is_bot: bool | None
    """`None` where only messages tell of the person: they do not say."""


class People:
    """Everyone an export tells of, from `users.json` and from what messages carry along."""

    def __init__(self, rules: RoleRules) -> None:
        self._rules = rules
        self._people: dict[str, _Person] = {}
        self._bots: dict[str, str] = {}
        self._roles: dict[tuple[str, str], str] = {}

    def __contains__(self, user_id: str) -> bool:
        return user_id in self._people

    def add(self, user: Any) -> bool:
        """Take in an entry of `users.json`; false when it has no id."""
        entry = as_mapping(user)
        user_id = as_text(entry.get("id"))
        if not user_id:
            return False
        profile = as_mapping(entry.get("profile"))
        is_bot = entry.get("is_bot") is True
        self._people[user_id] = _Person(_name(entry, profile), as_text(profile.get("email")), is_bot)
        self.add_bot(profile.get("bot_id"), self._people[user_id].name)
        return True

    def add_inline(self, user_id: str, profile: Mapping[str, Any]) -> None:
        """Take in the `user_profile` of a message, for whom `users.json` leaves out: guests and strangers."""
        if user_id and user_id not in self._people:
            is_bot = True if profile.get("is_bot") is True else None
            self._people[user_id] = _Person(_name(profile, profile), as_text(profile.get("email")), is_bot)

    def add_bot(self, bot_id: Any, name: str) -> None:
        """Take in a bot's name; the first one stays."""
        if name and as_text(bot_id):
            self._bots.setdefault(as_text(bot_id), _line(name))

    def name_of(self, user_id: str, label: str = "") -> str:
        """Display name, real name, name, label, id: the first that exists."""
        person = self._people.get(user_id)
        name = person.name if person else ""
        fallback = "Slackbot" if user_id == SLACKBOT else user_id
        return name or _line(label) or self._bots.get(user_id) or fallback

    def author_of(self, record: Mapping[str, Any], conversation: str, conversation_id: str) -> Author:
        """Who wrote this message, in this conversation; `unknown` where it does not say.

        A bot that writes without a user is its username, else its name, else its id.
        """
        user_id = _user_id(record)
        bot_id = as_text(record.get("bot_id"))
        if user_id:
            person = self._people.get(user_id)
            name = (person.name if person else "") or self.name_of(user_id, _carried_name(record))
        else:
            name = _line(as_text(record.get("username"))) or _bot_name(record)
            name = name or self._bots.get(bot_id) or bot_id
        author_id, name = user_id or bot_id or name or _NOBODY, name or _NOBODY
        if self._is_bot(user_id, bot_id, record):
            return Author(author_id, name, self._bot_role(author_id, bot_id), is_bot=True)
        return Author(author_id, name, self._role(user_id, conversation, conversation_id), is_bot=False)

    def _is_bot(self, user_id: str, bot_id: str, record: Mapping[str, Any]) -> bool:
        if user_id == SLACKBOT or record.get("subtype") == "bot_message":
            return True
        if not user_id:
            return bool(bot_id)
        person = self._people.get(user_id)
        if person is None or person.is_bot is None:
            # A program may also post as a person: only where users.json tells no better does this make a bot.
            return bool(as_mapping(record.get("bot_profile")))
        return person.is_bot

    def _bot_role(self, author_id: str, bot_id: str) -> str:
        for each in (author_id, bot_id):
            role = self._rules.role_of(each, "", "")
            if role != UNKNOWN_ROLE:
                return role
        return BOT_ROLE

    def _role(self, user_id: str, conversation: str, conversation_id: str) -> str:
        key = (user_id, conversation_id)
        role = self._roles.get(key)
        if role is None:
            person = self._people.get(user_id)
            role = self._rules.role_of(user_id, person.email if person else "", conversation)
            if role == UNKNOWN_ROLE:
                role = self._rules.role_of("", "", conversation_id)
            self._roles[key] = role
        return role


def _user_id(record: Mapping[str, Any]) -> str:
    if record.get("subtype") == "file_comment":
        commenter = as_text(as_mapping(record.get("comment")).get("user"))
        if commenter:
            return commenter
    user_id = as_text(record.get("user"))
    if user_id or record.get("subtype") != "file_share":
        return user_id
    files = [record.get("file"), *as_list(record.get("files"))]
    return next((owner for file in files if (owner := as_text(as_mapping(file).get("user")))), "")


def _carried_name(record: Mapping[str, Any]) -> str:
    profile = as_mapping(record.get("user_profile"))
    return _name(profile, profile) or _bot_name(record) or _line(as_text(record.get("username")))


def _bot_name(record: Mapping[str, Any]) -> str:
    return _line(as_text(as_mapping(record.get("bot_profile")).get("name")))


def _name(entry: Mapping[str, Any], profile: Mapping[str, Any]) -> str:
    email = as_text(profile.get("email")).casefold()
    candidates = (
        profile.get("display_name"),
        profile.get("real_name"),
        entry.get("real_name"),
        entry.get("name"),
    )
    for candidate in candidates:
        name = _line(as_text(candidate))
        if name and name.casefold() != email:
            return name
    return ""


def _line(text: str) -> str:
    return " ".join(scrubbed(unescaped(text)).split())

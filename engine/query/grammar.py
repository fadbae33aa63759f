"""Tokens to tree, by recursive descent: each rule of the grammar is a method, its docstring the rule.

    Query    := Either END
    Either   := Both ( OR Both )*
    Both     := Negated ( [ AND ] Negated )*
    Negated  := NOT Negated | Item
    Item     := WORD | PHRASE | OPEN Either CLOSE

What it decides beside the tree: which fault is the first, and what was expected there. Must never know the
text, and what becomes of a query that cannot be read.
"""

from collections.abc import Sequence

from engine.errors import BadInput
from engine.query.tokens import Fault, Kind, Token
from engine.query.tree import Not, Part, Term, Tree, all_of, any_of

__all__ = ["UnreadableError", "read"]

_ENDS = frozenset({Kind.OR, Kind.CLOSE, None})
"""What `Both` stops before, `None` being the end. Anything else must be an item, or a fault is found."""


class UnreadableError(Exception):
    """Leaves the descent with the first fault met."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.what)
        self.fault = fault


def read(tokens: Sequence[Token], levels: int) -> Tree:
    """The tree of at least one token.

    Raises `UnreadableError`, and `BadInput` `query_too_deep` when groups and NOT nest deeper than `levels`.
    Recursion is four calls a level: up to 150 levels stay clear of the interpreter's own limit.
    """
    return _Descent(tokens, levels).query()


class _Descent:
    """One reading of a query's tokens."""

    def __init__(self, tokens: Sequence[Token], levels: int) -> None:
        self._tokens = tokens
        self._at = 0
        self._levels = levels
        self._level = 0
        self._confining: Token | None = None

    def query(self) -> Tree:
        """Query := Either END."""
        tree = self._either()
        if here := self._here():
            raise UnreadableError(_closes_nothing(here))
        return tree

    def _either(self) -> Tree:
        """Either := Both ( OR Both )*."""
        parts = [self._both()]
        while self._take(Kind.OR):
            parts.append(self._both())
        return any_of(parts)

    def _both(self) -> Tree:
        """Both := Negated ( [ AND ] Negated )*."""
        parts = [self._negated()]
        while self._take(Kind.AND) or self._kind() not in _ENDS:
            parts.append(self._negated())
        return all_of(parts)

    def _negated(self) -> Tree:
        """Negated := NOT Negated | Item."""
        if token := self._take(Kind.NOT):
            self._enter(token)
            part = self._negated()
            self._level -= 1
            return Not(part)
        return self._item()

    def _item(self) -> Tree:
        """Item := WORD | PHRASE | OPEN Either CLOSE."""
        if token := self._take(Kind.WORD) or self._take(Kind.PHRASE):
            return Term(token.text, token.whole, self._part(token))
        opening = self._take(Kind.OPEN)
        if opening is None:
            raise UnreadableError(self._no_item())
        around = self._confining
        if self._part(opening) != "any" and around is None:
            self._confining = opening
        self._enter(opening)
        tree = self._either()
        if not self._take(Kind.CLOSE):
            raise UnreadableError(_never_closed(opening))
        self._level -= 1
        self._confining = around
        return tree

    def _part(self, token: Token) -> Part:
        """The part `token` is confined to: its own, or that of a group around it, never both."""
        around = self._confining
        if around is None:
            return token.part
        if token.part != "any":
            raise UnreadableError(_part_in_part(token, around))
        return around.part

    def _no_item(self) -> Fault:
        """Why no item begins here: it cannot be read, or an operator or parenthesis lacks something."""
        here = self._here()
        if here and here.fault:
            return here.fault
        before = self._tokens[self._at - 1] if self._at else None
        if before and before.kind is not Kind.OPEN:
            return _lacks(before, "after")
        if here is None:
            return _never_closed(self._tokens[-1])
        if here.kind is not Kind.CLOSE:
            return _lacks(here, "before")
        return _holds_nothing(before) if before else _closes_nothing(here)

    def _enter(self, token: Token) -> None:
        self._level += 1
        if self._level > self._levels:
            message = f"more than {self._levels} levels of groups and NOT, exceeded at position {token.position}"
            raise BadInput("query_too_deep", message, next_step="use fewer groups, or split into two calls")

    def _here(self) -> Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _kind(self) -> Kind | None:
        here = self._here()
        return here.kind if here else None

    def _take(self, kind: Kind) -> Token | None:
        """The token here if it is of `kind`, and then one further; else nothing happens."""
        here = self._here()
        if here is None or here.kind is not kind:
            return None
        self._at += 1
        return here


def _lacks(operator: Token, side: str) -> Fault:
    name = operator.written
    what = f"{name} at position {operator.position} has nothing {side} it"
    return Fault(what, "a term or a group", f"add one, or put {name} in double quotes to find it as text")


def _holds_nothing(opening: Token) -> Fault:
    return Fault(f"'(' at position {_parenthesis(opening)} holds nothing", "a term or a group", "fill or remove it")


def _never_closed(opening: Token) -> Fault:
    what = f"'(' at position {_parenthesis(opening)} is never closed"
    return Fault(what, "')'", "close it, or put its word in double quotes to find it as text")


def _closes_nothing(closing: Token) -> Fault:
    what = f"')' at position {closing.position} closes nothing"
    return Fault(
        what,
        "a term, an operator or the end",
        "remove it, or put its word in double quotes to find it as text",
    )


def _part_in_part(token: Token, around: Token) -> Fault:
    inner = f"{token.part}: at position {token.position}"
    what = f"{inner} stands inside {around.part}: at position {around.position}"
    return Fault(what, "a term without a part of its own", "name one part only")


def _parenthesis(opening: Token) -> int:
    """The position of the `(` itself, after any `topic:` before it."""
    return opening.start + len(opening.written)

"""Who somebody has proven to be. Made by one module for each kind of proof; must never know a policy."""

from dataclasses import dataclass

__all__ = ["Identity"]


@dataclass(frozen=True, slots=True)
class Identity:
    """`caller_id` owns sessions and exports. `names` are what a policy may call them by, the first being the id.

    `scopes` are those of a token; `None` where the kind of proof has none, and so wants none.
    """

    names: tuple[str, ...]
    scopes: frozenset[str] | None = None

    @property
    def caller_id(self) -> str:
        """The name that stays when a credential is replaced by the next."""
        return self.names[0]

"""What every section of the settings is made of: a frozen table of rows, each with its help and its reason.

Decides how a row is written down. Must never know a section.
"""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_settings import NoDecode

__all__ = ["Names", "Section", "setting"]


def setting(default: Any, help_text: str, reason: str = "", **limits: Any) -> Any:
    """One row of the table. `reason` says why the default or its limit is what it is."""
    return Field(default, description=help_text, json_schema_extra={"reason": reason}, **limits)


def _split(value: Any) -> Any:
    """A bare string stands for a list: an environment variable holds `a, b`."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]
"""A list of names."""


class Section(BaseModel):
    """A section: immutable, and without names it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")

"""One tool call over HTTP, and what it told: the text a model reads, the object where it travels, the bytes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.handler.running import MODERN, exchange

__all__ = ["ERAS", "Stories", "Told", "ask"]

ERAS = ("2025-11-25", MODERN)

Stories = Mapping[str, Mapping[str, Any]]
"""The answer key: by name of a story its question, calls, answer, counts and message ids."""


@dataclass(frozen=True, slots=True)
class Told:
    """A result as it came. `size` counts the bytes of the JSON of the whole result, as sent."""

    text: str
    is_error: bool
    size: int
    object: dict[str, Any] | None

    @property
    def lines(self) -> list[str]:
        """The lines of the text form."""
        return self.text.split("\n")

    @property
    def shown(self) -> list[str]:
        """Ids of the messages shown, in order, those around hits included."""
        return [line.lstrip(" ")[1:].partition("]")[0] for line in self.lines if line.lstrip(" ").startswith("[")]

    @property
    def session(self) -> str:
        """The handle that the result returns."""
        return self.text.partition("| session ")[2].partition("\n")[0].partition(" ")[0]

    def number(self, before: str) -> int:
        """The number that follows these words."""
        digits = self.text.partition(before)[2]
        return int(digits[: len(digits) - len(digits.lstrip("0123456789"))])


def ask(port: int, tool: str, /, *, version: str = MODERN, **arguments: Any) -> Told:
    """Call a tool. A refusal of the protocol itself is told as an error too."""
    reply = exchange(port, "tools/call", {"name": tool, "arguments": arguments}, version=version)
    if "error" in reply.json:
        return Told(reply.json["error"]["message"], is_error=True, size=len(reply.body), object=None)
    result = reply.json["result"]
    return Told(result["content"][0]["text"], result["isError"], reply.result_bytes, result.get("structuredContent"))

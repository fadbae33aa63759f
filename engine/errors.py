"""Every error a caller may see, as one tree.

    EngineError            code, message, next step, nearest values: all of it may be shown to a model
    ├── BadInput           the call's own words are off: mend them and call again
    ├── NotFound           a well-formed name of something that is not there, or is out of sight
    ├── Refused            understood, and not allowed or not affordable
    ├── Unavailable        a store or a time limit failed us: the same call may work later
    └── BrokenSnapshot     the data on disk is not what the manifest says, or of a newer format

What this module must never know: texts of messages, links, keys and paths. They belong in no error.
Messages are lower case, without full stop, and name the offending value.
"""

from collections.abc import Mapping, Sequence

__all__ = [
    "MAX_ERROR_BYTES",
    "BadInput",
    "BrokenSnapshot",
    "EngineError",
    "NotFound",
    "Refused",
    "Unavailable",
    "give_list",
    "quoted",
    "values_in",
]

MAX_ERROR_BYTES = 2_048
"""Longest error text in UTF-8 bytes: an error is a prompt, and a long one hides its way out."""

_QUOTED_CHARS = 80
"""Longest echo of a caller's value: enough to recognise it, too little to smuggle a page in."""


def quoted(value: object) -> str:
    """`value` in quotes, made printable and cut to 80 characters, for use in a message."""
    text = value if isinstance(value, str) else repr(value)
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    text = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text[: _QUOTED_CHARS + 1])
    if len(text) > _QUOTED_CHARS:
        text = text[:_QUOTED_CHARS] + "…"
    return f"'{text}'"


def values_in(text: str) -> list[str]:
    """The values of a list that was given as one text: of `a, b` as of `["a", "b"]`."""
    return [part for part in (piece.strip(" []\"'") for piece in text.split(",")) if part]


def give_list(values: Sequence[str]) -> str:
    """The way out for whoever gave a list as one text: `give a list: ["a", "b"]`."""
    shown = ", ".join('"' + quoted(value)[1:-1] + '"' for value in values)
    return f"give a list: [{shown}]"


class EngineError(Exception):
    """An error made of a code for machines, a message for people, and a way out.

    `nearest` maps valid values to how often they occur, best first. `detail` is for the log only.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        next_step: str = "",
        nearest: Mapping[str, int] | None = None,
        detail: str = "",
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.next_step = next_step
        self.nearest = dict(nearest or {})
        self.detail = detail

    def to_object(self) -> dict[str, object]:
        """`{"code", "message", "next", "nearest"}`; the last two only when they say something."""
        out: dict[str, object] = {"code": self.code, "message": self.message}
        if self.next_step:
            out["next"] = self.next_step
        if self.nearest:
            out["nearest"] = self.nearest
        return out

    def to_text(self) -> str:
        """`code: message; next (nearest: a 7, b 3)`, at most MAX_ERROR_BYTES of UTF-8."""
        text = f"{self.code}: {self.message}"
        if self.next_step:
            text += f"; {self.next_step}"
        if self.nearest:
            shown = ", ".join(f"{quoted(value)} {count}" for value, count in self.nearest.items())
            text += f" (nearest: {shown})"
        raw = text.encode("utf-8", "backslashreplace")
        if len(raw) > MAX_ERROR_BYTES:
            raw = raw[: MAX_ERROR_BYTES - 3]
            return raw.decode("utf-8", "ignore") + "…"
        return raw.decode("utf-8")


class BadInput(EngineError):
    """The call's own words are off."""


class NotFound(EngineError):
    """Nothing of that name exists in what the caller may see."""


class Refused(EngineError):
    """The call is understood and not allowed."""


class Unavailable(EngineError):
    """A store or a time limit failed; nothing was changed."""


class BrokenSnapshot(EngineError):
    """A snapshot's files are not what its manifest says, or newer than this reader."""

"""What becomes of an exception at the edge: words a caller may read, and a line for the log.

Decides that an engine error is told whole and anything else by a reference only. What is logged of a fault
holds types and places in the code, never a message: it may quote arguments or texts.
"""

import logging
import secrets
import traceback
from pathlib import PurePath

from engine.errors import EngineError

__all__ = ["outline", "tell"]

logger = logging.getLogger(__name__)

_FRAMES = 12
"""Innermost calls that are logged: enough to find the place, and one log line still."""


def tell(error: Exception) -> str:
    """The text for the caller: `code: message; next`, or `internal error, reference 7f3a9c01`."""
    if isinstance(error, EngineError):
        if error.detail:
            logger.warning("%s: %s", error.code, error.detail)
        return error.to_text()
    reference = secrets.token_hex(4)
    logger.error("internal error, reference %s: %s", reference, outline(error))
    return f"internal error, reference {reference}"


def outline(error: BaseException) -> str:
    """Types of the exception and its causes, each with the places it came through, innermost last."""
    parts: list[str] = []
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        frames = traceback.extract_tb(cause.__traceback__)[-_FRAMES:]
        places = " > ".join(f"{_module_of(f.filename)}:{f.lineno} {f.name}" for f in frames)
        parts.append(f"{type(cause).__module__}.{type(cause).__qualname__} at {places or 'nowhere'}")
        cause = cause.__cause__ or cause.__context__
    return "; from ".join(parts)


def _module_of(filename: str) -> str:
    """The last two parts of a path: whose code it is, not where it is installed."""
    return "/".join(PurePath(filename).parts[-2:])

"""What a use case gives back: one thing in two forms, and where a file went.

The text is what a model reads, the object what a program reads (docs/tools.md). Must never know a protocol.
"""

from dataclasses import dataclass
from typing import Any

__all__ = ["Answer"]


@dataclass(frozen=True, slots=True)
class Answer:
    """`text` and `object` say the same; `object` is JSON-able with its keys in the order of the contract.

    `link` and `mime_type` are set by an export that is done, for a `resource_link` beside the text.
    """

    text: str
    object: dict[str, Any]
    link: str | None = None
    mime_type: str | None = None

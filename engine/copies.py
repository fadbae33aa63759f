"""Which messages are copies of one another: those whose copy keys are equal.

Decides what is hashed: the folded texts, and of short ones whose they are. Equal for one text whatever the snapshot,
since sessions remember the keys of what they were shown. Must never know how texts are stored.
"""

from hashlib import blake2b

__all__ = ["COPIED_WORDS", "copy_key_of", "of_its_author"]

COPIED_WORDS = 5
"""Texts of so many words are copies whoever wrote them, shorter ones only of their author's."""


def of_its_author(text: bytes, message_id: str, author_id: str) -> bytes:
    """What is hashed of a short text, equal for one author only; for a message without text it is its own id."""
    own = b"\0\0" + message_id.encode() if text == b"\0" else text
    return own + b"\0\0" + author_id.encode()


def copy_key_of(folded_topic: str, folded_body: str, words: int, message_id: str, author_id: str) -> int:
    """First 8 bytes, big endian, of the BLAKE2b of what is hashed; `words` are those of topic and body."""
    text = f"{folded_topic}\0{folded_body}".encode()
    hashed = of_its_author(text, message_id, author_id) if words < COPIED_WORDS else text
    return int.from_bytes(blake2b(hashed, digest_size=8).digest(), "big")

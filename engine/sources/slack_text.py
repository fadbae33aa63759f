"""The words of a Slack message as a person would read them: its text, and what its attachments and files add.

Decides how mentions, links and escapes look, what counts as said already, and which secrets are struck out.
Must never know where a message stands, or raise over a shape it has not met.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = [
    "Naming",
    "as_list",
    "as_mapping",
    "as_text",
    "linked",
    "message_text",
    "plain",
    "scrubbed",
    "unescaped",
]

_ENTITY = re.compile(r"&(lt|gt|amp);")
_CHARACTER = {"lt": "<", "gt": ">", "amp": "&"}
_MARKUP = re.compile(r"<([^<>]+)>")
_ID = re.compile(r"[A-Z][A-Z0-9]*", re.ASCII)
_SPECIAL = re.compile(r"[A-Za-z_]+(?:\^.*)?", re.DOTALL)
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:", re.ASCII)
_EVERYONE = frozenset({"here", "channel", "everyone", "group"})
_BARE_SCHEMES = ("mailto:", "tel:")

_TOKEN = re.compile(r"(?:xox[a-np-z](?:-|%2D)|xapp(?:-|%2D)\d)[A-Za-z0-9%_-]*", re.IGNORECASE)
_FILE_LINK = re.compile(r"https?://files\.[^\s<>|)\"']+", re.IGNORECASE)
_VALUE = r"""[^&\s)|>"']*"""
_URL_SECRET = re.compile(rf"([?&])t=(?=xox|xapp){_VALUE}", re.IGNORECASE)
_SLACK_SECRET = re.compile(
    r"""(https?://[\w.-]{0,99}slack[\w.-]{0,99}/[^\s?)|>"']{0,999}\?(?:[^\s)|>"']{0,999}&)?)t=""" + _VALUE,
    re.IGNORECASE,
)
"""Each part is bounded, or a megabyte of half links would take hours."""


@dataclass(frozen=True, slots=True)
class Naming:
    """How ids are named, without `@` or `#`: `user` takes an id and the label beside it, `channel` an id."""

    user: Callable[[str, str], str]
    channel: Callable[[str], str]


def as_mapping(value: Any) -> Mapping[str, Any]:
    """`value` if it is an object of JSON, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """`value` if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def as_text(value: Any) -> str:
    """`value` if it is text, a number's digits, else nothing; lone surrogates, which no file can hold, go."""
    if isinstance(value, str):
        if value.isascii():
            return value
        try:
            value.encode()
        except UnicodeEncodeError:
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return ""


def scrubbed(text: str) -> str:
    """`text` without what opens a file at Slack: the `t=` of a link, and tokens in links to files.

    Tokens that people post are left to redaction, which knows them from what they are called, and counts them.
    """
    lowered = text.lower()
    if "t=" in lowered and ("slack" in lowered or "x" in lowered):
        text = _URL_SECRET.sub(r"\1", _SLACK_SECRET.sub(r"\1", text))
    if "xox" in lowered or "xapp" in lowered:
        text = _FILE_LINK.sub(lambda link: _TOKEN.sub("[token]", link[0]), text)
    return text


def plain(text: str, naming: Naming) -> str:
    """Slack's markup turned into what its readers see: `@name`, `#channel`, `label (url)`, `<`."""
    if "<" in text:
        text = _MARKUP.sub(lambda found: _markup(found, naming), text)
    return unescaped(text)


def unescaped(text: str) -> str:
    """`&lt;`, `&gt;` and `&amp;` undone, once; no other entity is Slack's."""
    return _ENTITY.sub(lambda found: _CHARACTER[found[1]], text) if "&" in text else text


def _markup(found: re.Match[str], naming: Naming) -> str:
    target, _, label = found[1].partition("|")
    sign, rest = target[:1], target[1:]
    if sign == "@" and _ID.fullmatch(rest):
        return "@" + naming.user(rest, label.removeprefix("@"))
    if sign == "#" and _ID.fullmatch(rest):
        return "#" + (label.removeprefix("#") or naming.channel(rest))
    if sign == "!" and _SPECIAL.fullmatch(rest):
        return _special(rest, label)
    if _URL.match(target):
        return linked(target, label)
    return found[0]


def _special(name: str, label: str) -> str:
    word, _, detail = name.partition("^")
    if word == "date":
        return label or detail.partition("^")[0]
    if word == "subteam":
        return "@" + (label.removeprefix("@") or detail)
    return label if label and word not in _EVERYONE else "@" + word


def linked(url: str, label: str) -> str:
    """`label (url)`, or one of them where the other says nothing more."""
    for scheme in _BARE_SCHEMES:
        url = url.removeprefix(scheme)
    return url if not label or label == url else f"{label} ({url})"


def message_text(record: Mapping[str, Any], naming: Naming, block_text: Callable[[Any, Naming], str]) -> str:
    """What one message says, part by part on lines of their own, without saying a thing twice.

    First `text`, or the blocks where it is empty or Slack's own stand-in for them; then of each attachment
    pretext, title, text and fields, or else fallback; then titles and comments of files.
    """
    text = plain(as_text(record.get("text")), naming)
    if not text.strip() or text.strip() in _STAND_INS:
        text = block_text(record.get("blocks"), naming) or text
    attachments, files = as_list(record.get("attachments")), record.get("files")
    if not attachments and not files and "file" not in record and "comment" not in record:
        return text
    body = _Body(text)
    for attachment in attachments:
        for part in _attachment_parts(as_mapping(attachment), naming, block_text):
            body.add(part)
    for part in _file_parts(record, naming):
        body.add(part)
    return body.text


_STAND_INS = frozenset({"This content can't be displayed.", "This content can’t be displayed."})
"""What Slack puts into `text` for programs that cannot show blocks."""


class _Body:
    """A text that grows by what it does not say yet: as whole words, whatever the blanks."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._said = " ".join(text.split())
        self._parts: set[str] = set()

    def add(self, part: str) -> None:
        words = " ".join(part.split())
        if not words or words in self._parts:
            return
        self._parts.add(words)
        if self._says(words):
            return
        self.text = f"{self.text}\n{part}" if self.text.strip() else part
        self._said = f"{self._said} {words}"

    def _says(self, words: str) -> bool:
        if words not in self._said:
            return False
        before, after = (r"(?<!\w)" if words[0].isalnum() else ""), (r"(?!\w)" if words[-1].isalnum() else "")
        return re.search(before + re.escape(words) + after, self._said) is not None


def _attachment_parts(
    attachment: Mapping[str, Any], naming: Naming, block_text: Callable[[Any, Naming], str]
) -> Iterator[str]:
    parts = [plain(as_text(attachment.get(key)), naming) for key in ("pretext", "title", "text")]
    parts += [_field(as_mapping(field), naming) for field in as_list(attachment.get("fields"))]
    if not parts[2].strip():
        parts.append(block_text(attachment.get("blocks"), naming))
        for inner in as_list(attachment.get("message_blocks")):
            message = as_mapping(as_mapping(inner).get("message"))
            parts.append(block_text(message.get("blocks"), naming))
    parts += _file_parts({"files": attachment.get("files")}, naming)
    said = [part for part in parts if part.strip()]
    yield from said or [plain(as_text(attachment.get("fallback")), naming)]


def _field(field: Mapping[str, Any], naming: Naming) -> str:
    title, value = (plain(as_text(field.get(key)), naming) for key in ("title", "value"))
    return f"{title}: {value}" if title and value else title or value


def _file_parts(record: Mapping[str, Any], naming: Naming) -> Iterator[str]:
    for each in [*as_list(record.get("files")), record.get("file")]:
        file = as_mapping(each)
        yield plain(as_text(file.get("title")) or as_text(file.get("name")), naming)
        yield _comment(file.get("initial_comment"), naming)
    yield _comment(record.get("comment"), naming)


def _comment(value: Any, naming: Naming) -> str:
    return plain(as_text(as_mapping(value).get("comment")), naming)

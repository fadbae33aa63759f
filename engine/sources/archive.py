"""A zip or a folder of files behind one small interface, safe to read whoever made it.

Decides which members may be read: none whose path climbs out, none that unpacks beyond its bounds, whatever
its header says. Must never know what the files mean.
"""

import os
import re
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from typing import IO, Protocol

from engine.errors import BadInput, quoted
from engine.model import Problem

__all__ = ["Archive", "ArchiveLimits", "MemberError", "open_archive", "shown_name", "wrapping_folder"]

_CHUNK_BYTES = 1 << 20
_SHOWN_CHARS = 200
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""What exports are made with. The other methods unpack without a bound on memory."""

_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError, ValueError)
"""What zipfile raises over damaged members, by where the damage is."""


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    """How far a member may unpack before it is refused as a bomb."""

    member_bytes: int = 256 << 20
    """A member is held in memory: a busy day takes a few megabytes, a huge workspace's users 200."""
    ratio: int = 250
    """JSON of near-equal messages shrinks about a hundredfold, zeros a thousandfold."""
    ratio_from_bytes: int = 16 << 20
    """A smaller member hurts nobody, however well it was packed."""


class MemberError(Exception):
    """One member cannot be had. `why` is a short phrase for a report."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class Archive(Protocol):
    """Files by name, in the order found; names are relative, with `/` between their parts."""

    @property
    def names(self) -> Sequence[str]:
        """Every member that may be read. Folders and a file system's own clutter are left out."""
        ...

    @property
    def problems(self) -> Sequence[Problem]:
        """Members passed over, named."""
        ...

    def read(self, name: str) -> bytes:
        """A member's content.

        Raises:
            MemberError: it is encrypted, broken, or larger than the limits allow.
        """
        ...

    def digest(self) -> str:
        """Hexadecimal digest of all names and contents."""
        ...


@contextmanager
def open_archive(location: Path, limits: ArchiveLimits | None = None) -> Iterator[Archive]:
    """The zip or folder at `location`, closed again at the end.

    Raises:
        BadInput: `source_unreadable` when nothing is there, or it is neither a folder nor a whole zip.
    """
    bounds = limits or ArchiveLimits()
    if location.is_dir():
        yield _Folder(location, bounds)
        return
    try:
        archive = zipfile.ZipFile(location)
    except FileNotFoundError:
        raise _unreadable(location, "is not there", "check the source's location") from None
    except _BROKEN:
        raise _unreadable(location, "is neither a folder nor a whole zip file", "get it anew") from None
    with closing(archive):
        yield _Zip(archive, bounds)


def _unreadable(location: Path, what: str, next_step: str) -> BadInput:
    return BadInput("source_unreadable", f"{quoted(location.name)} {what}", next_step=next_step)


def wrapping_folder(names: Iterable[str], markers: frozenset[str], is_record: Callable[[str], bool]) -> str:
    """The folder that everything meant lies in, ending in `/`; empty when it is the top.

    It is the shallowest one that holds a file named in `markers`; without any, what all files for which
    `is_record` holds have above their own folder.
    """
    paths = [PurePosixPath(name) for name in names]
    marked = [path.parent for path in paths if path.name in markers]
    above = [path.parent.parent for path in paths if len(path.parts) > 1 and is_record(path.name)]
    if marked:
        found = min(marked, key=lambda folder: len(folder.parts))
    elif len(set(above)) == 1:
        found = above[0]
    else:
        return ""
    return f"{found}/" if found.parts else ""


class _Zip:
    """A zip file. Its headers are claims: sizes are checked while reading."""

    def __init__(self, archive: zipfile.ZipFile, limits: ArchiveLimits) -> None:
        self._archive = archive
        self._limits = limits
        self._infos: dict[str, zipfile.ZipInfo] = {}
        self.problems: list[Problem] = []
        for info in archive.infolist():
            name = _zip_name(info)
            if name.endswith("/") or _is_clutter(name):
                continue
            if _climbs(name):
                self.problems.append(Problem(shown_name(name), "path leaves the archive; passed over"))
                continue
            if name in self._infos:
                self.problems.append(Problem(shown_name(name), "stands in the archive twice; the last one is read"))
            self._infos[name] = info

    @property
    def names(self) -> Sequence[str]:
        return tuple(self._infos)

    def read(self, name: str) -> bytes:
        info = self._infos[name]
        if info.flag_bits & 1:
            raise MemberError("encrypted")
        if info.compress_type not in _METHODS:
            raise MemberError("packed with an unusual method")
        try:
            with self._archive.open(info) as stream:
                return _bounded(stream, self._limits, info.compress_size)
        except _BROKEN:
            raise MemberError("broken in the archive") from None

    def digest(self) -> str:
        """From the directory alone: the CRC of each content stands there."""
        return _digest((name, f"{info.file_size} {info.CRC}") for name, info in self._infos.items())


class _Folder:
    """A folder on disk. Links that lead out of it are not followed."""

    def __init__(self, root: Path, limits: ArchiveLimits) -> None:
        self._root = root
        self._limits = limits
        self.problems: list[Problem] = []
        self.names: Sequence[str] = tuple(self._walk())

    def _walk(self) -> Iterator[str]:
        top = self._root.resolve()
        for folder, folders, files in os.walk(self._root):
            folders.sort()
            here = Path(folder)
            for entry in sorted([*files, *(f for f in folders if (here / f).is_symlink())]):
                path = here / entry
                name = path.relative_to(self._root).as_posix()
                if _is_clutter(name):
                    continue
                if path.is_symlink() and not path.resolve().is_relative_to(top):
                    self.problems.append(Problem(shown_name(name), "path leaves the folder; passed over"))
                elif path.is_dir() or not stat.S_ISREG(_mode(path)):
                    self.problems.append(Problem(shown_name(name), "not a file; passed over"))
                else:
                    yield name

    def read(self, name: str) -> bytes:
        try:
            with (self._root / name).open("rb") as stream:
                return _bounded(stream, self._limits, None)
        except OSError:
            raise MemberError("cannot be opened") from None

    def digest(self) -> str:
        """From the contents: a file's time can stay the same when the file does not."""
        return _digest((name, self._content(name)) for name in self.names)

    def _content(self, name: str) -> str:
        content = blake2b(digest_size=16)
        try:
            with (self._root / name).open("rb") as stream:
                while chunk := stream.read(_CHUNK_BYTES):
                    content.update(chunk)
        except OSError:
            return "unreadable"
        return content.hexdigest()


def _mode(path: Path) -> int:
    try:
        return path.stat().st_mode
    except OSError:
        return 0


def _bounded(stream: IO[bytes], limits: ArchiveLimits, packed_bytes: int | None) -> bytes:
    content = bytearray()
    while chunk := stream.read(_CHUNK_BYTES):
        content += chunk
        if len(content) > limits.member_bytes:
            raise MemberError("larger than a file of an export may be")
        if packed_bytes is None or len(content) <= limits.ratio_from_bytes:
            continue
        if len(content) > limits.ratio * max(packed_bytes, 1):
            raise MemberError("unpacks to far more than it holds, as a zip bomb does")
    return bytes(content)


def _digest(parts: Iterable[tuple[str, str]]) -> str:
    total = blake2b(digest_size=32)
    for name, content in sorted(parts):
        total.update(f"{name}\0{content}\n".encode("utf-8", "surrogatepass"))
    return total.hexdigest()


def _zip_name(info: zipfile.ZipInfo) -> str:
    name = info.filename.replace("\\", "/")
    if not info.flag_bits & 0x800 and not name.isascii():
        # Many zip tools write UTF-8 without saying so; it is read as cp437 then.
        try:
            return name.encode("cp437").decode("utf-8")
        except UnicodeError:
            return name
    return name


def _climbs(name: str) -> bool:
    return name.startswith("/") or ".." in name.split("/") or re.match(r"[A-Za-z]:", name) is not None


def _is_clutter(name: str) -> bool:
    parts = name.split("/")
    return parts[0] == "__MACOSX" or (parts[-1].startswith(".") and parts[-1] != "..")


def shown_name(name: str) -> str:
    """A member's name for a report: printable, relative, at most 200 characters and a mark of the cut."""
    text = "".join(c if c.isprintable() else "�" for c in name.lstrip("/")[: _SHOWN_CHARS + 1])
    return text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "…"

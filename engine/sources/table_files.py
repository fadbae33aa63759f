"""Tables as files: which files a location names, their columns, and their rows as text, through DuckDB.

Decides how each format is read. Must never know what a column means. Values, paths and JSON keys reach SQL as
parameters; a name is quoted into SQL only for Parquet, and only after the file itself has listed it.

JSONL: one object a line. CSV: UTF-8 with a header; the delimiter (comma, semicolon, tab or bar) is the one
most frequent in the header, and every value is text, since a guess at types would round ids. Either may be
gzipped.
"""

import csv
import gzip
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from glob import has_magic
from pathlib import Path
from typing import TextIO

import duckdb

from engine.errors import BadInput, quoted

__all__ = ["BrokenRow", "Reader", "Row", "TableFile", "find_files", "open_reader"]

_SUFFIXES = {
    "jsonl": (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz"),
    "csv": (".csv", ".tsv", ".csv.gz", ".tsv.gz"),
    "parquet": (".parquet",),
}

_ROWS_AT_ONCE = 2_048
"""DuckDB's own vector size: a smaller fetch copies more often, a larger one holds more."""

_MAX_ROW_BYTES = 16 * 1_048_576
"""Longest line of JSONL or CSV; a longer one is a broken file, not a message."""

_MAX_COLUMNS = 10_000
"""Keys of a JSONL file that are looked at: more are data, not columns."""

_NESTED = re.compile(r"^(STRUCT|MAP|UNION)\(|\]$")


@dataclass(frozen=True, slots=True)
class TableFile:
    """A file, and its name relative to the source: the only form that may be reported."""

    path: Path
    name: str


@dataclass(frozen=True, slots=True)
class Row:
    """One row: where it stands, the values asked for as text, and the whole or the rest of it as JSON."""

    where: str
    values: tuple[str | None, ...]
    rest: str | None


@dataclass(frozen=True, slots=True)
class BrokenRow:
    """A row that cannot be read, and why."""

    where: str
    why: str


def find_files(table_format: str, location: str) -> list[TableFile]:
    """The file, the files of a folder and its folders, or those a glob matches; by name, without hidden ones.

    Raises:
        BadInput: `source_unreadable` when there is none.
    """
    place = Path(location)
    if place.is_file():
        return [TableFile(place, place.name)]
    if place.is_dir():
        suffixes = _SUFFIXES[table_format]
        found = [p for p in place.rglob("*") if p.name.lower().endswith(suffixes)]
        base = place
    elif has_magic(location):
        fixed = next(i for i, part in enumerate(place.parts) if has_magic(part))
        base = Path(*place.parts[:fixed])
        found = list(base.glob("/".join(place.parts[fixed:])))
    else:
        raise _nothing(table_format, place)
    files = [TableFile(p, p.relative_to(base).as_posix()) for p in found if p.is_file()]
    shown = [f for f in files if not any(part.startswith(".") for part in Path(f.name).parts)]
    if not shown:
        raise _nothing(table_format, place)
    return sorted(shown, key=lambda f: f.name)


def _nothing(table_format: str, place: Path) -> BadInput:
    return BadInput(
        "source_unreadable",
        f"no {table_format} file at {quoted(place.name)}",
        next_step="give a file, a folder or a glob that exists",
    )


@contextmanager
def open_reader(
    table_format: str, files: Sequence[TableFile], *, memory_limit: str, threads: int
) -> Iterator["Reader"]:
    """A reader with a DuckDB connection of its own that can read `files` and nothing else."""
    config: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": memory_limit,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "allow_community_extensions": False,
        "allow_persistent_secrets": False,
        "temp_directory": "",
    }
    if threads:
        config["threads"] = threads
    with closing(duckdb.connect(":memory:", config=config)) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        # A path is checked before it is read as a glob: both of its forms are needed.
        paths = [form for file in files for form in (str(file.path), _literal(file.path))]
        connection.execute("SET allowed_paths = ?", [paths])
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        yield Reader(connection, table_format)


def _literal(path: Path) -> str:
    """The path as a glob that matches only itself: DuckDB reads every path as a glob."""
    return re.sub(r"([\[*?])", r"[\1]", str(path))


class Reader:
    """Columns and rows of files of one format, one statement at a time."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, table_format: str) -> None:
        self._connection = connection
        self._format = table_format

    def columns(self, file: TableFile) -> tuple[str, ...]:
        """The file's own column names, in its order.

        Raises:
            ValueError: why the file cannot be read.
        """
        try:
            if self._format == "csv":
                return tuple(_csv_header(file.path)[0])
            if self._format == "parquet":
                return tuple(self._parquet_types(file))
            found = self._connection.execute(
                "SELECT DISTINCT unnest(json_keys(json)) AS key "
                "FROM read_ndjson_objects(?, ignore_errors=true, maximum_object_size=?) "
                "WHERE json_type(json) = 'OBJECT' ORDER BY key LIMIT ?",
                [_literal(file.path), _MAX_ROW_BYTES, _MAX_COLUMNS],
            ).fetchall()
        except (duckdb.Error, OSError, EOFError, csv.Error) as error:
            raise ValueError(_why(error)) from error
        return tuple(name for (name,) in found)

    def rows(self, file: TableFile, wanted: Sequence[str | None], *, rest: bool) -> Iterator[Row | BrokenRow]:
        """Every row's values of the `wanted` columns (`None`: not in this file), and with `rest` the others.

        Raises:
            ValueError: why the rest of the file cannot be read, after the rows that could.
        """
        read = {"csv": self._csv_rows, "parquet": self._parquet_rows, "jsonl": self._jsonl_rows}[self._format]
        try:
            yield from read(file, wanted, rest=rest)
            if file.path.suffix == ".gz":
                _check_whole(file.path)
        except (duckdb.Error, OSError, EOFError, zlib.error) as error:
            raise ValueError(f"cannot be read to its end ({type(error).__name__})") from error

    def _stream(self, sql: str, parameters: Sequence[object]) -> Iterator[tuple[str | None, ...]]:
        cursor = self._connection.execute(sql, list(parameters))
        while chunk := cursor.fetchmany(_ROWS_AT_ONCE):
            yield from chunk

    def _jsonl_rows(self, file: TableFile, wanted: Sequence[str | None], *, rest: bool) -> Iterator[Row | BrokenRow]:
        values = ", ".join("json_extract_string(json, ?::VARCHAR)" for _ in wanted)
        whole = "json::VARCHAR" if rest else "NULL"
        pointers = [_pointer(name) for name in wanted]
        sql = (
            f"SELECT json_type(json), {whole}, {values} "
            "FROM read_ndjson_objects(?, ignore_errors=true, maximum_object_size=?)"
        )
        stream = self._stream(sql, [*pointers, _literal(file.path), _MAX_ROW_BYTES])
        for number, (kind, whole_row, *found) in enumerate(stream, 1):
            where = f"{file.name} row {number}"
            if kind == "OBJECT":
                yield Row(where, tuple(found), whole_row)
            else:
                yield BrokenRow(where, "not a JSON object" if kind else "not JSON")

    def _csv_rows(self, file: TableFile, wanted: Sequence[str | None], *, rest: bool) -> Iterator[Row | BrokenRow]:
        header, delimiter = _csv_header(file.path)
        columns = {f"c{i}": "VARCHAR" for i in range(len(header))}
        values = ", ".join("NULL" if name is None else f"c{header.index(name)}" for name in wanted)
        others = [(name, f"c{i}") for i, name in enumerate(header) if name not in wanted] if rest else []
        sql = (
            f"SELECT {_json_object(others)}, {values} "
            "FROM read_csv(?, auto_detect=false, columns=?, delim=?, header=true, quote='\"', escape='\"', "
            "store_rejects=true, rejects_limit=0, max_line_size=?)"
        )
        parameters = [*(name for name, _ in others), _literal(file.path), columns, delimiter, _MAX_ROW_BYTES]
        self._connection.execute("DROP TABLE IF EXISTS reject_errors; DROP TABLE IF EXISTS reject_scans")
        for number, (other, *found) in enumerate(self._stream(sql, parameters), 1):
            yield Row(f"{file.name} row {number}", tuple(found), other)
        rejected = self._connection.execute(
            "SELECT line, min(error_type) FROM reject_errors GROUP BY line ORDER BY line"
        ).fetchall()
        for line, why in rejected:
            yield BrokenRow(f"{file.name} line {line}", str(why).lower())

    def _parquet_rows(self, file: TableFile, wanted: Sequence[str | None], *, rest: bool) -> Iterator[Row | BrokenRow]:
        types = self._parquet_types(file)
        values = ", ".join("NULL" if name is None else _as_text(name, types[name]) for name in wanted)
        others = [(name, _identifier(name)) for name in types if name not in wanted] if rest else []
        sql = f"SELECT {_json_object(others)}, {values} FROM read_parquet(?, binary_as_string=true)"
        parameters = [*(name for name, _ in others), _literal(file.path)]
        for number, (other, *found) in enumerate(self._stream(sql, parameters), 1):
            yield Row(f"{file.name} row {number}", tuple(found), other)

    def _parquet_types(self, file: TableFile) -> dict[str, str]:
        described = self._connection.execute(
            "DESCRIBE SELECT * FROM read_parquet(?, binary_as_string=true)", [_literal(file.path)]
        ).fetchall()
        return {name: kind for name, kind, *_ in described}


def _pointer(name: str | None) -> str | None:
    """The JSON pointer of a top-level key: it takes any key, where a JSON path would need a grammar."""
    return None if name is None else "/" + name.replace("~", "~0").replace("/", "~1")


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _as_text(name: str, kind: str) -> str:
    column = _identifier(name)
    return f"to_json({column})::VARCHAR" if _NESTED.search(kind) else f"{column}::VARCHAR"


def _json_object(columns: Sequence[tuple[str, str]]) -> str:
    """An object of (key, expression) pairs; the keys are parameters."""
    if not columns:
        return "NULL"
    return "json_object(" + ", ".join(f"?::VARCHAR, {expression}" for _, expression in columns) + ")::VARCHAR"


def _csv_header(path: Path) -> tuple[list[str], str]:
    """The names of the columns and the delimiter."""
    with _text(path) as lines:
        first = lines.readline()
        bare = re.sub(r'"[^"]*"', "", first)
        delimiter = max(",;\t|", key=bare.count)
        lines.seek(0)
        header = next(csv.reader(lines, delimiter=delimiter), [])
    if not header:
        raise csv.Error("has no header")
    if any("\ufffd" in name for name in header):
        raise csv.Error("is not UTF-8")
    return [name.strip() for name in header], delimiter


def _check_whole(path: Path) -> None:
    """Raise what gzip raises on a file that was cut off: DuckDB takes its end for the end of the table."""
    with gzip.open(path) as stream:
        while stream.read(1_048_576):
            pass


def _text(path: Path) -> TextIO:
    """The file as text; what is no UTF-8 reads as U+FFFD, since a block holds more than the header."""
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", errors="replace", newline="")
    return path.open(encoding="utf-8-sig", errors="replace", newline="")


def _why(error: Exception) -> str:
    """Why a file cannot be read, without its path or content."""
    if isinstance(error, csv.Error):
        return str(error)
    return f"cannot be read ({type(error).__name__})"

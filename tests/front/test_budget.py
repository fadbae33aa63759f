"""No result leaves larger than its page, in either era, with or without its object, whatever the texts."""

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.errors import Refused
from engine.model import message_id_of
from engine.pack import framed_bytes
from engine.sight import Caller
from handler.app import App
from handler.arguments import parse_arguments
from handler.settings import STRUCTURED_PAGE_BYTES
from handler.settings_table import LimitSettings
from tests.depth import DEEP, depth
from tests.front.corpora import app_over, table_settings
from tests.front.hostile import FILLERS, calls, crowd_calls, crowded, full_rows, heaviest_calls, random_rows
from tests.front.told import ERAS, ask
from tests.handler.running import MODERN, exchange, running

PAGE, COUNT, ERROR = 16_384, 4_096, 2_048
LISTS = ("tools/list", "resources/list", "resources/templates/list", "prompts/list")


@contextmanager
def served(folder: Path, rows: Sequence[dict[str, Any]]) -> Iterator[tuple[App, dict[bool, int]]]:
    """The application over `rows`, and the ports of its servers without and with the object."""
    plain = app_over(table_settings(folder, rows))
    plain.refresh()
    with ExitStack() as stack:
        both = app_over(table_settings(folder, rows, structured=True))
        yield plain, {False: stack.enter_context(running(plain)), True: stack.enter_context(running(both))}


def most_of(tool: str, arguments: dict[str, Any]) -> int:
    return COUNT if tool == "count_messages" and not arguments.get("by") else PAGE


CORNERS = tuple((structured, era) for structured in (False, True) for era in ERAS)
OPPOSITES = (CORNERS[0], CORNERS[3])
"""Enough where the texts are varied: what an era adds to a result does not depend on them."""


def assert_fits(
    app: App,
    ports: dict[bool, int],
    tool: str,
    arguments: dict[str, Any],
    corners: Sequence[tuple[bool, str]] = CORNERS,
) -> None:
    most = most_of(tool, arguments)
    for structured, era in corners:
        told = ask(ports[structured], tool, version=era, **arguments)
        assert told.size <= (ERROR + 512 if told.is_error else most), (tool, era, structured)
        assert "internal error" not in told.text
        assert (told.object is not None) == (structured and not told.is_error)
    if not told.is_error:
        alone = app.call(parse_arguments(tool, arguments, app.limits), Caller("program")).object
        assert len(json.dumps(alone, ensure_ascii=False, separators=(",", ":")).encode()) <= most


def assert_rest_fits(port: int) -> None:
    """Whatever a server tells beside its tools' results."""
    for era in ERAS:
        asked: list[tuple[str, dict[str, Any]]] = [(method, {}) for method in LISTS]
        asked.append(("server/discover" if era == MODERN else "initialize", {}))
        asked += [("resources/read", {"uri": f"hayfork://{name}"}) for name in ("corpus", "query-language")]
        asked += [
            (
                "prompts/get",
                {"name": "answer_from_messages", "arguments": {"question": filler * (2_000 // len(filler))}},
            )
            for filler in FILLERS.values()
        ]
        for method, params in asked:
            assert exchange(port, method, params, version=era).result_bytes <= PAGE, (method, era)


@pytest.mark.parametrize(
    ("filler", "longest"),
    [(filler, 300_000 if "bytes" in name else 20_000) for name, filler in FILLERS.items()],
    ids=FILLERS,
)
def test_no_result_exceeds_its_page_when_every_field_is_full(tmp_path: Path, filler: str, longest: int) -> None:
    """The longest message is over a megabyte in UTF-8 where each character has four bytes."""
    rows = full_rows(filler, longest)
    corners = CORNERS if DEEP and longest > 20_000 else OPPOSITES
    with served(tmp_path, rows) as (app, ports):
        ids = ask(ports[False], "search_messages", limit=10, fields=["id"]).shown
        for tool, arguments in heaviest_calls(rows, ids):
            assert_fits(app, ports, tool, arguments, corners)
        assert_rest_fits(ports[True])


def test_no_result_exceeds_its_page_with_10000_conversations_of_long_names(tmp_path: Path) -> None:
    rows = crowded(10_000)
    with served(tmp_path, rows) as (app, ports):
        for tool, arguments in crowd_calls(rows):
            assert_fits(app, ports, tool, arguments, OPPOSITES)
        assert_rest_fits(ports[False])


def test_a_page_set_too_small_for_anything_is_a_clear_error(tmp_path: Path) -> None:
    """Settings allow no such page; whoever builds the application otherwise is told."""
    rows = crowded(30)
    tight = LimitSettings.model_construct(page_bytes=800, count_bytes=700)
    app = app_over(table_settings(tmp_path, rows, limits=tight))
    app.refresh()
    message_id = message_id_of(rows[0]["conversation_id"], rows[0]["native_id"])
    asked: list[tuple[str, dict[str, Any]]] = [("count_messages", {}), ("open_thread", {"message": message_id})]
    for tool, arguments in asked:
        with pytest.raises(Refused, match="fit"):
            app.call(parse_arguments(tool, arguments, app.limits), Caller("test"))


@pytest.mark.parametrize("page_bytes", [4_096, STRUCTURED_PAGE_BYTES])
def test_the_smallest_page_that_settings_allow_holds_every_answer(tmp_path: Path, page_bytes: int) -> None:
    rows, structured = crowded(100), page_bytes == STRUCTURED_PAGE_BYTES
    least = LimitSettings(page_bytes=page_bytes, count_bytes=2_048)
    app = app_over(table_settings(tmp_path, rows, limits=least, structured=structured))
    app.refresh()
    ids = [message_id_of(row["conversation_id"], row["native_id"]) for row in rows[:10]]
    for tool, arguments in heaviest_calls(rows, ids):
        answer = app.call(parse_arguments(tool, arguments, app.limits), Caller("test"))
        most = (2_048 if most_of(tool, arguments) == COUNT else page_bytes) - 512
        assert framed_bytes(answer.text, answer.object if structured else None) <= most, (tool, arguments)


@settings(
    max_examples=depth(10, 5),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(rows=random_rows(), asked=st.lists(calls(), min_size=3, max_size=6))
def test_no_result_exceeds_its_page_whatever_the_corpus_and_the_query(
    rows: list[dict[str, Any]], asked: list[tuple[str, dict[str, Any]]]
) -> None:
    with TemporaryDirectory() as folder, served(Path(folder), rows) as (app, ports):
        for tool, arguments in asked:
            assert_fits(app, ports, tool, arguments)
        shown = ask(ports[False], "search_messages", limit=10).shown
        assert_fits(app, ports, "open_thread", {"message": shown[:10], "earlier": 100, "later": 100})

"""The table of the tools: complete, documented, clean, and changed only with an entry in its changelog."""

import json
import subprocess
import sys
from dataclasses import fields
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from engine.choices import ALL_FIELDS
from engine.requests import Criteria, SearchRequest, ThreadRequest
from handler.tools.parameters import FIELDS, FILTERS, READING, Parameter, Type
from handler.tools.schema import definitions
from handler.tools.table import TOOLS

ROOT = Path(__file__).parents[2]
CHANGELOG = ROOT / "docs" / "tool-definitions.json"
PAGE = ROOT / "docs" / "tools.md"


def listed(*, structured: bool = False) -> list[dict[str, Any]]:
    return [dict(d) for d in definitions(query_chars=4_096, structured=structured)]


def digests() -> dict[str, str]:
    """One SHA-256 per tool over everything a model or client reads of it."""
    return {
        d["name"]: sha256(json.dumps(d, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
        for d in listed(structured=True)
    }


def test_there_are_five_tools_in_the_order_of_use() -> None:
    assert [(t.name, t.title) for t in TOOLS.values()] == [
        ("count_messages", "Count matching messages, without text"),
        ("search_messages", "Search messages and read a few excerpts"),
        ("unseen_messages", "Read further matches not shown before"),
        ("open_thread", "Open the talk around one message"),
        ("export_messages", "Export every match to a file"),
    ]


def test_parameters_stand_in_the_order_of_the_requests() -> None:
    assert [p.name for p in FILTERS] == [f.name for f in fields(Criteria)]
    assert [p.name for p in READING] == [f.name for f in fields(SearchRequest)][1:]
    assert [p.name for p in TOOLS["open_thread"].parameters] == [f.name for f in fields(ThreadRequest)]


def test_the_fields_that_may_be_named_are_those_a_result_has() -> None:
    assert FIELDS.names == ("headers", "id", *ALL_FIELDS)


def test_all_four_annotations_are_explicit() -> None:
    hints = {d["name"]: d["annotations"] for d in listed()}
    reads = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": False, "openWorldHint": False}
    assert hints == {
        "count_messages": reads | {"idempotentHint": True},
        "search_messages": reads,
        "unseen_messages": reads,
        "open_thread": reads,
        "export_messages": reads | {"readOnlyHint": False},
    }


@pytest.mark.parametrize("structured", [False, True])
def test_schemas_are_valid_and_their_defaults_obey_them(*, structured: bool) -> None:
    for definition in listed(structured=structured):
        schema = definition["inputSchema"]
        Draft202012Validator.check_schema(schema)
        assert schema["additionalProperties"] is False
        for name, prop in schema["properties"].items():
            assert prop["description"], name
            if "default" in prop:
                Draft202012Validator(prop).validate(prop["default"])
        if structured:
            Draft202012Validator.check_schema(definition["outputSchema"])


def test_the_tool_definitions_lint_clean(tmp_path: Path) -> None:
    file = tmp_path / "tools.json"
    # Without the structured copy the linter notes that results have no schema, and nothing else.
    for structured, notes in ((True, 0), (False, len(TOOLS))):
        file.write_text(json.dumps({"tools": listed(structured=structured)}), "utf-8")
        lint = subprocess.run(
            [Path(sys.executable).with_name("tdqs"), "lint", "--file", file, "--fail-on", "warning"],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert (lint.returncode, lint.stdout.strip().splitlines()[-1]) == (
            0,
            f"0 errors, 0 warnings, {notes} notes",
        )


def test_every_change_of_a_definition_has_an_entry_in_the_changelog() -> None:
    entries = json.loads(CHANGELOG.read_text("utf-8"))["entries"]
    assert entries[-1]["sha256"] == digests(), (
        "a name, title, description, parameter, schema or annotation changed: add an entry to "
        "docs/tool-definitions.json that says what and why, with these digests"
    )
    versions = [e["version"] for e in entries]
    assert versions == sorted(set(versions))
    assert versions == list(range(1, len(versions) + 1))
    assert all(e["change"] and set(e["sha256"]) == set(TOOLS) for e in entries)


def row(parameter: Parameter) -> str:
    """The line of docs/tools.md for a parameter: name, type with range, default, description."""
    kind = {Type.STRING: "string", Type.INTEGER: "integer", Type.STRINGS: "[string]"}[parameter.type]
    if parameter.choices and parameter.type is Type.STRING:
        kind = ", ".join(parameter.choices)
    elif parameter.choices:
        kind += " of " + ", ".join(parameter.choices)
    if parameter.is_query and parameter.type is Type.STRING:
        kind += ", ≤4096"
    if parameter.maximum is not None:
        kind += f", {parameter.minimum}–{parameter.maximum}"
    elif parameter.minimum is not None:
        kind += f", ≥{parameter.minimum}"
    if parameter.max_values is not None:
        kind += f", {'1–' if parameter.required else '≤'}{parameter.max_values}"
    default = "required" if parameter.required else "" if parameter.default is None else str(parameter.default)
    return f"| `{parameter.name}` | {kind} | {default or '—'} | {parameter.description} |"


def test_the_page_of_the_tools_has_every_tool_and_parameter_word_by_word() -> None:
    page = PAGE.read_text("utf-8")
    for tool in TOOLS.values():
        assert f"## {tool.name}: “{tool.title}”" in page
        assert f"> {tool.description}" in page
    parts = page.split("\n## ")
    shared = "".join(part for part in parts if part.startswith(("Filters", "Reading")))
    for tool in TOOLS.values():
        own = next(part for part in parts if part.startswith(f"{tool.name}:"))
        for parameter in tool.parameters:
            assert row(parameter) in (shared if parameter in (*FILTERS, *READING) else own), parameter.name


def test_the_page_of_the_tools_names_every_part_of_a_result() -> None:
    page = PAGE.read_text("utf-8")
    parts = {name for definition in listed(structured=True) for name in definition["outputSchema"]["properties"]}
    assert {part for part in parts if f"`{part}`" not in page} == set()

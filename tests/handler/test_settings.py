"""Settings: where they come from, what they may be, and what a mistake is told."""

from datetime import UTC
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from pydantic import ValidationError

from engine.errors import BadInput
from engine.limits import Limits
from engine.sources.roles import RoleRule
from handler.settings import load_settings
from handler.settings_page import settings_page
from handler.settings_table import setting_rows

EXAMPLE = """
[corpus]
root = "data"
name = "support"
timezone = "Europe/Vienna"

[[sources]]
format = "slack"
location = "export"
workspace_url = "https://example.slack.com"
[sources.roles]
client = { email_domain = ["partner.example"] }
teammate = { user = "U1, U2", conversation = ["#staff"] }

[[sources]]
format = "jsonl"
location = "s3://bucket/rows/*.jsonl"
name = "rows"
columns = { body = "text" }
"""


@pytest.fixture(autouse=True)
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder, so that no file of the developer's is found."""
    folder = tmp_path / "empty"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def written(folder: Path, text: str) -> Path:
    path = folder / "hayfork.toml"
    path.write_text(text, "utf-8")
    return path


def test_a_file_gives_its_values_and_absolute_paths(tmp_path: Path) -> None:
    settings = load_settings(written(tmp_path, EXAMPLE))
    slack, rows = settings.sources
    assert settings.config_file == tmp_path / "hayfork.toml"
    assert (settings.corpus.root, settings.corpus.name) == (str(tmp_path / "data"), "support")
    assert settings.corpus.zone == ZoneInfo("Europe/Vienna")
    assert (slack.location, slack.name) == (str(tmp_path / "export"), "export")
    assert slack.rules == {
        "client": RoleRule(email_domain=("partner.example",)),
        "teammate": RoleRule(user=("U1", "U2"), conversation=("#staff",)),
    }
    assert (rows.location, rows.name, rows.columns) == ("s3://bucket/rows/*.jsonl", "rows", {"body": "text"})


def test_without_a_file_the_defaults_are_those_of_the_engine(working_folder: Path) -> None:
    settings = load_settings()
    assert settings.config_file is None
    assert settings.engine_limits == Limits()
    assert settings.corpus.zone == UTC
    assert settings.corpus.root == str(working_folder / ".hayfork")


def test_the_file_of_the_working_folder_is_found(working_folder: Path) -> None:
    path = written(working_folder, '[corpus]\nname = "here"\n')
    settings = load_settings()
    assert (settings.corpus.name, settings.config_file) == ("here", path)


def test_the_environment_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HAYFORK_CONFIG", str(written(tmp_path, EXAMPLE)))
    assert load_settings().corpus.name == "support"


def test_the_environment_overrides_single_values_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HAYFORK_CORPUS_NAME", "mail")
    monkeypatch.setenv("HAYFORK_SERVER_PORT", "0")
    monkeypatch.setenv("HAYFORK_SERVER_STRUCTURED", "true")
    monkeypatch.setenv("HAYFORK_SERVER_ALLOWED_HOSTS", "a.example, b.example")
    settings = load_settings(written(tmp_path, EXAMPLE))
    assert (settings.corpus.name, settings.corpus.timezone) == ("mail", "Europe/Vienna")
    assert settings.server.port == 0
    assert settings.server.allowed_hosts == ("a.example", "b.example")
    assert settings.engine_limits.page.structured


def test_sources_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch, working_folder: Path) -> None:
    monkeypatch.setenv("HAYFORK_SOURCES", '[{"format": "csv", "location": "a.csv"}]')
    (source,) = load_settings().sources
    assert (source.format, source.location, source.name) == ("csv", str(working_folder / "a.csv"), "a.csv")


def test_settings_cannot_be_changed() -> None:
    settings = load_settings()
    with pytest.raises(ValidationError, match="frozen"):
        settings.corpus.name = "other"
    with pytest.raises(ValidationError, match="frozen"):
        settings.sources = ()


SOURCE = '[[sources]]\nformat = "slack"\nlocation = "x"\n'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[corpus]\nrot = 'x'", "unknown_setting: no setting is called 'corpus.rot'; use root"),
        ("[copus]\nroot = 'x'", "unknown_setting: no setting is called 'copus'; use corpus"),
        (
            SOURCE + "work_url = ''",
            "unknown_setting: no setting is called 'sources.0.work_url'; use workspace_url",
        ),
        (
            SOURCE + "[sources.roles]\nclient = { mail_domain = [] }",
            "unknown_setting: no setting is called 'sources.0.roles.client.mail_domain'; use email_domain",
        ),
        (
            "[corpus]\nzzz = 1",
            "unknown_setting: no setting is called 'corpus.zzz'; the settings are root, name, timezone, redact",
        ),
        ("[[sources]]\nformat = 'slack'", "bad_setting: sources.0.location is missing; add it"),
        (
            "[[sources]]\nformat = 'xls'\nlocation = 'x'",
            "bad_setting: sources.0.format 'xls': input should be 'slack', 'jsonl', 'csv' or 'parquet'",
        ),
        (
            "[corpus]\ntimezone = 'Europe/Wien'",
            "bad_setting: corpus.timezone 'Europe/Wien': is no time zone; use Europe/Vienna",
        ),
        (
            "[corpus]\ntimezone = '-'",
            "bad_setting: corpus.timezone '-': is no time zone; use a name like Europe/Vienna",
        ),
        (
            "[limits]\npage_bytes = 8191\n[server]\nstructured = true",
            (
                "bad_setting: limits.page_bytes 8191 is too small with server.structured;"
                " give 8192 or more, since both forms share a page, or turn the copy off"
            ),
        ),
        (
            "[limits]\npage_bytes = 20000",
            "bad_setting: limits.page_bytes '20000': input should be less than or equal to 16384",
        ),
    ],
)
def test_a_mistake_in_the_file_is_named_with_its_way_out(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(BadInput) as caught:
        load_settings(written(tmp_path, text))
    assert caught.value.to_text() == told


def test_what_is_not_toml_is_told_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        load_settings(written(tmp_path, "[corpus]\nroot ="))
    assert caught.value.to_text() == (
        "bad_config: 'hayfork.toml' is not TOML: Invalid value (at end of document); mend that line"
    )


def test_an_unreadable_file_tells_nothing_of_what_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "hayfork.toml"
    path.write_bytes(b"# secret = hunter2 \xff")
    with pytest.raises(BadInput) as caught:
        load_settings(path)
    assert (caught.value.code, caught.value.detail) == ("no_config", "UnicodeDecodeError")


def test_a_named_file_must_exist_and_be_readable(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        load_settings(Path("missing.toml"))
    assert caught.value.to_text() == ("no_config: no configuration at 'missing.toml'; name a file that exists")
    with pytest.raises(BadInput) as caught:
        load_settings(tmp_path)
    assert caught.value.code == "no_config"


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        (
            "HAYFORK_SERVER_PROT",
            "1",
            "unknown_setting: no setting is called 'HAYFORK_SERVER_PROT'; use HAYFORK_SERVER_PORT",
        ),
        ("HAYFORK_SOURCES", "[", "bad_setting: a HAYFORK_* variable is not JSON"),
        ("HAYFORK_SOURCES", "3", "bad_setting: sources '3': input should be a valid tuple"),
    ],
)
def test_a_mistake_in_the_environment_is_named(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, told: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(BadInput) as caught:
        load_settings()
    assert caught.value.to_text() == told


def test_every_setting_says_what_it_is_and_every_bound_has_a_reason() -> None:
    rows = list(setting_rows())
    unbounded_reasons = {"server.port", "duckdb.threads"}
    assert [row.name for row in rows if not row.help] == []
    assert [r.name for r in rows if r.limits and not r.reason and r.name not in unbounded_reasons] == []


def test_the_settings_page_is_what_the_table_says() -> None:
    page = Path(__file__).parents[2] / "docs" / "settings.md"
    assert page.read_text("utf-8") == settings_page()

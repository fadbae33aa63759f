"""What `make sam-local` starts, which needs a container engine: that its files are well-formed and fit one another."""

import json
import re
import shlex
import subprocess
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from handler.settings import load_settings
from tests.infra.template_reader import load_template

ROOT = Path(__file__).parents[2]
FUNCTIONS = ("McpFunction", "InvokeFunction", "RefreshFunction")

# Of the Compose specification, what is used; a misspelt key is refused by the engine only when it is started.
TOP_KEYS = {"name", "services", "configs", "volumes", "networks"}
SERVICE_KEYS = {
    *("image", "command", "entrypoint", "environment", "configs", "volumes", "ports", "user", "depends_on"),
    "healthcheck",
}
CONDITIONS = {"service_started", "service_healthy", "service_completed_successfully"}


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "infra/deploy/compose.yaml").read_text("utf-8"))
    return found


@pytest.fixture(scope="module")
def replaced() -> dict[str, dict[str, str]]:
    """The variables `sam local` replaces, by function."""
    found: dict[str, dict[str, str]] = json.loads((ROOT / "infra/deploy/sam-local.json").read_text("utf-8"))
    return found


def script(compose: dict[str, Any]) -> str:
    """What makes the stores, as the shell is given it."""
    (text,) = compose["services"]["stores"]["command"]
    return str(text).replace("$$", "$")


def test_every_part_is_known_and_every_reference_leads_somewhere(compose: dict[str, Any]) -> None:
    assert set(compose) == TOP_KEYS
    for name, service in compose["services"].items():
        assert set(service) <= SERVICE_KEYS, name
        assert re.fullmatch(r"[a-z0-9./-]+:\d+[\d.]*", service["image"]), "pinned to a version"
        assert set(service["healthcheck"]) <= {"test", "interval", "retries"} if "healthcheck" in service else True
        for other, needed in service.get("depends_on", {}).items():
            assert needed["condition"] in CONDITIONS
            assert needed["condition"] != "service_healthy" or "healthcheck" in compose["services"][other]
        for volume in service.get("volumes", []):
            assert volume.split(":")[0] in compose["volumes"]
        for config in service.get("configs", []):
            assert set(config) == {"source", "target"}
            assert config["source"] in compose["configs"]
    # A single $ is Compose's own; the shell's must be doubled.
    (text,) = compose["services"]["stores"]["command"]
    assert not re.search(r"(?<!\$)\$(?!\$)", text)
    subprocess.run(["sh", "-n"], input=script(compose), text=True, check=True)


def test_ports_are_open_to_this_machine_alone(compose: dict[str, Any]) -> None:
    published = {name: service["ports"] for name, service in compose["services"].items() if "ports" in service}
    assert published == {"s3": ["127.0.0.1:8333:8333"], "dynamodb": ["127.0.0.1:8000:8000"]}


def test_functions_reach_the_services_by_name_on_their_network(
    compose: dict[str, Any], replaced: dict[str, dict[str, str]]
) -> None:
    configured = tomllib.loads((ROOT / "samconfig.toml").read_text("utf-8"))["default"]["local_start_api"]["parameters"]
    assert configured["docker_network"] == compose["networks"]["default"]["name"]
    assert configured["env_vars"] == "infra/deploy/sam-local.json"
    assert set(replaced) == set(FUNCTIONS)
    for function in FUNCTIONS:
        for variable, service in (("S3", "s3"), ("DYNAMODB", "dynamodb")):
            url = urlsplit(replaced[function][f"HAYFORK_AWS_{variable}_ENDPOINT"])
            inside = {port.rsplit(":", 1)[1] for port in compose["services"][service]["ports"]}
            assert (url.scheme, url.hostname, str(url.port) in inside) == ("http", service, True)
            assert url.geturl() in script(compose)


def test_one_pair_of_keys_opens_everything(compose: dict[str, Any]) -> None:
    identities = json.loads(compose["configs"]["s3"]["content"])["identities"]
    pair = {"accessKey": "local", "secretKey": "local-secret"}
    assert [identity["credentials"] for identity in identities] == [[pair]]
    environment = compose["services"]["stores"]["environment"]
    assert environment == {
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local-secret",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    makefile, page = ((ROOT / name).read_text("utf-8") for name in ("Makefile", "docs/deploy.md"))
    assert "AWS_ACCESS_KEY_ID=local AWS_SECRET_ACCESS_KEY=local-secret AWS_REGION=us-east-1" in makefile
    assert page.count("AWS_ACCESS_KEY_ID=local AWS_SECRET_ACCESS_KEY=local-secret") == 2


def test_the_stores_that_are_made_are_those_the_functions_are_told_and_the_template_describes(
    compose: dict[str, Any], replaced: dict[str, dict[str, str]]
) -> None:
    (buckets,) = re.findall(r"^for bucket in (.+); do$", script(compose), re.MULTILINE)
    (sources, corpus) = buckets.split()
    assert {variables["HAYFORK_CORPUS_ROOT"] for variables in replaced.values()} == {f"s3://{corpus}"}
    assert json.loads(replaced["RefreshFunction"]["HAYFORK_SOURCES"])[0]["location"].startswith(f"s3://{sources}/")
    commands = re.findall(r"^table (.+)$", script(compose).replace("\\\n", " "), re.MULTILINE)
    made = {}
    for command in commands:
        name, *options = shlex.split(command)
        made[name] = [option for option in options if not option.startswith("--")]
    template = load_template()
    for table, variable in (
        ("SeenTable", "HAYFORK_AWS_SEEN_TABLE"),
        ("KeysTable", "HAYFORK_AWS_KEYS_TABLE"),
        ("LockTable", "HAYFORK_AWS_LOCK_TABLE"),
        ("UsageTable", "HAYFORK_AWS_USAGE_TABLE"),
    ):
        (name,) = {variables[variable] for variables in replaced.values() if variable in variables}
        properties = template.resources[table]["Properties"]
        spelled = [
            ",".join(f"{key}={value}" for key, value in each.items())
            for each in (
                *properties["AttributeDefinitions"],
                *properties["KeySchema"],
            )
        ]
        assert made.pop(name) == spelled
    assert made == {}
    assert f"--table-name {replaced['RefreshFunction']['HAYFORK_AWS_LOCK_TABLE']}" in str(
        compose["services"]["stores"]["healthcheck"]["test"]
    )


@pytest.mark.parametrize("function", FUNCTIONS)
def test_what_sam_local_gives_a_function_is_an_environment_it_starts_with(
    replaced: dict[str, dict[str, str]], function: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    environment = load_template().environment(function)
    # It replaces what stands in the template, and passes nothing else.
    assert set(replaced[function]) <= set(environment)
    for name, value in {**environment, **replaced[function]}.items():
        monkeypatch.setenv(name, str(value))
    settings = load_settings()
    assert settings.aws.s3_endpoint == "http://s3:8333"
    assert (settings.auth.modes == ("api_key",)) == (function == "McpFunction")


def test_every_event_that_the_page_invokes_with_is_there() -> None:
    page = (ROOT / "docs/deploy.md").read_text("utf-8")
    events = re.findall(r"sam local invoke (\w+) .*-e (\S+)", page)
    assert {function for function, _ in events} == {"RefreshFunction", "InvokeFunction"}
    for _, name in events:
        assert isinstance(json.loads((ROOT / name).read_text("utf-8")), dict)

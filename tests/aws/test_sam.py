"""The template passes its linters, and builds for both architectures within Lambda's limits."""

import json
import struct
import subprocess
from pathlib import Path

import pytest

from infra.deploy.build_artifact import ARCHITECTURES, MAX_BYTES, ROOT, SERVICES, build, folder_bytes
from tests.aws.runtime_api import runtime_python
from tests.aws.sam import sam
from tests.infra.template_reader import load_template

pytestmark = [pytest.mark.aws, pytest.mark.slow]


def test_the_template_is_valid(tmp_path: Path) -> None:
    assert "is a valid SAM Template" in sam(tmp_path, "validate", "--lint")


def test_the_template_has_nothing_for_a_linter_to_say(tmp_path: Path) -> None:
    said = sam(tmp_path, "--include-checks", "W", "I", "--template", "template.yaml", program="cfn-lint")
    assert [line for line in said.splitlines() if line.strip()] == []


@pytest.mark.parametrize("architecture", ["x86_64", pytest.param("arm64", marks=pytest.mark.deep)])
def test_sam_builds_every_function_for_either_architecture(tmp_path: Path, architecture: str) -> None:
    said = sam(
        tmp_path,
        "build",
        "--build-dir",
        str(tmp_path / "built"),
        "--parameter-overrides",
        f"Architecture={architecture}",
    )
    assert "Build Succeeded" in said
    for function in ("McpFunction", "InvokeFunction", "RefreshFunction"):
        folder = tmp_path / "built" / function
        assert folder_bytes(folder) < MAX_BYTES
        machines = {machine_of(path) for path in folder.rglob("*.so")}
        assert machines == {ARCHITECTURES[architecture][1]}


def machine_of(library: Path) -> int:
    head = library.read_bytes()[:20]
    machine: int = struct.unpack_from("<H", head, 18)[0]
    return machine


def test_the_artifact_holds_what_runs_and_no_more(artifact: Path) -> None:
    names = {path.name for path in artifact.iterdir()}
    assert {"engine", "infra", "handler", "duckdb", "mcp", "mangum", "numpy", "boto3"} <= names
    assert not names & {"typer", "rich", "pyarrow", "pytest", "tests", "awscrt", "bin", "pandas", "x402"}
    assert not (artifact / "handler" / "payment").exists()
    assert {each.name for each in (artifact / "botocore" / "data").iterdir() if each.is_dir()} == set(SERVICES)
    assert not (artifact / "infra" / "deploy").exists()
    assert not list(artifact.rglob("tests"))
    httpfs = list(artifact.glob("duckdb_extension_httpfs/extensions/*/httpfs.duckdb_extension"))
    assert len(httpfs) == 1


def test_every_module_of_ours_is_compiled(artifact: Path) -> None:
    for package in ("engine", "infra", "handler"):
        for module in (artifact / package).rglob("*.py"):
            assert list((module.parent / "__pycache__").glob(f"{module.stem}.cpython-313.pyc")), module


def test_every_module_of_ours_can_be_imported_from_the_artifact_alone(artifact: Path) -> None:
    modules = [
        ".".join(path.relative_to(artifact).with_suffix("").parts).removesuffix(".__init__")
        for package in ("engine", "infra", "handler")
        for path in (artifact / package).rglob("*.py")
        if "cli" not in path.parts and path.stem not in {"cli", "demo"}
    ]
    command = [runtime_python(), "-S", "-P", "-W", "error", "-c", f"import {', '.join(modules)}"]
    environment = {"PYTHONPATH": str(artifact), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, env=environment, cwd=artifact, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2_000:]


def test_two_builds_of_one_source_are_equal(artifact: Path, architecture: str, tmp_path: Path) -> None:
    build(architecture, tmp_path / "again")
    assert contents(tmp_path / "again") == contents(artifact)


def contents(folder: Path) -> dict[str, bytes]:
    ours = [path for package in ("engine", "handler", "infra") for path in (folder / package).rglob("*.py*")]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in ours if path.is_file()}


_ROUTES = """
from samcli.lib.providers.api_provider import ApiProvider
from samcli.lib.providers.sam_stack_provider import SamLocalStackProvider
for each in ApiProvider(SamLocalStackProvider.get_stacks("template.yaml")[0]).api.routes:
    print("POST" in each.methods, "GET" in each.methods, each.path, each.function_name, each.payload_format_version)
"""


def test_sam_local_would_serve_the_routes_of_the_http_api(tmp_path: Path) -> None:
    said = sam(tmp_path, "-c", _ROUTES, program="python")
    assert said.split("\n")[:3] == [
        "True True /mcp McpFunction 2.0",
        "False True /usage McpFunction 2.0",
        "False True /exports/{id} McpFunction 2.0",
    ]


def test_every_variable_that_sam_local_replaces_stands_in_the_template() -> None:
    replaced = json.loads((ROOT / "infra/deploy/sam-local.json").read_text("utf-8"))
    for function, variables in replaced.items():
        assert set(variables) <= set(load_template().environment(function)), function

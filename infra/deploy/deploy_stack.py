"""Deploys what `make build` made, with the revision that makes the functions' alias follow.

Decides what a revision is: a digest of the built code, the template and every parameter the stack will then have, those
it has already included. SAM publishes a version, and moves the alias to it, only when it is told another digest;
without one the alias would go on with the environment, and the policies, of the version before. Parameters are words
`Name=value`, over those of a TOML file. Run by the SAM CLI's own Python. Must never know what the parameters mean.
"""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

__all__ = ["given_parameters", "revision_of"]

ROOT = Path(__file__).resolve().parents[2]

_NAMED = re.compile(r"([A-Za-z][A-Za-z0-9]*)=(.*)", re.DOTALL)
_OWN = ("Architecture", "Revision")
_DEPLOYED = "deployed.yaml"
"""The template that is deployed, beside the one that was built, whose paths are relative."""


def given_parameters(words: Sequence[str], file: Path | None = None) -> dict[str, str]:
    """Parameters of words `Name=value`, over those of a TOML file if it is there.

    Raises:
        SystemExit: a word is none, or a parameter is named that is filled in here.
    """
    found = _parameters_of(file) if file is not None and file.is_file() else {}
    for word in words:
        named = _NAMED.fullmatch(word)
        if named is None:
            raise SystemExit(f"{word!r} is no parameter; write Name=value")
        found[named[1]] = named[2]
    for name in _OWN:
        if name in found:
            raise SystemExit(f"{name} is filled in by make deploy; for Architecture write ARCHITECTURE=x86_64")
    return found


def _parameters_of(file: Path) -> dict[str, str]:
    with file.open("rb") as opened:
        plain = tomllib.load(opened)
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in plain.items()}


def revision_of(built: Path, parameters: Mapping[str, str]) -> str:
    """SHA-256, in hex, of every file below `built` and of the parameters."""
    digest = hashlib.sha256(json.dumps(sorted(parameters.items())).encode())
    for path in sorted(each for each in built.rglob("*") if each.is_file() and each.name != _DEPLOYED):
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        digest.update(f"{path.relative_to(built).as_posix()}\0{content}\n".encode())
    return digest.hexdigest()


def _configured(path: Path) -> dict[str, Any]:
    """What `samconfig.toml` says under `global` of its default environment."""
    with path.open("rb") as file:
        found: dict[str, Any] = tomllib.load(file)["default"]["global"]["parameters"]
    return found


def _current_parameters(stack: str) -> dict[str, str]:
    """The parameters the stack has; none when it is not there yet."""
    import boto3  # noqa: PLC0415 - the SAM CLI's own; what only reads this module needs none
    from botocore.exceptions import ClientError  # noqa: PLC0415 - likewise

    try:
        (described,) = boto3.client("cloudformation").describe_stacks(StackName=stack)["Stacks"]
    except ClientError as error:
        if "does not exist" in str(error):
            return {}
        raise
    return {each["ParameterKey"]: each["ParameterValue"] for each in described.get("Parameters", [])}


def _main() -> int:
    parser = argparse.ArgumentParser(description="Deploy what make build made.")
    parser.add_argument("--architecture", required=True, choices=["arm64", "x86_64"])
    parser.add_argument("--built", type=Path, default=ROOT / ".aws-sam" / "build")
    parser.add_argument("--file", type=Path, default=ROOT / "parameters.toml", help="parameters that are kept")
    parser.add_argument("--stack", help="the stack's name; else that of samconfig.toml")
    parser.add_argument("--option", action="append", default=[], help="a further option of sam deploy")
    parser.add_argument("parameters", nargs="*", metavar="Name=value")
    given = parser.parse_args()
    template = given.built / "template.yaml"
    if not template.is_file():
        raise SystemExit("nothing is built: run make build first")
    stack = given.stack or _configured(ROOT / "samconfig.toml")["stack_name"]
    yaml = import_module("samcli.yamlhelper")
    plain = yaml.yaml_parse(template.read_text("utf-8"))
    changed, known = given_parameters(given.parameters, given.file), plain["Parameters"]
    if unknown := sorted(changed.keys() - known.keys()):
        raise SystemExit(f"the template has no parameter {unknown[0]}; see docs/deploy.md for those it has")
    # All are passed on, so that what the revision stands for is what is deployed.
    parameters = {name: value for name, value in _current_parameters(stack).items() if name in known} | changed
    parameters = {name: value for name, value in parameters.items() if name not in _OWN}
    parameters["Architecture"] = given.architecture
    parameters["Revision"] = known["Revision"]["Default"] = revision_of(given.built, parameters)
    # The default is for what expands SAM's part of the template without being told the parameters.
    deployed = given.built / _DEPLOYED
    deployed.write_text(yaml.yaml_dump(plain), "utf-8")
    with tempfile.TemporaryDirectory() as folder:
        # Words would pass through SAM's own quoting, which JSON does not survive; JSON is YAML.
        overrides = Path(folder) / "parameters.yaml"
        overrides.write_text(json.dumps(parameters), "utf-8")
        command = [str(Path(sys.executable).with_name("sam")), "deploy", "--template-file", str(deployed)]
        command += ["--config-file", str(ROOT / "samconfig.toml"), "--stack-name", stack, *given.option]
        command += ["--parameter-overrides", f"file://{overrides}"]
        return subprocess.run(command, check=False, env={**os.environ, "SAM_CLI_TELEMETRY": "0"}).returncode  # noqa: S603 - words of ours and of who runs it


if __name__ == "__main__":
    sys.exit(_main())

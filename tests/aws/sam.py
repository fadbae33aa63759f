"""The SAM CLI as `make aws-tools` installs it, with nothing of this machine's AWS configuration."""

import json
import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from infra.deploy.build_artifact import ROOT
from tests.aws.runtime_api import runtime_python
from tests.loopback.sitecustomize import TOLD_IN

__all__ = ["sam"]

TOOLS = ROOT / "build" / "sam" / "bin"


def sam(home: Path, *arguments: str, program: str = "sam", environment: Mapping[str, str] | None = None) -> str:
    """What the program says, run in the project's folder with `home` as its home.

    Raises:
        FileNotFoundError: `make aws-tools` was not run.
        AssertionError: it failed; holds the end of what it said.
    """
    tool = TOOLS / program
    if not tool.exists():
        raise FileNotFoundError("the SAM CLI is not installed: run make aws-tools")
    # Settings of pip may stand in the real home, and the build downloads with it.
    pip = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "REQUESTS_"))}
    configuration = Path.home() / ".config" / "pip" / "pip.conf"
    if configuration.exists() and "PIP_CONFIG_FILE" not in pip:
        pip["PIP_CONFIG_FILE"] = str(configuration)
    own = {
        **pip,
        # sam build looks for the runtime's Python there.
        "PATH": f"{Path(runtime_python()).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(home),
        "PYENV_ROOT": os.environ.get("PYENV_ROOT", str(Path.home() / ".pyenv")),
        "LANG": "C.UTF-8",
        "SAM_CLI_TELEMETRY": "0",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        # The guard of tests/conftest.py: only a build, which downloads packages, reaches beyond this machine.
        **({} if "build" in arguments else {n: os.environ[n] for n in ("PYTHONPATH", TOLD_IN) if n in os.environ}),
        **(environment or {}),
    }
    state = home / ".aws-sam" / "metadata.json"
    if not state.exists():
        # Else it would look on the package index whether it is the newest.
        state.parent.mkdir(exist_ok=True)
        state.write_text(json.dumps({"lastVersionCheck": time.time(), "telemetryEnabled": False}))
    done = subprocess.run(
        [str(tool), *arguments],
        cwd=ROOT,
        env=own,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    said = f"{done.stdout}\n{done.stderr}"
    assert done.returncode == 0, said[-4_000:]
    return said

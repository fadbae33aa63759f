"""Every package that Hayfork brings along is under a licence that asks for no more than notice."""

import re
from importlib.metadata import Distribution, PackageNotFoundError, distribution

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ALLOWED = {
    "0BSD": "asks for nothing",
    "Apache-2.0": "notice, and patents are granted",
    "BSD-2-Clause": "notice",
    "BSD-3-Clause": "notice",
    "CC0-1.0": "asks for nothing",
    "CNRI-Python": "notice; the older half of the regular expressions came from Python",
    "ISC": "notice",
    "MIT": "notice",
    "MIT-0": "asks for nothing",
    "PSF-2.0": "notice",
    "Zlib": "notice",
}
"""By SPDX identifier, with what each asks for. None asks for source code, and none forbids a use."""

_WORDS = {
    "Apache License 2.0": "Apache-2.0",
    "ISC License": "ISC",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "MIT No Attribution License (MIT-0)": "MIT-0",
    "BSD License": "BSD-3-Clause",
    "Apache Software License": "Apache-2.0",
}
"""How packages without an SPDX expression say it."""

NOT_ON_EVERY_MACHINE = {
    "colorama",
    "pywin32",
    "tomli",
    "exceptiongroup",
    "importlib-metadata",
    "zipp",
    "backports-zstd",
}
"""Asked for by markers that this machine's Python does not fit."""


def shipped() -> dict[str, Distribution]:
    """Every package of the run-time closure, the terminal's included, by name."""
    found: dict[str, Distribution] = {}
    waiting = [Requirement("hayfork[cli,x402]")]
    seen: set[str] = set()
    while waiting:
        wanted = waiting.pop()
        name = canonicalize_name(wanted.name)
        if str(wanted) in seen:
            continue
        seen.add(str(wanted))
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            assert name in NOT_ON_EVERY_MACHINE, f"{name} is asked for and not installed"
            continue
        for line in found[name].requires or ():
            further = Requirement(line)
            extras = ["", *wanted.extras]
            if further.marker is None or any(further.marker.evaluate({"extra": extra}) for extra in extras):
                waiting.append(further)
    del found["hayfork"]
    return found


def stated_by(package: Distribution) -> str:
    """The licence in SPDX's terms, as the package states it."""
    told = package.metadata.json
    if told.get("license_expression"):
        return str(told["license_expression"])
    known = [line.rpartition(" :: ")[2] for line in told.get("classifier", ()) if line.startswith("License ::")]
    return " OR ".join(_WORDS.get(word, word) for word in known or [str(told.get("license", ""))])


def refused(expression: str) -> list[str]:
    """The parts of an expression that hold, and that no allowed choice satisfies."""
    parts = [part.strip("() ") for part in re.split(r"\s+AND\s+", expression)]
    return [part for part in parts if not set(re.split(r"\s+OR\s+", part)) & set(ALLOWED)]


SHIPPED = shipped()


def test_the_closure_is_walked() -> None:
    assert {"duckdb", "mcp", "boto3", "numpy", "pydantic-core", "typer", "uvicorn", "cryptography"} <= set(SHIPPED)
    assert not {"pytest", "hypothesis", "mypy", "detect-secrets", "matplotlib"} & set(SHIPPED)


@pytest.mark.parametrize("name", sorted(SHIPPED))
def test_every_package_that_is_shipped_is_under_an_allowed_licence(name: str) -> None:
    assert refused(stated_by(SHIPPED[name])) == []


@pytest.mark.parametrize("expression", ["GPL-3.0-only", "MIT AND LGPL-2.1-only", "", "UNKNOWN", "Proprietary"])
def test_what_asks_for_more_or_says_nothing_would_be_found(expression: str) -> None:
    assert refused(expression) != []

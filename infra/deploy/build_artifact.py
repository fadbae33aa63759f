"""Makes the folder that Lambda runs, for either architecture, on any machine with Python 3.11 and pip.

Decides what of the dependencies goes in, and that nothing is built from source. Must never know a template
or an account. Called once per function by `sam build`; the functions share one set of dependencies under
`build/artifact/`, so only the first of them downloads anything.

Modules are compiled for Python 3.13 when one is at hand. `/var/task` is read-only, so a module without its
`.pyc` is compiled anew in every new container: 2.5 s instead of 1.1 s to import everything, which 17 MB
unpacked are well spent on. The `.pyc` files are of the unchecked kind, since a zip rounds modification
times, and a time that differs throws the compiled module away.
"""

import argparse
import hashlib
import os
import shutil
import struct
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["ARCHITECTURES", "MAX_BYTES", "PYTHON_VERSION", "build", "find_python", "folder_bytes"]

ROOT = Path(__file__).resolve().parents[2]

PYTHON_VERSION = "3.13"
"""The runtime's: httpfs needs glibc 2.28, which Lambda's images have from Python 3.12 on."""

MAX_BYTES = 180_000_000
"""Lambda unpacks 250 MiB at most; staying well under it keeps a cold start's download short."""

ARCHITECTURES = {"x86_64": ("x86_64", 62), "arm64": ("aarch64", 183)}
"""Lambda's name of an architecture, with the wheels' name of it and its machine number in an ELF header."""

OURS = ("engine", "infra", "handler")

_NOT_DEPLOYED = ("__pycache__", "deploy", ".*", "cli", "bench", "demo.py", "measure.py", "synth")
"""Of ours: what a person at a terminal uses, with packages that a function does not carry."""

EXTRAS = {"x402": "payment"}
"""What may be added, with the folder of ours that stays behind without it."""

SERVICES = frozenset({"s3", "dynamodb", "lambda", "sts"})
"""The services called, and STS for credentials by a role. botocore describes 400 more."""

_UNUSED = (
    "bin",
    "_duckdb-stubs",
    "adbc_driver_duckdb",
    "aws_lambda_powertools/event_handler",  # of it only logs, metrics and traces are used
    "aws_lambda_powertools/utilities/auth_alpha",
    "aws_lambda_powertools/utilities/batch",
    "aws_lambda_powertools/utilities/circuit_breaker",
    "aws_lambda_powertools/utilities/data_classes",
    "aws_lambda_powertools/utilities/data_masking",
    "aws_lambda_powertools/utilities/feature_flags",
    "aws_lambda_powertools/utilities/idempotency",
    "aws_lambda_powertools/utilities/kafka",
    "aws_lambda_powertools/utilities/metadata",
    "aws_lambda_powertools/utilities/parameters",
    "aws_lambda_powertools/utilities/parser",
    "aws_lambda_powertools/utilities/streaming",
    "aws_lambda_powertools/utilities/typing",
    "aws_lambda_powertools/utilities/validation",
    "aws_xray_sdk/ext",  # nothing is patched: a subsegment is opened by hand
    "boto3/examples",
    "cffi",  # what cryptography runs is _cffi_backend
    "click",  # command lines of httpx2, python-dotenv and uvicorn
    "duckdb/experimental",
    "jsonschema/benchmarks",
    "numpy/_core/include",
    "numpy/_pyinstaller",
    "numpy/f2py",
    "numpy/fft",  # imported on first use only, and nothing here uses it
    "numpy/polynomial",
    "numpy/random",  # likewise
    "numpy/testing",  # likewise
    "pycparser",
    "pydantic/v1",
    "uvicorn",  # a function is called, it listens to nothing
    "x402/extensions",  # of it only the server's half and its client of a facilitator are used
    "x402/http/paywall",
    "x402/mcp",
    "x402/mechanisms",
)
_UNUSED_MODULES = ("numpy/_core/_simd.*.so", "numpy/_core/*_tests.*.so", "nanoarrow/_ipc_lib.*.so")
_UNUSED_SUFFIXES = frozenset({".pyi", ".pxd", ".pyx", ".h", ".c", ".a", ".lib"})
_NEWEST_GLIBC = 34


def find_python() -> str | None:
    """A Python of the runtime's version that starts, from PATH, pyenv or uv; `None` when there is none."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    managed = Path.home() / ".local/share/uv/python"
    name = f"python{PYTHON_VERSION}"
    candidates = [name, sys.executable]
    candidates += [str(p) for base in (pyenv, managed) for p in sorted(base.glob(f"*{PYTHON_VERSION}.*/bin/{name}"))]
    for candidate in candidates:
        if _version(candidate) == PYTHON_VERSION:
            return candidate
    return None


def _version(python: str) -> str | None:
    say = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run([python, "-c", say], capture_output=True, text=True, check=False, timeout=20)  # noqa: S603 - fixed words
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def build(
    architecture: str, into: Path, cache: Path = ROOT / "build" / "artifact", extras: tuple[str, ...] = ()
) -> int:
    """Fill `into` with the artifact and return its size in bytes. `extras` are optional dependencies to add.

    Raises:
        SystemExit: a wheel is missing, a library is of another machine, or the whole is too large.
    """
    python = find_python()
    if python is None:
        sys.stderr.write(
            f"no python{PYTHON_VERSION} found: the modules are not compiled, and every cold start takes "
            f"seconds longer; install it, or put it on PATH\n"
        )
    dependencies = _dependencies(architecture, cache, python, extras)
    left_out = [*_NOT_DEPLOYED, *(folder for extra, folder in EXTRAS.items() if extra not in extras)]
    into.mkdir(parents=True, exist_ok=True)
    _link_tree(dependencies, into)
    for package in OURS:
        shutil.rmtree(into / package, ignore_errors=True)
        shutil.copytree(ROOT / package, into / package, ignore=shutil.ignore_patterns(*left_out))
        _compile(python, into / package)
    _describe(into)
    _check_machine(into, ARCHITECTURES[architecture][1])
    size = folder_bytes(into)
    if size > MAX_BYTES:
        raise SystemExit(f"the artifact has {size:,} bytes, {MAX_BYTES:,} at most")
    return size


def _project() -> dict[str, Any]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        project: dict[str, Any] = tomllib.load(file)["project"]
    return project


def _describe(into: Path) -> None:
    """What an installer would leave behind: the server reads its own version from it."""
    project = _project()
    described = into / f"{project['name']}-{project['version']}.dist-info"
    described.mkdir(exist_ok=True)
    text = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (described / "METADATA").write_text(text, "utf-8")


def _dependencies(architecture: str, cache: Path, python: str | None, extras: tuple[str, ...]) -> Path:
    """The trimmed dependencies, made once for each lock file, recipe and kind of compilation."""
    project = _project()
    wanted: list[str] = [*project["dependencies"]]
    for extra in extras:
        wanted += project["optional-dependencies"][extra]
    lock = ROOT / "requirements.lock"
    recipe = "\n".join([*wanted, lock.read_text(), Path(__file__).read_text(), str(python is not None)])
    made = cache / f"{architecture}-{hashlib.sha256(recipe.encode()).hexdigest()[:16]}"
    if made.is_dir():
        return made
    making = cache / f"{made.name}.{os.getpid()}"
    shutil.rmtree(making, ignore_errors=True)
    _install(python or sys.executable, ARCHITECTURES[architecture][0], wanted, lock, making)
    _trim(making)
    _compile(python, making)
    try:
        making.rename(made)
    except OSError:
        shutil.rmtree(making)  # another build of the same was faster
    return made


def _install(python: str, machine: str, wanted: list[str], lock: Path, target: Path) -> None:
    # Each glibc is named: pip takes a platform by its letter and does not infer the older ones.
    platforms = [f"manylinux_2_{minor}_{machine}" for minor in range(_NEWEST_GLIBC, 16, -1)]
    # pip judges markers such as python_version by the interpreter it runs in.
    command = [
        python,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-compile",
        "--disable-pip-version-check",
    ]
    command += ["--root-user-action", "ignore", "--only-binary", ":all:", "--implementation", "cp"]
    command += ["--python-version", PYTHON_VERSION, "--target", str(target), "--constraint", str(lock)]
    for platform in [*platforms, f"manylinux2014_{machine}"]:
        command += ["--platform", platform]
    done = subprocess.run([*command, *wanted], check=False)  # noqa: S603 - words of ours and of pyproject.toml
    if done.returncode:
        shutil.rmtree(target, ignore_errors=True)
        raise SystemExit(f"pip found no wheels for {machine} and Python {PYTHON_VERSION}; its own words are above")


def _trim(folder: Path) -> None:
    for name in _UNUSED:
        shutil.rmtree(folder / name, ignore_errors=True)
    for library in ("botocore", "boto3"):
        for data in (folder / library / "data").iterdir():
            if data.is_dir() and data.name not in SERVICES:
                shutil.rmtree(data)
    for pattern in _UNUSED_MODULES:
        for path in folder.glob(pattern):
            path.unlink()
    for path in list(folder.rglob("*")):
        if path.is_dir() and path.name in {"tests", "__pycache__"}:
            shutil.rmtree(path, ignore_errors=True)
        elif path.suffix in _UNUSED_SUFFIXES:
            path.unlink(missing_ok=True)


def _compile(python: str | None, folder: Path) -> None:
    if python is not None:
        command = [python, "-m", "compileall", "-q", "-j", "0", "--invalidation-mode", "unchecked-hash"]
        # The path a traceback shows is the one in Lambda, and two builds of one source are equal.
        command += [
            "-s",
            str(folder),
            "-p",
            "/var/task" if folder.name not in OURS else f"/var/task/{folder.name}",
        ]
        subprocess.run([*command, str(folder)], check=True)  # noqa: S603 - the Python found above


def _link_tree(source: Path, target: Path) -> None:
    """Hard links where the file system allows them: three functions share 150 MB."""

    def place(from_: str, to: str) -> str:
        Path(to).unlink(missing_ok=True)
        try:
            os.link(from_, to)
        except OSError:
            shutil.copy2(from_, to)
        return to

    shutil.copytree(source, target, copy_function=place, dirs_exist_ok=True)


def _check_machine(folder: Path, machine: int) -> None:
    for path in _libraries(folder):
        head = path.read_bytes()[:20]
        if head[:4] == b"\x7fELF" and struct.unpack_from("<H", head, 18)[0] != machine:
            raise SystemExit(f"{path.relative_to(folder)} is made for another machine")


def _libraries(folder: Path) -> Iterator[Path]:
    return (p for p in folder.rglob("*") if ".so" in p.suffixes or p.suffix == ".duckdb_extension")


def folder_bytes(folder: Path) -> int:
    """Bytes of all files under `folder`, as Lambda counts an unpacked package."""
    return sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())


def _main() -> None:
    parser = argparse.ArgumentParser(description="Make the folder that Lambda runs.")
    parser.add_argument("--architecture", choices=sorted(ARCHITECTURES))
    parser.add_argument("--into", type=Path)
    parser.add_argument("--extras", default="", help=f"to add, separated by commas: {', '.join(EXTRAS)}")
    parser.add_argument("--find-python", action="store_true", help="say which Python compiles, and no more")
    given = parser.parse_args()
    if given.find_python:
        sys.stdout.write(f"{find_python() or ''}\n")
        return
    if given.architecture is None or given.into is None:
        parser.error("--architecture and --into are needed")
    extras = tuple(extra for extra in given.extras.split(",") if extra)
    unknown = set(extras) - set(EXTRAS)
    if unknown:
        parser.error(f"there is no {', '.join(sorted(unknown))} to add; there is {', '.join(EXTRAS)}")
    size = build(given.architecture, given.into, extras=extras)
    sys.stdout.write(f"{given.architecture}: {size / 1e6:.0f} MB in {given.into}\n")


if __name__ == "__main__":
    _main()

"""What a Lambda container knows of itself: whether it is one, its memory, and its temporary folder.

Decides the settings that follow from these, and from variables that AWS's own libraries read. Must never know what
the functions do.
"""

import logging
import os
from collections.abc import Callable, Mapping
from typing import Any

from handler.settings import Settings, load_settings

__all__ = ["at_start", "lambda_settings"]

_DUCKDB_SHARE = 0.45
"""Of a function's memory; the rest is Python, the index's arrays, and what DuckDB keeps beside its limit."""

_CHATTER = ("botocore", "httpx2", "mangum", "mcp", "x402")
"""Libraries that log a line for each request; Mangum's names the path, and an export's path is its secret."""

_TEMP_FOLDER = "/tmp/hayfork"  # noqa: S108 - a container's own; the rest of its file system is read-only


def lambda_settings(environ: Mapping[str, str] = os.environ) -> Settings:
    """The settings of the environment, with DuckDB bounded by the function's memory unless set.

    Raises:
        BadInput: as `handler.settings.load_settings`.
    """
    settings = load_settings()
    update: dict[str, Any] = {}
    memory = environ.get("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "")
    if memory.isdigit() and "memory_limit" not in settings.duckdb.model_fields_set:
        update["memory_limit"] = f"{int(int(memory) * _DUCKDB_SHARE)}MB"
    if not settings.duckdb.temp_folder:
        update["temp_folder"] = _TEMP_FOLDER
    # DuckDB does not know these variables, and must look where boto3 does.
    s3_endpoint = environ.get("AWS_ENDPOINT_URL_S3") or environ.get("AWS_ENDPOINT_URL") or ""
    aws = settings.aws
    if s3_endpoint and not aws.s3_endpoint:
        aws = aws.model_copy(update={"s3_endpoint": s3_endpoint})
    return settings.model_copy(update={"aws": aws, "duckdb": settings.duckdb.model_copy(update=update)})


def at_start(prepare: Callable[[], object], environ: Mapping[str, str] = os.environ) -> None:
    """Run `prepare` now if this process is a Lambda container starting up: that time is not a caller's.

    Anywhere else importing an entry point must cost and need nothing.
    """
    if "AWS_LAMBDA_RUNTIME_API" in environ:
        for chatter in _CHATTER:
            logging.getLogger(chatter).setLevel(logging.WARNING)
        prepare()

"""Where settings come from: `HAYFORK_*` over `hayfork.toml` over the defaults of the table.

The one reader of the environment. Must never know a command line or a store: a Lambda imports this module.
"""

import os
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import PrivateAttr, ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from engine.errors import BadInput, quoted
from engine.limits import Limits, PageBudget, QueryLimits, ScanLimits
from handler.settings_table import (
    PREFIX,
    AuthSettings,
    AwsSettings,
    CorpusSettings,
    DuckDBSettings,
    LimitSettings,
    MeteringSettings,
    PolicySettings,
    PriceSettings,
    QuotaSettings,
    RetentionSettings,
    ServerSettings,
    SignalSettings,
    SourceSettings,
    X402Settings,
    setting_rows,
)

__all__ = ["CONFIG_NAME", "DOCTOR_KEY", "STRUCTURED_PAGE_BYTES", "Settings", "load_settings"]

DOCTOR_KEY = "HAYFORK_DOCTOR_KEY"
"""No setting: what `hayfork doctor URL` proves with who asks."""

CONFIG_NAME = "hayfork.toml"
"""The file looked for in the working folder when no other is named."""

STRUCTURED_PAGE_BYTES = 8_192
"""The least page that text and object share: half of it holds a head with its echoes, and one message."""


class Settings(BaseSettings):
    """All settings of a deployment, immutable. Paths are absolute; `config_file` is where they came from."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_nested_delimiter="_",
        env_nested_max_split=1,
        frozen=True,
        extra="forbid",
    )

    corpus: CorpusSettings = CorpusSettings()
    sources: tuple[SourceSettings, ...] = ()
    server: ServerSettings = ServerSettings()
    auth: AuthSettings = AuthSettings()
    policies: tuple[PolicySettings, ...] = ()
    metering: MeteringSettings = MeteringSettings()
    prices: PriceSettings = PriceSettings()
    quotas: tuple[QuotaSettings, ...] = ()
    x402: X402Settings = X402Settings()
    signals: SignalSettings = SignalSettings()
    retention: RetentionSettings = RetentionSettings()
    duckdb: DuckDBSettings = DuckDBSettings()
    aws: AwsSettings = AwsSettings()
    limits: LimitSettings = LimitSettings()

    _config_file: Path | None = PrivateAttr(default=None)

    @property
    def config_file(self) -> Path | None:
        """The file that was read, `None` when there was none."""
        return self._config_file

    @property
    def metered(self) -> bool:
        """Whether calls are metered: by the setting, else where callers prove who they are."""
        if self.metering.mode == "auto":
            return "none" not in self.auth.modes
        return self.metering.mode == "on"

    @property
    def engine_limits(self) -> Limits:
        """The limits in the engine's own type."""
        own = self.limits
        return Limits(
            page=PageBudget(page_bytes=own.page_bytes, count_bytes=own.count_bytes, structured=self.server.structured),
            query=QueryLimits(
                chars=own.query_chars,
                terms=own.query_terms,
                levels=own.query_levels,
                filter_values=own.filter_values,
            ),
            scan=ScanLimits(seconds=own.scan_seconds),
            call_seconds=own.call_seconds,
            slice_chars=own.slice_chars,
            session_idle_seconds=own.session_idle_seconds,
            session_max_seconds=own.session_max_seconds,
            export_seconds=own.export_seconds,
            episode_gap_seconds=own.episode_gap_seconds,
            word_floor=own.word_floor,
            close_below=own.close_below,
        )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - the library's signature
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - likewise
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - likewise
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The environment over the file, which `load_settings` passes as arguments."""
        return env_settings, init_settings


def load_settings(config: Path | None = None) -> Settings:
    """The settings of `config`, else of HAYFORK_CONFIG, else of ./hayfork.toml, if any; HAYFORK_* overrides.

    Relative paths, also those of the environment, are relative to the folder of the file (without a file: to
    the working folder).

    Raises:
        BadInput: `no_config`, `bad_config`, `unknown_setting`, `bad_setting`.
    """
    named = config or (Path(os.environ["HAYFORK_CONFIG"]) if os.environ.get("HAYFORK_CONFIG") else None)
    path = named or Path(CONFIG_NAME)
    table = _read(path, required=named is not None)
    _refuse_unknown_variables(os.environ)
    try:
        settings = Settings(**(table or {}))
    except ValidationError as error:
        raise _told(error) from None
    except SettingsError as error:
        raise BadInput("bad_setting", f"a {PREFIX}* variable is not JSON", detail=str(error)) from None
    _check_together(settings)
    file = path.resolve() if table is not None else None
    return _absolute(settings, file)


def _check_together(settings: Settings) -> None:
    """Refuse settings that are each right and wrong together."""
    if settings.server.structured and settings.limits.page_bytes < STRUCTURED_PAGE_BYTES:
        raise BadInput(
            "bad_setting",
            f"limits.page_bytes {settings.limits.page_bytes} is too small with server.structured",
            next_step=f"give {STRUCTURED_PAGE_BYTES} or more, since both forms share a page, or turn the copy off",
        )


def _read(path: Path, *, required: bool) -> dict[str, Any] | None:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        if required:
            raise BadInput(
                "no_config",
                f"no configuration at {quoted(str(path))}",
                next_step="name a file that exists",
            ) from None
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput("no_config", f"cannot read {quoted(path.name)}", detail=type(error).__name__) from None
    except tomllib.TOMLDecodeError as error:
        raise BadInput("bad_config", f"{quoted(path.name)} is not TOML: {error}", next_step="mend that line") from None


def _absolute(settings: Settings, file: Path | None) -> Settings:
    base = file.parent if file else Path.cwd()

    def absolute(location: str) -> str:
        if not location or "://" in location:
            return location
        return os.path.normpath(base / Path(location).expanduser())

    resolved = settings.model_copy(
        update={
            "corpus": settings.corpus.model_copy(update={"root": absolute(settings.corpus.root)}),
            "duckdb": settings.duckdb.model_copy(update={"temp_folder": absolute(settings.duckdb.temp_folder)}),
            "sources": tuple(
                source.model_copy(
                    update={
                        "location": absolute(source.location),
                        "name": source.name or Path(source.location).name,
                    }
                )
                for source in settings.sources
            ),
        }
    )
    resolved._config_file = file  # noqa: SLF001 - its own class, before anyone else sees it
    return resolved


def _nearest(name: str, names: list[str]) -> str:
    close = get_close_matches(name, names, 1, 0.6)
    return f"use {close[0]}" if close else f"the settings are {', '.join(names)}"


def _refuse_unknown_variables(environ: Mapping[str, str]) -> None:
    known = [row.variable for row in setting_rows() if row.variable]
    known += [f"{PREFIX}{name}" for name in ("SOURCES", "POLICIES", "QUOTAS", "PRICES", "X402", "CONFIG")]
    known.append(DOCTOR_KEY)
    for name in environ:
        if name.startswith(PREFIX) and name not in known:
            raise BadInput("unknown_setting", f"no setting is called {quoted(name)}", next_step=_nearest(name, known))


def _told(error: ValidationError) -> BadInput:
    """The first thing wrong, with its name as it stands in the file."""
    first = error.errors(include_url=False)[0]
    name = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        plain = [part for part in first["loc"] if isinstance(part, str)]
        return BadInput(
            "unknown_setting",
            f"no setting is called {quoted(name)}",
            next_step=_nearest(str(plain[-1]), _names_beside(plain)),
        )
    if first["type"] == "missing":
        return BadInput("bad_setting", f"{name} is missing", next_step="add it")
    why = first["msg"].removeprefix("Value error, ")
    why = why[:1].lower() + why[1:]
    return BadInput("bad_setting", f"{name} {quoted(first['input'])}: {why}")


def _names_beside(path: list[str]) -> list[str]:
    """Valid names where the last part of `path` stands."""
    if len(path) == 1:
        return list(Settings.model_fields)
    depth = {"sources": "sources.roles.ROLE" if len(path) > 2 else "sources"}
    section = depth.get(path[0], path[0])
    return [row.name.rpartition(".")[2] for row in setting_rows() if row.name.rpartition(".")[0] == section]

"""The page docs/settings.md, written from the table: `python -m handler.settings_page > docs/settings.md`.

Decides how the table reads. Must never know a value that is in force.
"""

import sys
from itertools import groupby

from handler.settings_table import SettingRow, setting_rows

__all__ = ["settings_page"]

_INTRODUCTION = """# Settings

Written from the table in `handler/settings_table.py`; a test holds both equal.

A setting comes from the environment (`HAYFORK_*`), else from `hayfork.toml`, else from the default. The file
is the one named by `--config` or `HAYFORK_CONFIG`, else `hayfork.toml` in the working folder. Relative paths
are relative to the folder of that file. An unknown name, in the file or in the environment, is an error that
names the nearest valid one. In a variable a list is written `a,b`; `HAYFORK_SOURCES` holds all sources,
`HAYFORK_POLICIES` all policies, `HAYFORK_QUOTAS` all quotas and `HAYFORK_PRICES` all prices as JSON.

```toml
[corpus]
root = ".hayfork"
name = "support"
timezone = "Europe/Vienna"

[[sources]]
format = "slack"
location = "slack-export.zip"
workspace_url = "https://example.slack.com"

[sources.roles]
client = { email_domain = ["partner.example"] }
teammate = { email_domain = ["our.example"], user = ["U0000001"] }

[[sources]]
format = "csv"
location = "tickets/*.csv"

[sources.columns]
conversation = "queue"
native_id = "ticket"
sent_at = "created"
author = "sender"
body = "text"
```

The fields of a table's messages, and what each takes, stand in [tables](tables.md).
"""


def settings_page() -> str:
    """The whole page as Markdown."""
    parts = [_INTRODUCTION]
    for section, rows in groupby(setting_rows(), key=lambda row: row.name.rpartition(".")[0]):
        title = f"[[{section}]]" if section in {"sources", "policies", "quotas"} else f"[{section}]"
        parts.append(f"\n## `{title}`\n\n| setting | default | what it is |\n|---|---|---|\n")
        parts.extend(_line(row) for row in rows)
    return "".join(parts)


def _line(row: SettingRow) -> str:
    limits = f" ({row.limits})" if row.limits else ""
    said = " ".join(part for part in (row.help, row.reason) if part).replace("|", "\\|")
    variable = f"<br>`{row.variable}`" if row.variable else ""
    return f"| `{row.name.rpartition('.')[2]}`{variable} | `{row.default}`{limits} | {said} |\n"


if __name__ == "__main__":
    sys.stdout.write(settings_page())

"""AWS identities, as the gateway in front of a function found them.

Decides what of an ARN is an identity: account, and role or user. The name of a session is its maker's own choice and no
part of it. The gateway's event is believed, a request's headers never. Must never know a policy.
"""

import re
from collections.abc import Mapping
from typing import Any

from handler.auth.identity import Identity

__all__ = ["iam_identity"]

_ROLE = re.compile(r"arn:aws[a-z-]*:sts::(\d{12}):assumed-role/([\w+=,.@-]+)/[^/]+", re.ASCII)
_USER = re.compile(r"arn:aws[a-z-]*:iam::(\d{12}):user/([\w+=,.@/-]+)", re.ASCII)
_ROOT = re.compile(r"arn:aws[a-z-]*:iam::(\d{12}):root")


def iam_identity(event: Mapping[str, Any]) -> Identity | None:
    """Who signed the request, `None` where nobody did or it is neither a role, a user nor an account."""
    found: Any = event
    for name in ("requestContext", "authorizer", "iam", "userArn"):
        found = found.get(name) if isinstance(found, Mapping) else None
    if not isinstance(found, str):
        return None
    if role := _ROLE.fullmatch(found):
        return Identity((f"iam:{role[1]}:role/{role[2]}",))
    if user := _USER.fullmatch(found):
        return Identity((f"iam:{user[1]}:user/{user[2]}",))
    if root := _ROOT.fullmatch(found):
        return Identity((f"iam:{root[1]}:root",))
    return None

"""How the tests call a command on the store of a test."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from click.testing import Result

from edge.store import audit
from edge.store.client import Store

Edge = Callable[..., Awaitable[Result]]
"""Takes the arguments of `edge` and, as `given`, its standard input; gives its end."""

Offline = Callable[..., Result]
"""Takes the arguments of `edge` where no store answers; gives its end."""

Add = Callable[[str, str], Any]
"""Adds a user with a role, whose password is `PASSWORD`."""

PASSWORD = "correct horse"


async def actions(store: Store) -> list[tuple[str, str]]:
    """Return the newest records of the audit trail: action and result."""
    records = [json.loads(sealed_record.text) for sealed_record in await audit.newest(store, 50)]
    return [(record["action"], record.get("status", "")) for record in records]

"""Changes the primary of the store for a person, with login and audit record."""

import asyncio
import contextlib
import time
from pathlib import Path

from edge.cli.terminal.audit import authorize_command, record_as
from edge.cli.terminal.store_access import open_access
from edge.config import Settings
from edge.foundation.errors import EdgeError, Unavailable
from edge.store.switch_over import Report, SwitchedOver
from edge.store.switch_over import switch_over as change_primary

_ACTION = "store switch-over"
_RECORDED_WITHIN_S = 10.0
_RETRY_S = 0.5


async def run_switch_over(settings_file: Path | None, to: str, report: Report) -> SwitchedOver:
    """Change the primary and record it. Raises Refused when nothing was changed, Unavailable when that is not known."""
    async with open_access(settings_file) as at:
        user = await authorize_command(at, _ACTION, to or "*")
        settings: Settings = at.settings
    try:
        done = await change_primary(settings.redis, to, report)
    except EdgeError as error:
        with contextlib.suppress(Unavailable):
            await _record(settings_file, user, to or "*", error.message)
        raise
    await _record(settings_file, user, done.primary, "Good")
    return done


async def _record(settings_file: Path | None, user: str, subject: str, status: str) -> None:
    """Record the command in the store of now, as soon as it accepts a record. Raises Unavailable."""
    until = time.monotonic() + _RECORDED_WITHIN_S
    while True:
        try:
            async with open_access(settings_file) as at:
                return await record_as(at, user, _ACTION, subject, status)
        except Unavailable:
            if time.monotonic() >= until:
                raise
            await asyncio.sleep(_RETRY_S)

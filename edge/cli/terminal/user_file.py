"""Shared parts of the commands that change users: names, passwords, codes as proof, the record of a change."""

import asyncio
import re
import sys
import time
from pathlib import Path

import click

from edge.access.sessions import request_end
from edge.access.totp import matching_step
from edge.access.users import NAME, PASSWORD_LENGTH
from edge.cli.terminal.audit import record_as
from edge.cli.terminal.login import acting_user
from edge.cli.terminal.output import print_text
from edge.cli.terminal.store_access import StoreAccess, open_access
from edge.foundation.errors import EdgeError, Refused
from edge.store.login_attempts import forget_user
from edge.store.sessions import load_all


def check_name(name: str) -> None:
    """Raise Refused for a name that no user can have."""
    if not re.fullmatch(NAME, name):
        raise Refused("user", f"{name!r} is not a valid user name", "Use up to 64 characters without a colon.")


def new_password(name: str, *, from_stdin: bool) -> str:
    """Return a new password from the prompt or standard input. Raises Refused for a length that is not allowed."""
    secret: str
    if from_stdin:
        secret = sys.stdin.readline().rstrip("\r\n")
    else:
        secret = click.prompt(f"password of {name}", hide_input=True, confirmation_prompt=True)
    if len(secret) not in PASSWORD_LENGTH:
        bounds = f"between {PASSWORD_LENGTH[0]} and {PASSWORD_LENGTH[-1]} characters"
        raise Refused("user", f"a password must have {bounds}", "Choose another password.")
    return secret


def confirm_code(secret: str) -> None:
    """Require a current code of the app, so that a user is not locked out. Raises Refused."""
    code = str(click.prompt("code of the app")).strip()
    if matching_step(secret, code, time.time()) is None:
        problem = f"{code} is not the code of this secret at {time.strftime('%H:%M:%S')}; nothing was changed"
        raise Refused("user", problem, "Check the clocks of the phone and of this machine, and repeat the command.")


def record_change(
    settings_file: Path | None,
    action: str,
    name: str,
    comment: str = "",
    *,
    ends_sessions: bool = False,
    forgets_codes: bool = False,
) -> int:
    """Record a change of a user; return how many sessions of the user end by it.

    The file is changed also while the store cannot be used; a warning reports what was left out.
    """

    async def work() -> int:
        async with open_access(settings_file) as at:
            return await _follow_up(at, action, name, comment, ends_sessions=ends_sessions, forgets_codes=forgets_codes)

    try:
        return asyncio.run(work())
    except EdgeError as error:
        print_text(f"edge: not in the audit trail: {error.message}", err=True)
        if ends_sessions:
            print_text("edge: Open sessions continue; end them later with: edge sessions end", err=True)
        return 0


async def _follow_up(
    at: StoreAccess, action: str, name: str, comment: str, *, ends_sessions: bool, forgets_codes: bool
) -> int:

    await record_as(at, await acting_user(at), action, name, "Good", comment)
    if forgets_codes:
        await forget_user(at.store, name)
    if not ends_sessions:
        return 0
    found = await load_all(at.store)
    return len(await request_end(at.store, [id for id, (session, _) in found.items() if session.user == name]))

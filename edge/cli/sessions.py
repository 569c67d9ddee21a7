"""`edge sessions`: shows and ends the sessions of OPC UA and of the command line."""

import asyncio
from pathlib import Path

import click
import msgspec

from edge.access.sessions import request_end
from edge.cli.terminal.audit import recorded
from edge.cli.terminal.command_group import CommandGroup
from edge.cli.terminal.fitted_table import local_time, plain_table
from edge.cli.terminal.output import print_text, printable
from edge.cli.terminal.store_access import json_option, open_access, open_console, print_json, settings_option
from edge.foundation.errors import Refused
from edge.model.session import Session
from edge.store.sessions import load_all

_ADVICE = "List them with: edge sessions list"


@click.group(cls=CommandGroup)
def sessions() -> None:
    """Show and end the sessions of OPC UA and of the command line."""


@sessions.command("list", epilog="Example: edge sessions list")
@settings_option
@json_option
def list_sessions(settings_file: Path | None, *, as_json: bool) -> None:
    """List the sessions of all gateways on the store, the most recently active first."""

    async def read() -> dict[str, tuple[Session, str]]:
        async with open_access(settings_file) as at:
            return await load_all(at.store)

    found = asyncio.run(read())
    if as_json:
        print_json(
            [{"id": id, "last_activity": at, **msgspec.to_builtins(session)} for id, (session, at) in found.items()]
        )
    elif found:
        table = plain_table("id", "user", "role", "way", "gateway", "address", "client", "since", "last activity")
        for id, (item, at) in found.items():
            cells = (id, item.user, item.role, item.way, item.instance, item.address, item.client)
            table.add_row(*map(printable, (*cells, local_time(item.since), at)))
        open_console().print(table)
    else:
        print_text("no sessions")


@sessions.command(epilog="Example: edge sessions end 4f1c09d2aa318be0")
@click.argument("ids", nargs=-1, metavar="ID...")
@click.option("--user", help="End every session of this user.")
@settings_option
def end(ids: tuple[str, ...], user: str | None, settings_file: Path | None) -> None:
    """End sessions by their ids, or all of a user. Their gateway closes them within seconds.

    A client may log in again: to prevent that, remove the user or change the password.
    """
    if not ids and user is None:
        raise click.UsageError("name an ID or --user")

    async def work() -> list[str]:
        async with open_access(settings_file) as at:
            of_user = [id for id, (session, _) in (await load_all(at.store)).items() if session.user == user]
            wanted = [*ids, *of_user]
            async with recorded(at, "sessions end", user or " ".join(ids), " ".join(of_user)):
                found = await request_end(at.store, wanted)
                if unknown := [id for id in ids if id not in found]:
                    raise Refused("session", f"there is no session {' '.join(unknown)}", _ADVICE)
                return found

    found = asyncio.run(work())
    print_text(f"{len(found)} sessions end")

"""`edge refused`: looks at messages of the MES and of equipment that could not be taken."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from edge.cli.terminal.output import print_text, printable
from edge.cli.terminal.store_access import json_option, open_access, print_json, settings_option

if TYPE_CHECKING:
    from edge.store.refused import RefusedMessage

_SHOWN_CHARACTERS = 400


@click.command(epilog="Example: edge refused --last 3")
@click.option("--last", type=click.IntRange(min=1), default=20, metavar="N", help="Show this many.", show_default=True)
@settings_option
@json_option
def refused(settings_file: Path | None, last: int, *, as_json: bool) -> None:
    """Look at messages that could not be taken, the newest first.

    Each is told with where it came in, what was wrong with it, and how what it holds begins: with --json the 4 KiB of
    it that are kept. The newest thousand are. The exit status is 0, or 1 when the store is away.
    """
    from edge.store.refused import count, newest

    async def show() -> None:
        async with open_access(settings_file) as at:
            found = await newest(at.store, last)
            if as_json:
                print_json([_as_data(each) for each in found])
                return
            for each in found:
                print_text("\n".join(_report(each)))
            many = await count(at.store)
            print_text(f"{many} refused since the store began" if many else "nothing was refused")

    asyncio.run(show())


def _as_data(message: "RefusedMessage") -> dict[str, object]:
    from edge.cli.jobs.table import utc_time

    return {
        "at": utc_time(message.at),
        "way": message.way,
        "type": message.event_type or None,
        "id": message.event_id or None,
        "kind": message.kind,
        "reason": message.reason,
        "payload": message.payload.decode(),
    }


def _report(message: "RefusedMessage") -> Iterator[str]:
    from edge.cli.jobs.table import local_time

    yield printable(f"{local_time(message.at)}  {message.way}  {message.kind}")
    yield printable(f"  {message.reason}")
    if message.event_type or message.event_id:
        yield printable(f"  type {message.event_type or '-'}, id {message.event_id or '-'}")
    if message.payload:
        payload = message.payload.decode()
        rest = " …" if len(payload) > _SHOWN_CHARACTERS else ""
        yield printable(f"  {payload[:_SHOWN_CHARACTERS]}{rest}")

"""`edge marks`: shows how many marks of messages each sender has, and drops those of a sender."""

import asyncio
from pathlib import Path

import click

from edge.cli.terminal.audit import recorded
from edge.cli.terminal.command_group import CommandGroup
from edge.cli.terminal.fitted_table import plain_table
from edge.cli.terminal.output import print_text, printable
from edge.cli.terminal.store_access import json_option, open_access, open_console, print_json, settings_option
from edge.foundation.errors import Refused
from edge.store import mark_senders
from edge.store.bounds import BoundedCount
from edge.store.mark_senders import count_by_sender


@click.group(cls=CommandGroup)
def marks() -> None:
    """Show how many marks of messages each sender has, or drop those of a sender.

    A mark keeps a message that arrives again from having its effect twice, for `[retention] dedupe`. A sender is the
    `source` of calls (calls:/mes) or a piece of equipment (events:wrench); one that has used its share of
    `[retention] marks` is refused. The exit status is 0 on success, 1 when the request is refused or the store is
    unavailable, and 2 when settings or arguments are invalid.
    """


@marks.command("list", epilog="Example: edge marks list")
@settings_option
@json_option
def list_(settings_file: Path | None, *, as_json: bool) -> None:
    """List the senders with their marks and their shares, the fullest share first."""

    async def read() -> dict[str, BoundedCount]:
        async with open_access(settings_file) as at:
            counted = (await count_by_sender(at.store, at.settings.retention.marks)).senders
            return dict(sorted(counted.items(), key=lambda item: (-item[1].fullness, item[0])))

    shares = asyncio.run(read())
    if as_json:
        print_json([{"sender": sender, "marks": own.count, "share": own.limit} for sender, own in shares.items()])
    elif shares:
        table = plain_table("sender", "marks", "share", "used")
        for sender, own in shares.items():
            table.add_row(printable(sender), str(own.count), str(own.limit), f"{own.fullness:.0%}")
        open_console().print(table)
    else:
        print_text("no marks")


@marks.command(epilog="Example: edge marks drop events:wrench")
@click.argument("sender", metavar="SENDER")
@settings_option
def drop(sender: str, settings_file: Path | None) -> None:
    """Drop all marks of a sender, as `edge marks list` names it.

    A message of this sender that a broker delivers again has its effect again: correct the sender first. The command
    is in the audit trail.
    """

    async def work() -> int:
        async with open_access(settings_file) as at, recorded(at, "marks drop", sender):
            message_sender = mark_senders.parse_sender(sender)
            if message_sender is None or not await mark_senders.is_known(at.store, message_sender):
                raise Refused("unknown_sender", f"no mark is of {sender!r}", "List the senders: edge marks list")
            return await mark_senders.drop(at.store, message_sender)

    print_text(f"{printable(sender)}: {asyncio.run(work())} marks dropped")

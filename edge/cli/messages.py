"""`edge marks` and `edge refused`: shows the marks of messages of each sender, and refused messages and calls."""

import os
from collections.abc import Iterator
from pathlib import Path

import click

from edge.app.redaction import public_refused, redactor, secrets_of, without_secrets
from edge.cli.terminal.command_group import CommandGroup
from edge.cli.terminal.operator import recorded
from edge.cli.terminal.output import counted, print_text, printable
from edge.cli.terminal.store_access import (
    CommandOutput,
    StoreAccess,
    json_option,
    run_on_store,
    settings_option,
    store_action,
    store_command,
)
from edge.cli.terminal.table import local_time, plain_table, wide_option
from edge.config import main_file
from edge.foundation.errors import Refused
from edge.foundation.text import Text
from edge.store import dedupe
from edge.store.dead_letters import DECLINED_COUNTER, RefusedMessage, count_refused, newest_refused
from edge.store.dedupe import count_by_sender


@click.group(cls=CommandGroup)
def marks() -> None:
    """Show how many marks of messages each sender has, or drop those of a sender.

    A mark keeps a message that arrives again from having its effect twice, for `[retention] dedupe`. A sender is the
    `source` of calls (calls:/mes) or a piece of equipment (events:wrench); one that has used its share of
    `[retention] marks` is refused. The exit status is 0 on success, 1 when the request is refused or the store is
    unavailable, and 2 when settings or arguments are invalid.
    """


@marks.command("list", epilog="Example: edge marks list")
@wide_option
@store_command
async def list_(at: StoreAccess) -> CommandOutput:
    """List the senders with their marks and their shares, the fullest share first."""
    counted = (await count_by_sender(at.store, at.settings.retention.marks)).senders
    shares = sorted(counted.items(), key=lambda item: (-item[1].fullness, item[0]))
    rows = ((sender, own.count, own.limit, f"{own.fullness:.0%}") for sender, own in shares)
    return CommandOutput(
        [{"sender": sender, "marks": own.count, "share": own.limit} for sender, own in shares],
        plain_table("sender", "marks", "share", "used", rows=rows, empty="no marks"),
    )


@marks.command(epilog="Example: edge marks drop events:wrench")
@click.argument("sender", metavar="SENDER")
@store_action
async def drop(at: StoreAccess, sender: str) -> str:
    """Drop all marks of a sender, as `edge marks list` names it.

    A message of this sender that a broker delivers again has its effect again: correct the sender first. The command
    is in the audit trail.
    """
    async with recorded(at, "marks drop", sender):
        message_sender = dedupe.parse_sender(sender)
        if message_sender is None or not await dedupe.is_known_sender(at.store, message_sender):
            raise Refused(
                "unknown_sender",
                Text.of("no mark is of {sender!r}", sender=sender),
                "List the senders: edge marks list",
            )
        dropped = await dedupe.drop_marks(at.store, message_sender)
    return f"{printable(sender)}: {dropped} marks dropped"


_SHOWN_CHARACTERS = 400


@click.command(epilog="Example: edge refused --last 3")
@click.option("--last", type=click.IntRange(min=1), default=20, metavar="N", help="Show this many.", show_default=True)
@settings_option
@json_option
def refused(settings_file: Path | None, last: int, *, as_json: bool) -> None:
    """Show refused messages and declined calls, newest first.

    A message of the MES or of equipment is refused when it cannot be read or executed; it is shown with its topic. A
    call of a job method is declined when its ReturnStatus is not 1; it is shown with the `source` of the call. Each has
    its reason and the beginning of its payload, without secrets; with --json the stored 4 KiB of the payload. The
    newest thousand are stored. The exit status is 0, or 1 when the store is unavailable.
    """

    async def show(at: StoreAccess) -> None:
        redact = redactor(secrets_of(at.settings, main_file(settings_file, os.environ), os.environ))
        messages = [without_secrets(message, redact) for message in await newest_refused(at.store, last)]
        texts = tuple("\n".join(_report(message)) for message in messages)
        CommandOutput([public_refused(message) for message in messages], texts).print(as_json=as_json)
        if not as_json:
            refused = counted(await count_refused(at.store), "message")
            declined = counted(await count_refused(at.store, DECLINED_COUNTER), "call")
            print_text(f"{refused} refused, {declined} declined since the store was created")

    run_on_store(settings_file, show)


def _report(message: RefusedMessage) -> Iterator[str]:
    yield printable(f"{local_time(message.at)}  {message.way}  {message.kind}")
    yield printable(f"  {message.reason}")
    if message.event_type or message.event_id:
        yield printable(f"  type {message.event_type or '-'}, id {message.event_id or '-'}")
    if message.payload:
        payload = message.payload.decode()
        rest = " …" if len(payload) > _SHOWN_CHARACTERS else ""
        yield printable(f"  {payload[:_SHOWN_CHARACTERS]}{rest}")

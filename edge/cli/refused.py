"""`edge refused`: shows refused messages and declined calls."""

import asyncio
import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path

import click

from edge.app.redaction import Redact, redactor, secrets_of
from edge.cli.terminal.fitted_table import local_time, utc_time
from edge.cli.terminal.output import print_text, printable
from edge.cli.terminal.store_access import json_option, open_access, print_json, settings_option
from edge.config import main_file
from edge.store.refused import DECLINED_COUNTER, RefusedMessage, count, newest

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

    async def show() -> None:
        async with open_access(settings_file) as at:
            redact = redactor(secrets_of(at.settings, main_file(settings_file, os.environ), os.environ))
            found = [_redacted(item, redact) for item in await newest(at.store, last)]
            if as_json:
                print_json([_as_data(item) for item in found])
                return
            for element in found:
                print_text("\n".join(_report(element)))
            refused, declined = await count(at.store), await count(at.store, DECLINED_COUNTER)
            print_text(f"{refused} messages refused, {declined} calls declined since the store was created")

    asyncio.run(show())


def _redacted(message: RefusedMessage, redact: Redact) -> RefusedMessage:
    """Return a message without secrets: a sender may have sent its password where it does not belong."""
    payload = redact(message.payload.decode()).encode()
    return dataclasses.replace(message, reason=redact(message.reason), payload=payload)


def _as_data(message: RefusedMessage) -> dict[str, object]:

    return {
        "at": utc_time(message.at),
        "way": message.way,
        "type": message.event_type or None,
        "id": message.event_id or None,
        "kind": message.kind,
        "reason": message.reason,
        "payload": message.payload.decode(),
    }


def _report(message: RefusedMessage) -> Iterator[str]:

    yield printable(f"{local_time(message.at)}  {message.way}  {message.kind}")
    yield printable(f"  {message.reason}")
    if message.event_type or message.event_id:
        yield printable(f"  type {message.event_type or '-'}, id {message.event_id or '-'}")
    if message.payload:
        payload = message.payload.decode()
        rest = " …" if len(payload) > _SHOWN_CHARACTERS else ""
        yield printable(f"  {payload[:_SHOWN_CHARACTERS]}{rest}")

"""`edge record`: what goes between the gateway and a piece of equipment, in a file."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from edge.cli.terminal.output import print_text, printable
from edge.cli.terminal.store_access import settings_option

if TYPE_CHECKING:
    from edge.maintenance.recording import ExchangeRecord, Line, MessageRecord

_LONGEST_SHOWN = 200


@click.command(epilog="Example: edge record wrench wrench.jsonl --seconds 60")
@click.argument("equipment")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="End by itself after so many seconds.",
)
@settings_option
def record(equipment: str, file: Path, seconds: float | None, settings_file: Path | None) -> None:
    """Record what goes between the gateway and a piece of equipment, without secrets.

    EQUIPMENT is that of [southbound.EQUIPMENT] in the settings. FILE is a new file of JSON lines, each with when it
    came. Of equipment that speaks MQTT they are its messages at the broker: commands, answers, events, tasks and
    presence. Of all other it is what the gateway tells: its connections, commands and answers, what it asked the
    equipment and what happened there; for that the gateway has to run, on the store of these settings. Begin before
    the gateway starts to have the first connection, too.

    Passwords, serial numbers, persons and hosts are hidden where the name of a member or their own look gives them
    away: look through it before you hand it on. It disturbs neither the gateway nor the equipment, and ends by Ctrl-C.
    """
    import asyncio
    import math

    from edge.cli.terminal.stop_signal import wait_for_stop
    from edge.cli.terminal.store_access import log_to_stderr
    from edge.config import load_settings, main_file
    from edge.maintenance.recording import recording
    from edge.maintenance.redaction import secrets_of
    from edge.southbound.kinds import EQUIPMENT_SETTINGS

    if seconds is not None and not math.isfinite(seconds):
        raise click.UsageError("--seconds: without an end leave it out.")
    settings = load_settings(settings_file, os.environ, EQUIPMENT_SETTINGS)
    secrets = secrets_of(settings, main_file(settings_file, os.environ), os.environ)
    log_to_stderr()

    async def run() -> int:
        told = 0

        def tell(line: "Line") -> None:
            nonlocal told
            told += 1
            print_text(format_record(line))

        async with recording(equipment, settings, secrets, file, tell) as source:
            await wait_for_stop(f"listening to {source}; Ctrl-C ends it", seconds)
        return told

    told = asyncio.run(run())
    print_text(f"{file}: {told} lines; look through it before you hand it on")


def format_record(line: "Line") -> str:
    """Give what passed as one line for people."""
    from edge.maintenance.recording import ExchangeRecord

    if isinstance(line, ExchangeRecord):
        try:
            what, words = str(line.what), _exchange_text(line)
        except (LookupError, TypeError, AttributeError):
            # A gateway of another version tells it in its own way.
            what, words = str(line.what), str(line.data)
    else:
        what, words = line.topic, _message_text(line)
    cut = words if len(words) <= _LONGEST_SHOWN else f"{words[:_LONGEST_SHOWN]}…"
    return printable(f"{line.after:9.3f} s  {what:<9} {cut}")


def _message_text(message: "MessageRecord") -> str:
    properties = message.properties
    told = (properties.get("type"), properties.get("phase"), properties.get("causationid") or properties.get("id"))
    return "  ".join(word for word in told if word) or str(message.payload)


def _exchange_text(exchange: "ExchangeRecord") -> str:
    from edge.model.equipment_trace import TraceKind

    data = exchange.data
    match exchange.what:
        case TraceKind.BEGUN:
            return "  ".join(filter(None, (exchange.gateway, data.get("state"))))
        case TraceKind.CONNECTED:
            return f"{len(data)} commands outstanding"
        case TraceKind.COMMAND | TraceKind.STOP:
            return f"{data['type_id']}  {data['phase']}  {data['command_id']}"
        case TraceKind.ANSWER:
            return f"{data['command_id']}  {data['error'] or 'done'}"
        case TraceKind.ASKED:
            asked = data["arguments"][1] if data["question"] == "call" else data["question"]
            return f"{asked}  {data['error']}" if "error" in data else str(asked)
        case TraceKind.HAPPENING:
            return "  ".join(str(name) for name in data)
        case TraceKind.LOST | TraceKind.MISSED:
            return str(data)

"""`edge record`: records the messages between the gateway and equipment to a file."""

import asyncio
import math
import os
from pathlib import Path

import click

from edge.app.features import gateway_settings
from edge.app.redaction import secrets_of
from edge.cli.terminal.output import print_text, printable, wait_for_stop
from edge.cli.terminal.store_access import log_to_stderr, settings_option
from edge.config import main_file
from edge.features.admin.recording import ExchangeRecord, Line, MessageRecord, recording
from edge.model.equipment_traffic import TrafficKind

MIB = 1024 * 1024
_LONGEST_SHOWN = 200


@click.command(epilog="Example: edge record wrench wrench.jsonl --seconds 60")
@click.argument("equipment")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="End after this many seconds.",
)
@click.option(
    "--mib",
    type=click.IntRange(1, 1_048_576),
    default=100,
    show_default=True,
    metavar="MIB",
    help="End when the file would exceed this size.",
)
@settings_option
def record(equipment: str, file: Path, seconds: float | None, mib: int, settings_file: Path | None) -> None:
    """Record the messages between the gateway and equipment, without secrets.

    EQUIPMENT is that of [southbound.EQUIPMENT] in the settings. FILE is a new file of JSON lines with time offsets.
    Equipment over MQTT is recorded at its broker: commands, answers, events, tasks and presence. Other equipment is
    recorded by the gateway: connections, commands, answers, requests and events; for that the gateway has to run on
    the store of these settings. To record the first connection too, start the recording before the gateway.

    Passwords, serial numbers, persons and hosts are hidden where a member name or the format of a value identifies
    them: review the file before you pass it on. The recording affects neither gateway nor equipment, and ends by
    Ctrl-C.
    """
    if seconds is not None and not math.isfinite(seconds):
        raise click.UsageError("--seconds must be finite; omit it to record without an end.")
    settings = gateway_settings(settings_file)
    secrets = secrets_of(settings, main_file(settings_file, os.environ), os.environ)
    log_to_stderr()

    async def run() -> int:
        count = 0

        def on_line(line: Line) -> None:
            nonlocal count
            count += 1
            print_text(format_record(line))

        async with recording(equipment, settings, secrets, file, on_line, most_bytes=mib * MIB) as source:
            await wait_for_stop(f"recording {source}; Ctrl-C ends it", seconds)
        return count

    count = asyncio.run(run())
    print_text(f"{file}: {count} lines; review the file before you pass it on")


def format_record(line: Line) -> str:
    """Return a record as one line of text."""
    if isinstance(line, ExchangeRecord):
        try:
            what, words = str(line.what), _exchange_text(line)
        except (LookupError, TypeError, AttributeError):
            # A gateway of another version may use another format.
            what, words = str(line.what), str(line.data)
    else:
        what, words = line.topic, _message_text(line)
    cut = words if len(words) <= _LONGEST_SHOWN else f"{words[:_LONGEST_SHOWN]}…"
    return printable(f"{line.after:9.3f} s  {what:<9} {cut}")


def _message_text(message: MessageRecord) -> str:
    properties = message.properties
    words = (properties.get("type"), properties.get("phase"), properties.get("causationid") or properties.get("id"))
    return "  ".join(word for word in words if word) or str(message.payload)


def _exchange_text(exchange: ExchangeRecord) -> str:

    data = exchange.data
    match exchange.what:
        case TrafficKind.BEGUN:
            return "  ".join(filter(None, (exchange.gateway, data.get("state"))))
        case TrafficKind.CONNECTED:
            return f"{len(data)} commands outstanding"
        case TrafficKind.COMMAND | TrafficKind.STOP:
            return f"{data['type_id']}  {data['phase']}  {data['command_id']}"
        case TrafficKind.ANSWER:
            return f"{data['command_id']}  {data['error'] or 'done'}"
        case TrafficKind.ASKED:
            asked = data["arguments"][1] if data["question"] == "call" else data["question"]
            return f"{asked}  {data['error']}" if "error" in data else str(asked)
        case TrafficKind.HAPPENING:
            return "  ".join(str(name) for name in data)
        case TrafficKind.LOST | TrafficKind.MISSED:
            return str(data)

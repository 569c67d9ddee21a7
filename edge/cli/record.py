"""`edge record`: what goes between the gateway and a piece of equipment, in a file."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from edge.cli.terminal import say
from edge.cli.visit import settings_option

if TYPE_CHECKING:
    from edge.upkeep.recording import Recorded


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

    EQUIPMENT is that of [southbound.EQUIPMENT] in the settings; it has to speak MQTT. FILE is a new file of JSON lines:
    commands, answers, events, tasks and presence, each with when it came. Passwords, serial numbers, persons and hosts
    are hidden where the name of a member or their own look gives them away: look through it before you hand it on.

    It listens beside the gateway and the equipment, disturbs neither, and ends by Ctrl-C.
    """
    import asyncio

    from edge.cli.stopping import until_stopped
    from edge.cli.visit import quiet
    from edge.config import load_settings
    from edge.southbound.kinds import EQUIPMENT
    from edge.upkeep.belongings import main_file
    from edge.upkeep.recording import recording
    from edge.upkeep.redaction import secrets_of

    settings = load_settings(settings_file, os.environ, EQUIPMENT)
    secrets = secrets_of(settings, main_file(settings_file, os.environ), os.environ)
    quiet()

    async def run() -> int:
        told = 0

        def tell(message: "Recorded") -> None:
            nonlocal told
            told += 1
            say(_line(message))

        async with recording(equipment, settings, secrets, file, tell) as source:
            await until_stopped(f"listening to {source}; Ctrl-C ends it", seconds)
        return told

    told = asyncio.run(run())
    say(f"{file}: {told} messages; look through it before you hand it on")


def _line(message: "Recorded") -> str:
    properties = message.properties
    told = (properties.get("type"), properties.get("phase"), properties.get("causationid") or properties.get("id"))
    words = [word for word in told if word] or [str(message.payload)]
    return f"{message.after:9.3f} s  {message.topic:<9} {'  '.join(words)}"

"""`edge doctor`: what of a gateway is well, what is not, and what to do about it."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from edge.cli.visit import FILE, json_option, print_json

if TYPE_CHECKING:
    from edge.upkeep.finding import Finding

_STATUS = {"ok": 0, "warning": 1, "failing": 2}


@click.command(epilog="Example: edge doctor")
@click.option(
    "--settings",
    "settings_file",
    type=FILE,
    help="Settings file, as for `edge run`. [default: /etc/microdcs-edge/edge.toml]",
)
@json_option
def doctor(settings_file: Path | None, *, as_json: bool) -> None:
    """Examine a gateway and all it depends on; say what to do.

    It looks at settings, store, brokers, equipment, OPC UA, certificates, clock, disk, memory and versions, in ten
    seconds at most, and changes nothing. Call it as root on a gateway that is installed. The exit status is 0 when
    all is well, 1 when there is a warning, 2 when something fails.
    """
    import asyncio

    from edge.cli.visit import quiet
    from edge.upkeep.doctor import examine
    from edge.upkeep.finding import worst

    quiet("critical")
    findings = asyncio.run(examine(settings_file, os.environ))
    level = worst(findings)
    if as_json:
        print_json({"level": level, "findings": findings})
    else:
        _print(findings)
    raise SystemExit(_STATUS[level])


def _print(findings: Sequence["Finding"]) -> None:
    from edge.cli.job_view import printable

    colours = {"ok": "green", "warning": "yellow", "failing": "red"}
    width = max(len(each.subject) for each in findings)
    for each in findings:
        level = click.style(f"{each.level:<8}", fg=colours[each.level])
        click.echo(f"{level} {each.subject:<{width}}  {printable(each.found)}")
        if each.advice:
            click.echo(f"{'':9}{'':{width}}  → {printable(each.advice)}")

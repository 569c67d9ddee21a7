"""`edge doctor`: examines a gateway and prints findings with advice."""

import asyncio
import os
from pathlib import Path

import click

from edge.cli.terminal.output import print_findings, print_text
from edge.cli.terminal.store_access import FILE, json_option, log_to_stderr, settings_option
from edge.features.admin.doctor import examine
from edge.features.admin.support import gather
from edge.foundation.instant import now_ms


@click.command(epilog="Example: edge doctor")
@settings_option
@json_option
def doctor(settings_file: Path | None, *, as_json: bool) -> None:
    """Examine a gateway and its dependencies, with advice for each fault.

    It looks at settings, store, brokers, equipment, OPC UA, certificates, clock, disk, memory and versions, in ten
    seconds at most, and changes nothing. Call it as root or as a member of the group microdcs-edge. The exit status is
    0 when all is well, 1 when there is a warning, 2 when something fails.
    """
    log_to_stderr("critical")
    raise SystemExit(print_findings(asyncio.run(examine(settings_file, os.environ)), as_json=as_json))


@click.command("support-bundle", epilog="Example: edge support-bundle support.tar.gz")
@click.argument("file", type=FILE)
@click.option(
    "--since", default="-2d", show_default=True, help="Start of the logs, in the format of journalctl --since."
)
@click.option("--with-jobs", is_flag=True, help="Include jobs, Work Masters and runs with their data.")
@settings_option
def support_bundle(file: Path, since: str, settings_file: Path | None, *, with_jobs: bool) -> None:
    """Collect what support needs in one file, without secrets.

    FILE is a tar.gz with logs, settings, versions, the findings of `edge doctor`, and the sizes of the store. It never
    contains keys; passwords are hidden everywhere. Logs name jobs, users and addresses: review the file first.
    """
    log_to_stderr("critical")
    asyncio.run(
        gather(
            file, settings_file, os.environ, since, now_ms(), lambda stage: print_text(str(stage)), with_jobs=with_jobs
        )
    )

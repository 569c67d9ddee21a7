"""`edge fleet upgrade`: upgrades the package by a signed command; systemd runs it as root."""

import os
import sys

import click
import msgspec

from edge.features.fleet.signature import MOST_CHARACTERS, FleetState
from edge.features.fleet.upgrade_command import UpgradeHost, execute_upgrade
from edge.features.fleet.upgrade_record import UpgradeReply
from edge.foundation.errors import EdgeError, Refused


@click.command(epilog="Example: edge fleet upgrade < command.jws")
def upgrade() -> None:
    """Upgrade the package by the signed command on standard input; microdcs-edge-upgrade@.service calls it as root.

    The gateway passes on the commands `upgrade` that it is sent. Signature, policy and expiry are checked again here,
    against files that only root writes, and each command is executed once. A newer version of the package is installed
    from the repository of /etc/apt/sources.list.d/microdcs-edge.sources, and nothing else. The answer is one line of
    JSON, the result a file in /var/lib/microdcs-edge-upgrade.
    """

    def answer(state: FleetState, reason: str = "") -> None:
        sys.stdout.buffer.write(msgspec.json.encode(UpgradeReply(state=state, reason=reason)) + b"\n")
        sys.stdout.flush()

    def begin(name: str) -> None:
        click.echo(f"upgrade by a command of {name}", err=True)
        answer(FleetState.EXECUTING)
        # The gateway that has read the answer is restarted meanwhile.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    if os.geteuid() != 0:
        raise Refused("upgrade", "only root installs packages", "microdcs-edge-upgrade.socket calls this command.")
    text = sys.stdin.buffer.readline(MOST_CHARACTERS + 2).decode("ascii", errors="replace").strip()
    try:
        ended = execute_upgrade(text, UpgradeHost(), begin)
    except (EdgeError, OSError) as error:
        answer(FleetState.REFUSED, str(error))
        raise
    click.echo(ended.output or ended.reason, err=True)
    if ended.state is not FleetState.SUCCESSFUL:
        raise SystemExit(1)

"""`edge run`: the gateway itself."""

import gc
import sys
from pathlib import Path

import click
import uvloop

from edge.app.features import gateway_settings
from edge.app.lifecycle import serve
from edge.app.logs import set_up
from edge.app.systemd import notifier
from edge.config import Settings
from edge.foundation.errors import EdgeError


@click.command(epilog="Example: edge run --settings /etc/microdcs-edge/edge.toml")
@click.option(
    "--settings",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Settings file; conf.d and EDGE_ variables override it. [default: /etc/microdcs-edge/edge.toml]",
)
def run(file: Path | None) -> None:
    """Run the gateway until SIGTERM or SIGINT.

    SIGHUP reads the settings again, except on a terminal; settings with a fault are logged and not applied.

    The exit status is 0 after a stop, 1 when a required dependency is unavailable, 2 when the settings are invalid.
    """
    # Most objects of the start live until the end: garbage collection would take a sixth of the start time.
    gc.disable()

    def load() -> Settings:
        settings = gateway_settings(file)
        set_up(settings.logging)
        return settings

    try:
        # The end of a terminal sends SIGHUP, too: there it ends the gateway.
        uvloop.run(serve(load(), None if sys.stdin.isatty() else load, file))
    except EdgeError as error:
        # `systemctl status` shows the reason until the next start.
        notifier()(f"STATUS={'; '.join(error.message.splitlines())}")
        raise

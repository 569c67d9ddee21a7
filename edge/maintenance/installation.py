"""Returns advice for what is not there: to start it when it is installed, to install it when it is not."""

import shutil
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from edge.errors import Unavailable
from edge.maintenance.finding import HealthFinding

UNIT = "microdcs-edge.service"
UNIT_DIRECTORIES = tuple(
    Path(each) for each in ("/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system")
)
_THIS_MACHINE = {"", "localhost", "127.0.0.1", "::1"}
# Debian installs servers in directories that are not in the PATH of a user.
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

FindProgram = Callable[[str], str | None]


def find_program(name: str) -> str | None:
    """Return the path of a program, also of a server."""
    return shutil.which(name, path=_PATH)


def install_advice(url: str, package: str, programs: Sequence[str], find: FindProgram = find_program) -> str:
    """Return the advice to install a package; empty when one of the programs is installed or another machine serves."""
    if (urlsplit(url).hostname or "") not in _THIS_MACHINE or any(find(each) for each in programs):
        return ""
    return f"Install it: apt install {package}. Or name another server in the settings."


def gateway_advice(directories: Sequence[Path] = UNIT_DIRECTORIES) -> str:
    """Return how the gateway is started on this machine."""
    if any((each / UNIT).exists() for each in directories):
        return "Start the gateway: systemctl start microdcs-edge"
    return "Install the gateway as a service: apt install microdcs-edge. Or start it from a checkout: edge run"


async def advise(examination: AsyncIterator[HealthFinding], advice: str) -> AsyncIterator[HealthFinding]:
    """Yield the findings of an examination; raise its Unavailable with this advice, if any."""
    try:
        async for finding in examination:
            yield finding
    except Unavailable as error:
        raise Unavailable(error.message, advice or error.advice) from error

"""Returns advice for a missing service: start it when it is installed, else install it."""

import shutil
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from edge.foundation.errors import Unavailable
from edge.model.finding import HealthFinding

UNIT = "microdcs-edge.service"
UNIT_DIRECTORIES = tuple(
    Path(text) for text in ("/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system")
)
STORE_PROGRAMS = ("redis-check-rdb", "redis-server", "valkey-server")
"""Each of them is a server of the store: redis-check-rdb is redis-server under another name."""
_STORE_UNIT = "redis-server@microdcs.service"
_STORE_URL = "unix:///run/redis-microdcs/redis.sock"
_THIS_MACHINE = {"", "localhost", "127.0.0.1", "::1"}
# Debian installs servers in directories that are not in the PATH of a user.
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

FindProgram = Callable[[str], str | None]


def find_program(name: str) -> str | None:
    """Return the path of a program, also of a server."""
    return shutil.which(name, path=_PATH)


def is_this_machine(url: str) -> bool:
    """Return whether a server is on this machine."""
    return (urlsplit(url).hostname or "") in _THIS_MACHINE


def starts_with_gateway(
    url: str, directories: Sequence[Path] = UNIT_DIRECTORIES, find: FindProgram = find_program
) -> bool:
    """Return whether the store is that of the package, which systemd starts with the gateway, and not running yet."""
    is_ours = url == _STORE_URL and any((directory / _STORE_UNIT).exists() for directory in directories)
    return is_ours and not Path(urlsplit(url).path).exists() and any(find(text) for text in STORE_PROGRAMS)


def install_advice(url: str, package: str, programs: Sequence[str], find: FindProgram = find_program) -> str:
    """Return the advice to install a package; empty when one of the programs is installed or another machine serves."""
    if not is_this_machine(url) or any(find(program) for program in programs):
        return ""
    return f"Install it: apt install {package}. Or name another server in the settings."


def store_advice(url: str, directories: Sequence[Path] = UNIT_DIRECTORIES, find: FindProgram = find_program) -> str:
    """Return the advice to install or start the store; empty when it is not that of the package."""
    if starts_with_gateway(url, directories, find):
        return f"{gateway_advice(directories)}. The store starts with it."
    return install_advice(url, "redis-tools", STORE_PROGRAMS, find)


def gateway_advice(directories: Sequence[Path] = UNIT_DIRECTORIES) -> str:
    """Return the command that starts the gateway on this machine."""
    if any((directory / UNIT).exists() for directory in directories):
        return "Start the gateway: systemctl start microdcs-edge"
    return "Install the gateway as a service: apt install microdcs-edge. Or start it from a checkout: edge run"


async def advise(examination: AsyncIterator[HealthFinding], advice: str) -> AsyncIterator[HealthFinding]:
    """Yield the findings of an examination; raise its Unavailable with this advice, if any."""
    try:
        async for finding in examination:
            yield finding
    except Unavailable as error:
        raise Unavailable(error.text, advice or error.advice_text) from error

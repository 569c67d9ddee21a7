"""Asks the package sources of this machine for a newer version of the package."""

import asyncio
import os
import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from edge.foundation.errors import Refused, Unavailable

PACKAGE: Final = "microdcs-edge"
_ASK: Final = ("apt-cache", "policy", PACKAGE)
_WITHIN_S: Final = 30.0
_NONE: Final = "(none)"


class PackageVersions(Struct, frozen=True):
    """The installed version, and the one that an upgrade would install."""

    installed: str
    candidate: str

    @property
    def is_newer(self) -> bool:
        """Return whether an upgrade would change something."""
        return self.candidate not in {_NONE, self.installed}


async def find_versions(ask: Sequence[str] = _ASK, within_s: float = _WITHIN_S) -> PackageVersions:
    """Return the versions as apt knows them. Raises Refused without the package, Unavailable when apt does not answer.

    The lists of the package sources are not renewed: that needs root, and apt does it daily.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            *ask,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={**os.environ, "LC_ALL": "C"},
        )
    except OSError as error:
        raise Refused("upgrade", f"{ask[0]}: {error.strerror}", "Only a Debian package is checked.") from error
    try:
        async with asyncio.timeout(within_s):
            output, _ = await process.communicate()
    except TimeoutError as error:
        message = f"{ask[0]} did not answer within {within_s:g} s"
        raise Unavailable(message, f"Call it in a terminal: {' '.join(ask)}") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    found = parse_policy(output.decode(errors="replace"))
    if found is None or found.installed == _NONE:
        raise Refused("upgrade", f"{PACKAGE} is not installed as a package here", "Upgrade it as it was installed.")
    return found


def parse_policy(text: str) -> PackageVersions | None:
    """Return the versions in the output of `apt-cache policy`; None when it has none."""
    found = dict(re.findall(r"^  (Installed|Candidate): (\S+)$", text, re.MULTILINE))
    return PackageVersions(found["Installed"], found["Candidate"]) if len(found) == 2 else None  # noqa: PLR2004 - both

"""Asks the package sources of this machine for a newer version of the package."""

import asyncio
import os
import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from edge.foundation.errors import Refused, Unavailable
from edge.foundation.text import Text

PACKAGE: Final = "microdcs-edge"
_ASK: Final = ("apt-cache", "policy", PACKAGE)
_CHECK_WITHIN_S: Final = 30.0
_NONE: Final = "(none)"


class PackageVersions(Struct, frozen=True):
    """The installed version, and the one that an upgrade would install."""

    installed: str
    candidate: str

    @property
    def is_newer(self) -> bool:
        """Return whether an upgrade would change something."""
        return self.candidate not in {_NONE, self.installed}


async def find_versions(ask: Sequence[str] = _ASK, within_s: float = _CHECK_WITHIN_S) -> PackageVersions:
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
        raise Refused(
            "upgrade",
            Text.of("{ask}: {reason}", ask=ask[0], reason=error.strerror),
            "Only a Debian package is checked.",
        ) from error
    try:
        async with asyncio.timeout(within_s):
            output, _ = await process.communicate()
    except TimeoutError as error:
        message = Text.of("{ask} did not answer within {within_s:g} s", ask=ask[0], within_s=within_s)
        raise Unavailable(message, Text.of("Call it in a terminal: {ask}", ask=" ".join(ask))) from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    package_versions = parse_policy(output.decode(errors="replace"))
    if package_versions is None or package_versions.installed == _NONE:
        raise Refused(
            "upgrade",
            Text.of("{package} is not installed as a package here", package=PACKAGE),
            "Upgrade it as it was installed.",
        )
    return package_versions


def parse_policy(text: str) -> PackageVersions | None:
    """Return the versions in the output of `apt-cache policy`; None when it has none."""
    match dict(re.findall(r"^  (Installed|Candidate): (\S+)$", text, re.MULTILINE)):
        case {"Installed": installed, "Candidate": candidate}:
            return PackageVersions(installed, candidate)
        case _:
            return None

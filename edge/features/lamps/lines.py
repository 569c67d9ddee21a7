"""The lines of lamps and buttons: those of a GPIO chip, or simulated ones."""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Protocol

import structlog

from edge.foundation.errors import SettingsError

FAKE = "fake"
"""The label of a simulated chip: its lamps are logged, its buttons are never pressed."""

_log = structlog.get_logger(__name__)


class Lines(Protocol):
    """Lamps and buttons by their names."""

    async def switch(self, lamps: Mapping[str, bool]) -> None:
        """Switch the lamps of these names on or off; raises Unavailable, Refused when a lamp cannot be switched."""

    async def pressed(self) -> str:
        """Wait until a button is pressed; return its name. Raises Unavailable when the lines are gone."""


class FakeLines:
    """Lines of a simulated chip; `lit` holds which lamps would be on."""

    def __init__(self, lamps: Iterable[str]) -> None:
        self.lit = dict.fromkeys(lamps, False)

    async def switch(self, lamps: Mapping[str, bool]) -> None:
        """Log the state of the lamps."""
        self.lit |= lamps
        _log.info("fake lamps", **self.lit)

    async def pressed(self) -> str:
        """Wait without end."""
        never: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        return await never


def open_lines(
    chip: str, lamps: Mapping[str, int], buttons: Mapping[str, int], devices: Path = Path("/dev")
) -> AbstractContextManager[Lines]:
    """Request lines of the chip with that label, by their offsets; lamps are off then.

    Each button connects to ground. The chip FAKE needs no hardware. Raises SettingsError without libgpiod, and on entry
    Unavailable when there is no such chip or a line is in use.
    """
    if chip == FAKE:
        return nullcontext(FakeLines(lamps))
    try:
        from edge.features.lamps.gpio import request_lines  # noqa: PLC0415 - an extra: lines need libgpiod
    except ImportError as error:
        raise SettingsError(
            ["GPIO lines are asked for, and libgpiod 2 for Python is not there"],
            "pip install 'microdcs-edge[gpio]', or on Debian 13: apt install python3-libgpiod",
        ) from error
    return request_lines(chip, lamps, buttons, devices)

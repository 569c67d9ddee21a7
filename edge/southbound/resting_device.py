"""Devices with a state of rest: a tool that is disabled while no command of any gateway needs it."""

from collections.abc import Awaitable, Callable
from typing import Protocol, runtime_checkable

import structlog

from edge.errors import Refused

_log = structlog.get_logger(__name__)


@runtime_checkable
class RestingDevice(Protocol):
    """A device with a state for the time in which no command needs it."""

    async def rest(self) -> None:
        """Enter the state of rest; raises as `Device.perform`."""

    async def wake(self) -> None:
        """Stop the rest; raises as `Device.perform`."""


async def let_rest(name: str, device: object, is_at_work: Callable[[], Awaitable[bool]]) -> None:
    """Put a device that can rest into that state, unless it works for another gateway; log a refusal.

    Raises as `Device.perform`.
    """
    try:
        while isinstance(device, RestingDevice) and not await is_at_work():
            await device.rest()
            if not await is_at_work():
                return
            # Another gateway began a command between the two checks. It may have ended before the device woke up.
            await device.wake()
    except Refused as refusal:
        _log.warning("tool not disabled", equipment=name, reason=refusal.message)

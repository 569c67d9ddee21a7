"""Devices with a state of rest: a tool that is disabled while no command needs it."""

from typing import Protocol, runtime_checkable

import structlog

from edge.errors import Refused

_log = structlog.get_logger(__name__)


@runtime_checkable
class RestingDevice(Protocol):
    """A device with a state for the time in which no command needs it."""

    async def rest(self) -> None:
        """Enter the state of rest; raises as `Device.perform`."""


async def let_rest(name: str, device: object) -> None:
    """Put a device that can rest into that state until its next command; log a refusal. Raises as `Device.perform`."""
    try:
        if isinstance(device, RestingDevice):
            await device.rest()
    except Refused as refusal:
        _log.warning("tool not disabled", equipment=name, reason=refusal.message)

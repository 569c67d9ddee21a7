"""What each kind of device provides during one connection: it executes commands and reports events."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Protocol, runtime_checkable

from edge.errors import EdgeError, Refused
from edge.southbound.device_error import bounded_message
from edge.station.equipment import Command, EquipmentAnswer, OutcomeUnknown

STOP_SECONDS: Final = 15.0
"""The seconds within which a device must confirm all steps of a stop."""


class DeviceOutcomeUnknownError(EdgeError):
    """Error for a physical action that was started and whose result the device cannot report."""


class UnreadableEventError(Refused):
    """Error for an event that cannot be read; `payload` is what the device sent."""

    def __init__(self, message: str, payload: bytes, advice: str = "") -> None:
        super().__init__("unreadable", message, advice)
        self.payload = payload


DeviceEvent = Mapping[str, Any]


class Device(Protocol):
    """A device during one connection, as its kind implements it."""

    @property
    def problem(self) -> str:
        """Reason why the connected device cannot execute commands; empty when it can."""

    async def catch_up(self) -> None:
        """Collect the results from the time without a connection, before any command runs; raises as `perform`."""

    async def handle_event(self, device_event: DeviceEvent) -> None:
        """Handle an event of the device; Refused, as any unexpected exception, discards the event."""

    async def perform(self, command: Command) -> Any:
        """Execute a command, without repeating one that the device has begun or done; return the data of the answer.

        Raises Refused with the reason when the device cannot execute it, Unavailable when the connection is lost,
        DeviceOutcomeUnknownError when the device cannot report the result.
        """

    async def stop(self, command: Command) -> None:
        """Stop a command if the device executes it, also since an earlier connection; raises as `perform`."""

    async def settle(self, command: Command) -> None:
        """Release the data kept for a command whose answer is durable; raises as `perform`."""


@runtime_checkable
class BatchDevice(Protocol):
    """A device that may have parts of a result when its outcome is unknown, as the first bolts of a batch."""

    async def surrender(self, command: Command) -> None:
        """Report what came for a command whose unknown outcome is durable; raises as `Device.perform`."""


DeviceEvents = AsyncIterator[DeviceEvent | Refused]
"""Events of a device; Refused stands for an event that cannot be read."""

Connector = Callable[[], AbstractAsyncContextManager[tuple[Device, DeviceEvents]]]
"""Connects once; yields the device with its events.

Raises Unavailable when the device cannot be reached, Refused when it is not, or not yet, the expected device.
"""


async def stop_device(device: Device, command: Command) -> str | None:
    """Stop a command; return why the device has not confirmed it, None when it has. Raises Unavailable."""
    try:
        async with asyncio.timeout(STOP_SECONDS):
            await device.stop(command)
    except Refused as refusal:
        return bounded_message(refusal)
    except TimeoutError:
        return f"no answer within {STOP_SECONDS:g} s"
    return None


async def settle_device(device: Device, command: Command, answer: EquipmentAnswer | OutcomeUnknown) -> None:
    """Release the data kept for a command, or report what came of it when its outcome is unknown."""
    if not isinstance(answer, OutcomeUnknown):
        await device.settle(command)
    elif isinstance(device, BatchDevice):
        await device.surrender(command)


def describe_event(device_event: DeviceEvent | Refused) -> Any:
    """Return an event as recorders of the traffic show it."""
    return {"refused": device_event.message} if isinstance(device_event, Refused) else device_event


async def handle_event(device: Device, device_event: DeviceEvent | Refused) -> None:
    """Pass an event to its device; raise the Refused of one that cannot be read."""
    if isinstance(device_event, Refused):
        raise device_event
    await device.handle_event(device_event)

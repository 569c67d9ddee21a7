"""What each kind of device provides during one connection: it executes commands and reports events."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Protocol, runtime_checkable

from edge.foundation.errors import EdgeError, Refused, unwrap_group
from edge.foundation.task_group import TaskGroup
from edge.foundation.text import Text
from edge.station.equipment import Command, EquipmentAnswer, OutcomeUnknown

# Maximum length, in characters, of a message of a device.
_MESSAGE_LIMIT = 500


def root_cause(error: Exception) -> Exception:
    """Return the first unexpected exception of nested exception groups; without one, the first exception."""
    while isinstance(error, ExceptionGroup):
        # The group may also hold the loss of the connection, which is expected.
        _expected, unexpected = error.split(EdgeError)
        error = (unexpected or error).exceptions[0]
    return error


def bounded_text(error: EdgeError) -> Text:
    """Return the text of an error; its English message where that was cut or cannot be encoded."""
    message = bounded_message(error)
    return error.text if message == error.message else Text(message)


def bounded_message(error: EdgeError) -> str:
    """Return the message of an error, cut to `_MESSAGE_LIMIT` characters; replace characters that cannot be encoded."""
    message = error.message if len(error.message) <= _MESSAGE_LIMIT else f"{error.message[:_MESSAGE_LIMIT]}…"
    return message.encode(errors="replace").decode()


STOP_SECONDS: Final = 15.0
"""The seconds within which a device must confirm a stop, from its last answer on where it counts its answers."""


class DeviceOutcomeUnknownError(EdgeError):
    """Error for a physical action that was started and whose result the device cannot report."""


class UnreadableEventError(Refused):
    """Error for an event that cannot be read; `payload` is what the device sent."""

    def __init__(self, message: str | Text, payload: bytes, advice: str | Text = "") -> None:
        super().__init__("unreadable", message, advice)
        self.payload = payload


DeviceEvent = Mapping[str, Any]


class Device(Protocol):
    """A device during one connection, as its kind implements it."""

    @property
    def problem(self) -> str | Text:
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
class SubscribingDevice(Protocol):
    """A device that sends its results after a subscription on each connection, which follows the release."""

    async def subscribe(self) -> None:
        """Subscribe to the results; raises as `Device.perform`, and the device is not connected then."""


@runtime_checkable
class SurrenderingDevice(Protocol):
    """A device that may have results of a command that does not take them, as the first bolts of a batch."""

    async def surrender(self, command: Command) -> None:
        """Report what came for a command that was stopped, or whose unknown outcome is durable; as `Device.perform`."""


@runtime_checkable
class AnsweringDevice(Protocol):
    """A device that counts its answers: a sequence of calls has no time limit while the device answers them."""

    @property
    def answer_count(self) -> int:
        """Number of answers since the connection began."""


DeviceEvents = AsyncIterator[DeviceEvent | Refused]
"""Events of a device; Refused stands for an event that cannot be read."""

Connector = Callable[[], AbstractAsyncContextManager[tuple[Device, DeviceEvents]]]
"""Connects once; yields the device with its events.

Raises Unavailable when the device cannot be reached, Refused when it is not, or not yet, the expected device.
"""


async def complete_in_time(device: object, sequence: Coroutine[Any, Any, None], seconds: float) -> None:
    """Execute a sequence of calls; raise TimeoutError when the device has answered none of them for `seconds`."""
    is_silent = False
    with unwrap_group():
        async with TaskGroup() as tasks:
            task = tasks.create_task(sequence)
            while not task.done() and not is_silent:
                before = _answer_count(device)
                await asyncio.wait((task,), timeout=seconds)
                is_silent = not task.done() and _answer_count(device) == before
            if is_silent:
                task.cancel()
    if is_silent:
        raise TimeoutError


def _answer_count(device: object) -> int:
    return device.answer_count if isinstance(device, AnsweringDevice) else 0


async def stop_device(device: Device, command: Command) -> tuple[Text | None, bool]:
    """Stop a command; return why the device has not confirmed it, None when it has, and whether it has answered.

    Raises Unavailable.
    """
    try:
        await complete_in_time(device, device.stop(command), STOP_SECONDS)
    except Refused as refusal:
        return bounded_text(refusal), True
    except TimeoutError:
        return Text.of("no answer within {seconds:g} s", seconds=STOP_SECONDS), False
    return None, True


async def settle_device(device: Device, command: Command, answer: EquipmentAnswer | OutcomeUnknown) -> None:
    """Release the data kept for a command, or report what came of it when its outcome is unknown."""
    if not isinstance(answer, OutcomeUnknown):
        await device.settle(command)
    else:
        await surrender_device(device, command)


async def surrender_device(device: Device, command: Command, work: asyncio.Task[None] | None = None) -> None:
    """Cancel the work of a command, if any, and report what came for it, where the device keeps that."""
    if work:
        work.cancel()
        # Its answer may be on the way to the store: what is stored then is not reported once more.
        await asyncio.wait((work,))
    if isinstance(device, SurrenderingDevice):
        await device.surrender(command)


def describe_event(device_event: DeviceEvent | Refused) -> Any:
    """Return an event as recorders of the traffic show it."""
    return {"refused": device_event.message} if isinstance(device_event, Refused) else device_event


async def handle_event(device: Device, device_event: DeviceEvent | Refused) -> None:
    """Pass an event to its device; raise the Refused of one that cannot be read."""
    if isinstance(device_event, Refused):
        raise device_event
    await device.handle_event(device_event)

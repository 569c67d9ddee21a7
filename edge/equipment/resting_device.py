"""Devices with a state of rest: a tool that is disabled while no command of any gateway needs it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Protocol, runtime_checkable

import structlog

from edge.equipment.device import STOP_SECONDS, complete_in_time
from edge.equipment.device_error import bounded_message
from edge.foundation.errors import Refused, Unavailable
from edge.foundation.instant import Clock, now_ms
from edge.foundation.rate_limit import LogThrottle
from edge.model.equipment_health import OpenSafing
from edge.station.safing_tries import SafingTries

_LOG_INTERVAL_S: Final = 600.0

_log = structlog.get_logger(__name__)


@runtime_checkable
class RestingDevice(Protocol):
    """A device with a state for the time in which no command needs it."""

    async def rest(self) -> None:
        """Enter the state of rest; return when the device has confirmed it. Raises as `Device.perform`."""

    async def wake(self) -> None:
        """Stop the rest; raises as `Device.perform`."""


class DeviceRelease:
    """The release of a device after each command, until the device confirms it, also on a later connection.

    It lives with the connection and not in the store: the open commands say whether a command needs the tool. So each
    new connection begins with the release, and a bolt costs no further commit.
    """

    def __init__(self, name: str, answer_s: float = STOP_SECONDS, clock: Clock = now_ms) -> None:
        self._name = name
        self._answer_s = answer_s
        self._clock = clock
        self._time = asyncio.get_running_loop().time
        self._log = LogThrottle(_log, _LOG_INTERVAL_S, clock=self._time)
        self._tries: SafingTries | None = None
        self._is_used = False
        self._must_wake = False

    @property
    def open(self) -> OpenSafing | None:
        """The release that the device has not confirmed; None when it has."""
        return None if self._tries is None else self._tries.described("release")

    @property
    def wait_s(self) -> float | None:
        """The seconds until the next try; None when nothing is open."""
        return None if self._tries is None else max(0.0, self._tries.due_s - self._time())

    def withdraw(self) -> None:
        """Forget an open release: a command needs the tool, and its release follows."""
        self._tries, self._must_wake, self._is_used = None, False, True

    async def attempt(self, device: object, is_at_work: Callable[[], Awaitable[bool]]) -> None:
        """Put a device that can rest into that state, unless it works for a gateway; keep why it does not rest.

        Raises Unavailable when the connection is lost.
        """
        if not isinstance(device, RestingDevice):
            return
        try:
            is_at_rest = await self._let_rest(device, is_at_work)
        except Refused as refusal:
            self._fail(bounded_message(refusal))
        except TimeoutError:
            self._fail(f"no answer within {self._answer_s:g} s")
        except Unavailable as error:
            # A connection that is lost at its beginning is not a fact about a tool that no command has used.
            if self._is_used or self._tries is not None:
                self._fail(bounded_message(error))
            raise
        else:
            if is_at_rest and self._tries is not None:
                _log.info("tool disabled", equipment=self._name, tries=self._tries.count + 1)
            self._tries, self._must_wake, self._is_used = None, False, False

    def reconnect(self) -> None:
        """Begin the intervals again: the next try is the first on its connection."""
        if self._tries is not None:
            self._tries = self._tries.reconnected()

    async def _let_rest(self, device: RestingDevice, is_at_work: Callable[[], Awaitable[bool]]) -> bool:
        """Return True when the device rests, False when it works for a gateway."""
        while not await is_at_work():
            self._must_wake = False
            await complete_in_time(device, device.rest(), self._answer_s)
            if not await is_at_work():
                return True
            # Another gateway began a command between the two checks. It may have ended before the device woke up.
            self._must_wake = True
            await self._wake(device)
        if self._must_wake:
            await self._wake(device)
        return False

    async def _wake(self, device: RestingDevice) -> None:
        await complete_in_time(device, device.wake(), self._answer_s)
        self._must_wake = False

    def _fail(self, reason: str) -> None:
        self._tries = (self._tries or SafingTries(self._clock())).tried(self._time(), reason)
        self._log.warning("tool not disabled", self._name, equipment=self._name, tries=self._tries.count, reason=reason)

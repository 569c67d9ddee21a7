"""Work ends when its command is obsolete, that is, when no job waits for it any more."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from edge.equipment.connected_equipment import open_connected
from edge.equipment.device import Device, DeviceEvent, DeviceEvents
from edge.equipment.obsolete_command import ObsoleteCommandError, until_obsolete
from edge.foundation.errors import Refused, Unavailable
from edge.sfc.signal import Phase
from edge.station.equipment import Command
from tests.conftest import WaitUntil
from tests.equipment.contract import NEXT, SCOPES, TYPE_ID, WORK
from tests.equipment.recording_station import RecordingStation

CHECK_S = 0.01


class Station:
    """Answers the checks in order, then the last one again; None: the store is unavailable."""

    def __init__(self, *answers: bool | None) -> None:
        self.checks = 0
        self._answers = answers

    async def is_outstanding(self, _: str) -> bool:
        answer = self._answers[min(self.checks, len(self._answers) - 1)]
        self.checks += 1
        if answer is None:
            raise Unavailable("no store")
        return answer


async def test_work_ends_after_two_checks_without_a_waiting_job() -> None:
    station = Station(True, False, False)
    with pytest.raises(ObsoleteCommandError):
        async with until_obsolete(WORK, station.is_outstanding, CHECK_S):
            await asyncio.Event().wait()
    assert station.checks == 3


@pytest.mark.parametrize("answers", [(False, True, False, True), (False, None, False, True)], ids=["again", "no store"])
async def test_work_continues_after_one_check_without_a_waiting_job(
    wait_until: WaitUntil, answers: tuple[bool | None, ...]
) -> None:
    station = Station(*answers)
    async with until_obsolete(WORK, station.is_outstanding, CHECK_S):
        await wait_until(lambda: station.checks > 4)


async def test_reset_is_executed_without_an_outstanding_check() -> None:
    station = Station(False)
    reset = replace(WORK, phase=Phase.RESET)
    async with until_obsolete(reset, station.is_outstanding, 0.0):
        for _ in range(10):
            await asyncio.sleep(0)
    assert station.checks == 0


async def test_error_of_the_work_is_raised_unchanged() -> None:
    with pytest.raises(Refused, match="jammed"):
        async with until_obsolete(WORK, Station(True).is_outstanding, CHECK_S):
            raise Refused("device", "jammed")


class Spindle:
    """A device that works on its first command for ever, as one that another gateway has stopped."""

    problem = ""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.rests = 0

    @asynccontextmanager
    async def connecting(self) -> AsyncIterator[tuple[Device, DeviceEvents]]:
        yield self, self._happen()

    async def _happen(self) -> DeviceEvents:
        await asyncio.Event().wait()
        yield {}

    async def catch_up(self) -> None:
        """Return at once: there are no results."""

    async def handle_event(self, device_event: DeviceEvent) -> None:
        """Do nothing: no event comes."""

    async def perform(self, command: Command) -> Any:
        self.begun.append(command.command_id)
        if len(self.begun) == 1:
            await asyncio.Event().wait()
        return {"done": True}

    async def stop(self, command: Command) -> None:
        """Return at once."""

    async def settle(self, command: Command) -> None:
        """Return at once."""

    async def rest(self) -> None:
        self.rests += 1

    async def wake(self) -> None:
        """Return at once."""


async def test_command_ended_by_another_gateway_does_not_block_others(wait_until: WaitUntil) -> None:
    """This gateway answers nothing: the other one has answered or stopped the command."""
    station, spindle = RecordingStation(), Spindle()
    opened = open_connected("wrench", "the wall", (TYPE_ID,), station, SCOPES, spindle.connecting, check_s=CHECK_S)
    with capture_logs() as logs:
        async with opened as equipment:
            await wait_until(lambda: equipment.connected)
            await equipment.send(WORK)
            await wait_until(lambda: spindle.begun)
            await equipment.send(NEXT)
            station.stopped_meanwhile.add(WORK.command_id)
            await wait_until(lambda: station.answers)
            await wait_until(lambda: spindle.rests > 1)
    assert [answer.command_id for answer in station.answers] == [NEXT.command_id]
    assert (station.unknown, station.stops) == ([], [])
    assert [entry["command"] for entry in logs if entry["event"] == "command obsolete"] == [WORK.command_id]


class BusySpindle(Spindle):
    """A device that gets a command while it enters its state of rest; `calls` are in their order."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []
        self.resting, self.resume = asyncio.Event(), asyncio.Event()

    async def perform(self, command: Command) -> Any:
        self.calls.append("perform")
        return {"done": True}

    async def rest(self) -> None:
        self.calls.append("rest")
        self.resting.set()
        await self.resume.wait()

    async def wake(self) -> None:
        self.calls.append("wake")


async def test_own_command_arriving_during_the_rest_does_not_wake_the_tool(wait_until: WaitUntil) -> None:
    """Awake without the program of the command, a tool could be used with that of another one."""
    station, spindle = RecordingStation(), BusySpindle()
    async with open_connected("wrench", "the wall", (TYPE_ID,), station, SCOPES, spindle.connecting) as equipment:
        await spindle.resting.wait()
        station.unanswered = [WORK]
        await equipment.send(WORK)
        spindle.resume.set()
        await wait_until(lambda: station.answers)
    assert spindle.calls[:2] == ["rest", "perform"]

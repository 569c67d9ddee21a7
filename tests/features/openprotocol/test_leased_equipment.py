"""Equipment that one gateway connects to: the port of the others passes its commands on, and takes over."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from edge.features.openprotocol.leased_equipment import LeasedEquipment, OnlyLease
from edge.foundation.errors import Unavailable
from edge.foundation.text import Text
from edge.sfc.signal import Phase
from edge.station.equipment import Command, NotSent
from tests.conftest import WaitUntil
from tests.equipment.contract import RESET
from tests.equipment.recording_station import RecordingStation
from tests.equipment.strict_controller import StrictBench, attached, bolt
from tests.outside.devices.openprotocol_controller import open_strict_controller
from tests.outside.devices.openprotocol_tool import Habits

STOP = replace(bolt(1), phase=Phase.STOP)


class HeldLease(OnlyLease):
    """A lease that a test passes commands to; `passed_on` are those for another gateway."""

    def __init__(self) -> None:
        super().__init__()
        self.passed_on: list[Command] = []
        self.commands: asyncio.Queue[Command | None] = asyncio.Queue()

    async def pass_on(self, command: Command) -> None:
        self.passed_on.append(command)

    async def passed(self) -> AsyncIterator[Command | None]:
        while True:
            yield await self.commands.get()


@asynccontextmanager
async def connected(
    wait_until: WaitUntil, lease: HeldLease, station: RecordingStation | None = None
) -> AsyncIterator[StrictBench]:
    async with (
        open_strict_controller(habits=Habits(absent=True)) as controller,
        attached(controller, station, lease_of=lambda *_: lease) as bench,
    ):
        await wait_until(lambda: bench.equipment.connected)
        yield bench


async def test_commands_go_to_the_gateway_that_connects(wait_until: WaitUntil) -> None:
    lease = HeldLease()
    async with connected(wait_until, lease) as bench:
        port: LeasedEquipment = bench.equipment
        lease.holder = "first"
        assert (port.connected, port.connection.holder, port.connection.text) == (None, "first", "")
        await port.send(bolt(1))
        await port.stop(STOP)
        await port.reset(RESET)
    assert lease.passed_on == [bolt(1), STOP, RESET]
    assert 43 not in bench.controller.mids()


async def test_passed_start_is_carried_out_and_answered(wait_until: WaitUntil) -> None:
    lease = HeldLease()
    async with connected(wait_until, lease) as bench:
        lease.commands.put_nowait(bolt(1))
        await wait_until(lambda: bench.controller.tool.enabled)
        bench.controller.tool.tighten()
        await wait_until(lambda: bench.station.answers)
    assert [answer.command_id for answer in bench.station.answers] == [bolt(1).command_id]


@pytest.mark.parametrize(
    "strange",
    [replace(bolt(1), type_id="com.example.other.v1"), replace(bolt(1), scope="station-9"), bolt(7)],
    ids=["type", "scope", "ended"],
)
async def test_passed_start_that_is_not_ours_is_dropped(wait_until: WaitUntil, strange: Command) -> None:
    lease, station = HeldLease(), RecordingStation()
    station.stopped_meanwhile.add(bolt(7).command_id)
    async with connected(wait_until, lease, station) as bench:
        lease.commands.put_nowait(strange)
        lease.commands.put_nowait(bolt(2))
        await wait_until(lambda: bench.controller.tool.enabled)
        assert bench.controller.tool.vin.startswith("J2")
    assert bench.station.begun == [bolt(2).command_id]


async def test_passed_stop_disables_the_tool(wait_until: WaitUntil) -> None:
    lease = HeldLease()
    async with connected(wait_until, lease) as bench:
        await bench.equipment.send(bolt(1))
        await wait_until(lambda: bench.controller.tool.enabled)
        lease.commands.put_nowait(STOP)
        await wait_until(lambda: bench.station.stops)
        assert not bench.controller.tool.enabled
    assert bench.station.stops == [(bolt(1).command_id, None)]


class FailingStation(RecordingStation):
    """A station whose store fails at the first question whether a command is open."""

    has_failed = False

    async def is_outstanding(self, command_id: str) -> bool:
        if not self.has_failed:
            self.has_failed = True
            raise Unavailable("the store is gone")
        return await super().is_outstanding(command_id)


async def test_passed_start_survives_an_outage_of_the_store(wait_until: WaitUntil) -> None:
    lease, station = HeldLease(), FailingStation()
    async with connected(wait_until, lease, station) as bench:
        lease.commands.put_nowait(bolt(1))
        await wait_until(lambda: bench.controller.tool.enabled)
    assert station.has_failed


async def test_unreadable_passed_command_leads_to_the_open_ones(wait_until: WaitUntil) -> None:
    lease, station = HeldLease(), RecordingStation()
    async with connected(wait_until, lease, station) as bench:
        station.unanswered = [bolt(1)]
        lease.commands.put_nowait(None)
        await wait_until(lambda: bench.controller.tool.enabled)
    assert station.begun == [bolt(1).command_id]


class SlowStation(RecordingStation):
    """A station whose store confirms no stop until `confirms` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.confirms = asyncio.Event()

    async def stopped(self, command_id: str, error: str | Text | None, *, is_answer: bool = True) -> None:
        await self.confirms.wait()
        await super().stopped(command_id, error, is_answer=is_answer)


async def test_passed_stops_that_take_long_delay_no_passed_start(wait_until: WaitUntil) -> None:
    lease, station = HeldLease(), SlowStation()
    async with connected(wait_until, lease, station) as bench:
        for command in (STOP, STOP, STOP, bolt(2)):
            lease.commands.put_nowait(command)
        await wait_until(lambda: bench.controller.tool.enabled)
        assert station.stops == []
        station.confirms.set()
        await wait_until(lambda: station.stops)
    # The repetitions of a stop at work are left out.
    assert station.stops == [(STOP.command_id, None)]


class LostLease(HeldLease):
    """A lease that another gateway takes once."""

    def __init__(self) -> None:
        super().__init__()
        self.losses = 1

    async def passed(self) -> AsyncIterator[Command | None]:
        command = await self.commands.get()
        if self.losses:
            self.losses -= 1
            raise Unavailable("another gateway connects to it")
        yield command


async def test_gateway_that_lost_its_lease_disconnects(wait_until: WaitUntil) -> None:
    lease = LostLease()
    async with connected(wait_until, lease) as bench:
        lease.commands.put_nowait(bolt(1))
        await wait_until(lambda: bench.equipment.connection_count == 2)
        assert bench.controller.mids().count(3) == 1
        assert bench.controller.violations == []


class TakenLease(HeldLease):
    """A lease that another gateway takes when `is_taken` is set; this one finds it out at its next message."""

    is_taken = False

    async def ensure(self) -> None:
        if self.is_taken:
            raise NotSent("another gateway connects to it")

    async def refuse_if_lost(self) -> None:
        await self.ensure()


@pytest.mark.parametrize("is_result", [False, True])
async def test_gateway_whose_lease_was_taken_writes_nothing_to_the_tool(
    wait_until: WaitUntil, *, is_result: bool
) -> None:
    """It selected its own program, or disabled the tool of the next holder after a result."""
    lease, station = TakenLease(), RecordingStation()
    async with connected(wait_until, lease, station) as bench:
        if is_result:
            await bench.equipment.send(bolt(1))
            await wait_until(lambda: bench.controller.tool.enabled)
        before = len(bench.controller.mids())
        lease.is_taken = True
        if is_result:
            bench.controller.tool.tighten()
        else:
            # In memory already, as a command that was queued before the freeze.
            lease.commands.put_nowait(bolt(1))
        await wait_until(lambda: 3 in bench.controller.mids()[before:])
        sent = bench.controller.mids()[before:]
        assert {18, 42, 43, 50}.isdisjoint(sent[: sent.index(3)])


async def test_command_is_not_queued_where_the_lease_was_taken(wait_until: WaitUntil) -> None:
    """It waited in the memory of the former holder for good, as the next one had read the open commands before."""
    lease = TakenLease()
    async with connected(wait_until, lease) as bench:
        lease.is_taken = True
        with pytest.raises(NotSent):
            await bench.equipment.send(bolt(1))
        with pytest.raises(NotSent):
            await bench.equipment.reset(RESET)
    assert bench.station.begun == []

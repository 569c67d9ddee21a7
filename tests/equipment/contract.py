"""The contract of every kind of equipment, whatever its protocol; each kind runs these tests with its own device."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from typing import Protocol

import pytest_asyncio
from msgspec.structs import replace

from edge.foundation.errors import Unavailable
from edge.sfc.signal import Phase
from edge.station.equipment import Command, EquipmentPort, NotSent, Repetition
from tests.conftest import WaitUntil
from tests.equipment.recording_station import RecordingStation

TYPE_ID = "com.example.station.work.v1"
SCOPES = ("station-1",)
WORK = Command(
    command_id="J1/7d444840-9dc0-11d1-b245-5ffdce74fad2/work/1",
    phase=Phase.START,
    type_id=TYPE_ID,
    scope="station-1",
    job_id="J1",
    correlation_id="7d444840-9dc0-11d1-b245-5ffdce74fad2",
    action="work",
    attempt=1,
    parameters={"program": "P1", "recipe_id": "P1", "green": True, "joining_process_id": "P1 85Nm"},
)
RESET = replace(WORK, command_id=f"{WORK.command_id}/reset", phase=Phase.RESET)
NEXT = replace(WORK, command_id=WORK.command_id.replace("/1", "/2"), attempt=2)


class Device(Protocol):
    """The device side under control of a test: it ends no work until the test requests it.

    `begun` and `stopped` list the work that it has begun and stopped, in order, in the terms of its protocol.
    """

    @property
    def begun(self) -> list[str]: ...

    @property
    def stopped(self) -> list[str]: ...

    async def finish(self) -> None:
        """End the current work with success."""

    async def fail(self, reason: str) -> None:
        """End the current work with an error for this reason."""

    async def report_again(self) -> None:
        """Repeat the report of how the last work ended."""

    def away(self) -> AbstractAsyncContextManager[None]:
        """Disconnect for the length of the block; the current work is lost."""

    def cut_off(self) -> AbstractAsyncContextManager[None]:
        """Disconnect for the length of the block; the work continues."""


@dataclass
class Bench:
    """One piece of equipment, with its device and its station."""

    equipment: EquipmentPort
    station: RecordingStation
    device: Device


Opener = Callable[[], AbstractAsyncContextManager[Bench]]


class Contract:
    """The suite. A kind derives from it and provides the fixture `opener`; its tests share the loop of their module.

    `failure` is the reason that its device reports for failed work. `repetition` is what a second start may do. A kind
    that `reports_loss` finds out that its device has lost the work of a command.
    """

    failure = "the spindle is jammed"
    repetition = Repetition.REPEATABLE
    reports_loss = True

    @property
    def once(self) -> bool:
        """Whether a start must not be sent twice."""
        return self.repetition is Repetition.ONCE

    @pytest_asyncio.fixture(loop_scope="module")
    async def bench(self, opener: Opener) -> AsyncIterator[Bench]:
        async with opener() as bench:
            yield bench

    async def test_answer_has_the_id_of_its_command(self, bench: Bench, wait_until: WaitUntil) -> None:
        await bench.equipment.send(WORK)
        await wait_until(lambda: bench.device.begun)
        await bench.device.finish()
        await wait_until(lambda: bench.station.answers)
        (answer,) = bench.station.answers
        assert (answer.command_id, answer.error) == (WORK.command_id, None)
        assert isinstance(answer.data, dict)

    async def test_failed_command_is_answered_with_the_reason(self, bench: Bench, wait_until: WaitUntil) -> None:
        await bench.equipment.send(WORK)
        await wait_until(lambda: bench.device.begun)
        await bench.device.fail(self.failure)
        await wait_until(lambda: bench.station.answers)
        (answer,) = bench.station.answers
        assert answer.command_id == WORK.command_id
        assert answer.error
        assert self.failure in str(answer.error)

    async def test_unfinished_command_has_no_answer(self, bench: Bench, wait_until: WaitUntil) -> None:
        await bench.equipment.send(WORK)
        await wait_until(lambda: bench.device.begun)
        assert bench.station.answers == []

    async def test_command_sent_twice_is_executed_once(self, bench: Bench, wait_until: WaitUntil) -> None:
        await bench.equipment.send(WORK)
        await wait_until(lambda: bench.device.begun)
        await bench.equipment.send(WORK)
        await bench.device.finish()
        await wait_until(lambda: bench.station.answers)
        await bench.equipment.send(NEXT)
        await wait_until(lambda: len(bench.device.begun) > 1)
        await bench.device.finish()
        await wait_until(lambda: NEXT.command_id in bench.station.outcomes())
        assert len(bench.device.begun) == 2

    async def test_repeated_answer_is_not_taken_as_the_next_answer(self, bench: Bench, wait_until: WaitUntil) -> None:
        await bench.equipment.send(WORK)
        await wait_until(lambda: bench.device.begun)
        await bench.device.finish()
        await bench.device.report_again()
        await wait_until(lambda: bench.station.answers)
        await bench.equipment.send(NEXT)
        await wait_until(lambda: len(bench.device.begun) > 1)
        await bench.device.finish()
        await wait_until(lambda: NEXT.command_id in bench.station.outcomes())
        assert {answer.command_id for answer in bench.station.answers} == {WORK.command_id, NEXT.command_id}

    async def test_answer_is_retried_until_the_station_accepts_it(self, bench: Bench, wait_until: WaitUntil) -> None:
        await bench.equipment.send(WORK)
        await wait_until(lambda: bench.device.begun)
        bench.station.failures = [Unavailable("the store is away")]
        await bench.device.finish()
        await wait_until(lambda: bench.station.answers)
        assert bench.station.failures == []

    async def test_stop_ends_the_work_and_the_next_command_runs(self, bench: Bench, wait_until: WaitUntil) -> None:
        await bench.equipment.send(WORK)
        await wait_until(lambda: bench.device.begun)
        await bench.equipment.stop(WORK)
        await wait_until(lambda: bench.device.stopped)
        await bench.equipment.send(NEXT)
        await wait_until(lambda: len(bench.device.begun) > 1)
        await bench.device.finish()
        await wait_until(lambda: NEXT.command_id in bench.station.outcomes())
        assert bench.station.outcomes()[NEXT.command_id] is not None

    async def test_late_answer_is_not_taken_as_answer_of_the_next_command(
        self, bench: Bench, wait_until: WaitUntil
    ) -> None:
        await bench.equipment.send(WORK)
        await wait_until(lambda: bench.device.begun)
        await bench.device.finish()
        await bench.equipment.stop(WORK)
        await bench.equipment.send(NEXT)
        await wait_until(lambda: len(bench.device.begun) > 1)
        await bench.device.report_again()
        assert NEXT.command_id not in bench.station.outcomes()
        await bench.device.finish()
        await wait_until(lambda: NEXT.command_id in bench.station.outcomes())

    async def test_answer_is_delivered_after_a_connection_loss_in_mid_command(
        self, bench: Bench, wait_until: WaitUntil
    ) -> None:
        await bench.equipment.send(WORK)
        bench.station.unanswered = [WORK]
        await wait_until(lambda: bench.device.begun)
        async with bench.device.cut_off():
            await bench.device.finish()
        await wait_until(lambda: bench.station.answers)
        assert set(bench.station.outcomes()) == {WORK.command_id}
        assert len(bench.device.begun) == 1

    async def test_work_lost_by_a_device_is_repeated_or_unknown(self, bench: Bench, wait_until: WaitUntil) -> None:
        await bench.equipment.send(WORK)
        bench.station.unanswered = [WORK]
        await wait_until(lambda: bench.device.begun)
        async with bench.device.away():
            pass
        if self.once and not self.reports_loss:
            await bench.equipment.send(NEXT)
            await wait_until(lambda: NEXT.command_id in bench.station.begun)
            assert bench.device.begun.count(WORK.command_id) == 1
            return
        if self.once:
            await wait_until(lambda: bench.station.unknown)
            assert [outcome_unknown.command_id for outcome_unknown in bench.station.unknown] == [WORK.command_id]
            assert len(bench.device.begun) == 1
            return
        await wait_until(lambda: len(bench.device.begun) == 2)
        await bench.device.finish()
        await wait_until(lambda: bench.station.answers)
        assert set(bench.station.outcomes()) == {WORK.command_id}

    async def test_reset_starts_no_work(self, bench: Bench, wait_until: WaitUntil) -> None:
        await bench.equipment.reset(RESET)
        await wait_until(lambda: bench.station.answers)
        assert [(answer.command_id, answer.error) for answer in bench.station.answers] == [(RESET.command_id, None)]
        assert bench.device.begun == []

    async def test_reset_ends_the_running_work(self, bench: Bench, wait_until: WaitUntil) -> None:
        await bench.equipment.send(WORK)
        await wait_until(lambda: bench.device.begun)
        await bench.equipment.reset(RESET)
        await wait_until(lambda: RESET.command_id in bench.station.outcomes())
        assert len(bench.device.begun) == len(bench.device.stopped) == 1

    async def test_begun_mark_is_committed_for_a_start_that_is_sent_once(
        self, bench: Bench, wait_until: WaitUntil
    ) -> None:
        assert bench.equipment.repetition_of(TYPE_ID) is self.repetition
        await bench.equipment.send(WORK)
        await wait_until(lambda: bench.device.begun)
        assert bench.station.begun == ([WORK.command_id] if self.once else [])

    async def test_begun_mark_waits_for_the_store(self, bench: Bench, wait_until: WaitUntil) -> None:
        """A start without a committed mark never leaves: the sender of the gateway, or the kind, tries again."""
        if not self.once:
            return
        bench.station.failures = [Unavailable("the store is away")]
        try:
            await bench.equipment.send(WORK)
        except Unavailable:
            # The sender of the gateway tries again.
            await bench.equipment.send(WORK)
        await wait_until(lambda: bench.device.begun)
        assert bench.station.begun == [WORK.command_id]
        assert len(bench.device.begun) == 1

    async def test_begun_command_offered_again_is_not_started_a_second_time(
        self, bench: Bench, wait_until: WaitUntil
    ) -> None:
        if not self.once:
            return
        bench.station.begun = [WORK.command_id]
        # Where the equipment cannot be asked, the start stays in the outbox until its answer comes.
        with suppress(Unavailable):
            await bench.equipment.send(replace(WORK, begun=True, offered_again=True))
        if self.reports_loss:
            await wait_until(lambda: bench.station.unknown)
            assert bench.station.unknown[0].reason
        await bench.equipment.send(NEXT)
        await wait_until(lambda: NEXT.command_id in bench.station.begun and bench.device.begun)
        assert len(bench.device.begun) == 1

    async def test_command_that_was_stopped_before_its_start_is_not_begun(
        self, bench: Bench, wait_until: WaitUntil
    ) -> None:
        if not self.once:
            return
        bench.station.stopped_meanwhile.add(WORK.command_id)
        await bench.equipment.send(WORK)
        await bench.equipment.send(NEXT)
        await wait_until(lambda: bench.device.begun)
        assert bench.station.begun == [NEXT.command_id]
        assert len(bench.device.begun) == 1

    async def test_repeated_start_offer_is_counted(self, bench: Bench, wait_until: WaitUntil) -> None:
        if self.once:
            return
        await bench.equipment.send(replace(WORK, offered_again=True))
        await wait_until(lambda: bench.device.begun)
        assert bench.station.repeated_starts == 1

    async def test_queued_start_waits_until_the_primary_is_confirmed(self, bench: Bench, wait_until: WaitUntil) -> None:
        """The fence was looked at when a start was queued, and a tool was switched on after it had closed."""
        bench.station.unconfirmed = "a failover has begun"
        with suppress(NotSent):
            await bench.equipment.send(WORK)
        await wait_until(lambda: bench.station.refused_starts or bench.device.begun)
        assert bench.device.begun == []
        await bench.equipment.reset(RESET)
        await wait_until(lambda: RESET.command_id in bench.station.outcomes())
        bench.station.unconfirmed = ""
        await bench.equipment.send(NEXT)
        await wait_until(lambda: bench.device.begun)

    async def test_working_equipment_is_connected_and_reports_no_problem(
        self, bench: Bench, wait_until: WaitUntil
    ) -> None:
        await bench.equipment.send(WORK)
        await wait_until(lambda: bench.device.begun)
        assert bench.equipment.connected
        assert bench.equipment.problem == ""

    async def test_equipment_shuts_down_during_a_command(self, opener: Opener, wait_until: WaitUntil) -> None:
        async with asyncio.timeout(60):
            async with opener() as bench:
                await bench.equipment.send(WORK)
                await wait_until(lambda: bench.device.begun)
        assert bench.station.answers == []

"""Commands are retried until they are sent; a defect of one command fails only its own job."""

import asyncio
import itertools
import time

from structlog.testing import capture_logs

from edge.config import RedisSettings
from edge.foundation.errors import Unavailable
from edge.foundation.instant import now_ms
from edge.model.job_state import Cause, JobState
from edge.sfc.signal import Phase
from edge.station.equipment import Command
from edge.store import runs
from edge.store.client import Store
from tests.station.plant import (
    TIGHTEN,
    FakeEquipment,
    Plant,
    action,
    instance,
    obliging,
    order,
    until_all_is_acknowledged,
    until_true,
)


async def test_command_that_raises_a_defect_in_the_equipment_fails_only_its_job(
    plant: Plant, tool: FakeEquipment
) -> None:
    def reply(command: Command) -> None:
        if command.job_id == "J1" and command.phase is Phase.START:
            raise ZeroDivisionError

    tool.replies = reply
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await plant.order(Cause.STORE_AND_START, order("J2"))
        failed = await plant.until_state("J1", JobState.ABORTED)
        tool.replies = obliging
        await plant.answer(next(command for command in tool.commands if command.job_id == "J2"))
        await plant.until_state("J2", JobState.ENDED)
        await until_all_is_acknowledged(plant)
    assert failed.error
    assert "cannot be sent: ZeroDivisionError" in str(failed.error)


async def test_disconnected_equipment_is_retried_with_growing_delays(plant: Plant, tool: FakeEquipment) -> None:
    tries: list[float] = []

    def away(_: Command) -> None:
        tries.append(time.monotonic())
        raise Unavailable("it is away")

    tool.replies = away
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await until_true(lambda: len(tries) == 4)
        tool.replies = obliging
        await plant.until_state("J1", JobState.ENDED)
    delays = [later - earlier for earlier, later in itertools.pairwise(tries)]
    assert all(delay > least for delay, least in zip(delays, (0.09, 0.19, 0.39), strict=True)), delays


async def test_disconnected_equipment_is_logged_once_for_a_command(plant: Plant, tool: FakeEquipment) -> None:
    tries: list[str] = []

    def away(command: Command) -> None:
        tries.append(command.command_id)
        raise Unavailable("it is away" if len(tries) < 3 else "it is not trusted")

    tool.replies = away
    with capture_logs() as reported:
        async with plant.at_work():
            await plant.order(Cause.STORE_AND_START, order("J1"))
            await until_true(lambda: len(tries) == 4)
    reasons = [entry["reason"] for entry in reported if entry["event"] == "command delayed"]
    assert reasons == ["it is away", "it is not trusted"]


async def test_reason_that_many_jobs_share_is_logged_once(plant: Plant, tool: FakeEquipment) -> None:
    """While the replicas did not confirm, each of 170 waiting jobs was a line."""
    tries: list[str] = []

    def away(command: Command) -> None:
        tries.append(command.command_id)
        raise Unavailable("0 of 1 replicas have confirmed within 1000 ms")

    tool.replies = away
    with capture_logs() as reported:
        async with plant.at_work():
            for number in range(5):
                await plant.order(Cause.STORE_AND_START, order(f"J{number}"))
            await until_true(lambda: len(set(tries)) == 5)
    assert len([entry for entry in reported if entry["event"] == "command delayed"]) == 1


async def test_ended_job_stays_active_until_its_last_stop_is_sent(plant: Plant, tool: FakeEquipment) -> None:
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await until_true(lambda: tool.received() == ["a"])
        tool.reachable = False
        await plant.ask(Cause.ABORT, "J1")
        assert await runs.active_jobs(plant.store) == ["J1"]
        tool.reachable = True
        await until_true(lambda: tool.received(Phase.STOP) == ["a"])
        await until_all_is_acknowledged(plant)
    assert await runs.active_jobs(plant.store) == []


async def test_unsent_stop_is_sent_by_the_next_process(plant: Plant, tool: FakeEquipment) -> None:
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await until_true(lambda: tool.received() == ["a"])
        tool.reachable = False
        await plant.ask(Cause.ABORT, "J1")
    tool.reachable = True
    again = Plant(plant.store, {"tighten.v1": tool}, plant.runs.clock)
    async with again.at_work():
        await until_true(lambda: tool.received(Phase.STOP) == ["a"])


class Overtaken(FakeEquipment):
    """Equipment at whose first stop the store says that all is sent: the last commit of a predecessor came late."""

    plant: Plant

    async def stop(self, command: Command) -> None:
        await super().stop(command)
        key = self.plant.store.keys.sfc_execution(command.job_id)
        await self.plant.store.execute("HDEL", key, f"outbox:{self.plant.store.consumer}")
        await self.plant.runs.load(command.job_id)


async def test_command_already_removed_from_the_outbox_is_skipped(store: Store) -> None:
    tool = Overtaken()
    plant = tool.plant = Plant(store, {TIGHTEN: tool}, now_ms)
    both = {
        "steps": [{"name": "one", "initial": True}],
        "actions": [action("a", "one"), action("b", "one")],
    }
    await plant.teach("both", both)
    with capture_logs() as logs:
        async with plant.at_work():
            await plant.order(Cause.STORE_AND_START, order("J1", "both"))
            await until_true(lambda: tool.received() == ["a", "b"])
            await plant.ask(Cause.ABORT, "J1")
            await until_true(lambda: tool.received(Phase.STOP))
            await until_all_is_acknowledged(plant)
    assert tool.received(Phase.STOP) == ["a"]
    assert [entry for entry in logs if entry["log_level"] == "error"] == []


async def test_all_uncertain_commits_are_checked_after_one_wait(
    redis: RedisSettings, plant: Plant, tool: FakeEquipment
) -> None:
    async with plant.at_work(), instance(redis, {TIGHTEN: tool}, plant.runs.clock) as unheard:
        for job_id in ("J1", "J2", "J3", "J4", "J5"):
            await unheard.order(Cause.STORE_AND_START, order(job_id))
        await until_true(lambda: tool.received() == ["a"] * 5)
        for command in tuple(tool.commands):
            # Decided under our name, and the reply that said so is lost.
            await unheard.answer(command)
            plant.runs.uncertain.put_nowait(command.job_id)
        async with asyncio.timeout(60):
            await until_true(lambda: tool.received().count("b") == 5)


async def test_command_that_another_reader_queued_first_is_offered_again(plant: Plant, tool: FakeEquipment) -> None:
    """The start of a gateway reads all runs before the sender: its commands are still those of an earlier process."""
    tool.reachable = False
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await until_true(lambda: plant.runs.outbox.unsent("J1"))
    tool.reachable = True
    again = Plant(plant.store, {"tighten.v1": tool}, plant.runs.clock)
    await again.runs.load("J1")
    async with again.at_work():
        await until_true(lambda: tool.received() == ["a"])
    assert [command.offered_again for command in tool.commands] == [True]


async def test_command_of_a_killed_process_is_offered_again(plant: Plant, tool: FakeEquipment) -> None:
    """The process that was killed may have sent it: equipment without a memory must not begin it."""
    tool.reachable = False
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await until_true(lambda: plant.runs.outbox.unsent("J1"))
    tool.reachable = True
    again = Plant(plant.store, {"tighten.v1": tool}, plant.runs.clock)
    async with again.at_work():
        await until_true(lambda: tool.received() == ["a"])
    assert [command.offered_again for command in tool.commands] == [True]

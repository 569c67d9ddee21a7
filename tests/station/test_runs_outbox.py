"""Tests of the outbox cache of an instance."""

import msgspec
from msgspec.structs import replace

from edge.sfc.signal import Phase
from edge.station.decision import LoadedJob
from edge.station.runs import OutboxCache
from edge.store.runs import Outgoing
from tests.station.plant import FakeEquipment, Plant
from tests.station.test_answers import started

START = Outgoing(Phase.START, "J1/R/a/1", "one", "tighten.v1")
STOP = Outgoing(Phase.STOP, "J1/R/a/1", "one", "tighten.v1")


async def loaded_job(plant: Plant) -> LoadedJob:
    await started(plant, "J1")
    loaded = await plant.runs.load("J1")
    assert loaded
    return loaded


def with_outbox(loaded: LoadedJob, *commands: Outgoing, later: int = 0) -> LoadedJob:
    stored_run = msgspec.structs.replace(loaded.stored, outbox=commands, revision=loaded.stored.revision + later)
    return replace(loaded, stored=stored_run)


async def test_new_commands_queue_their_job_once(plant: Plant, tool: FakeEquipment) -> None:
    outbox, loaded = OutboxCache(10), await loaded_job(plant)
    outbox.update(with_outbox(loaded, START))
    outbox.update(with_outbox(loaded, START, later=1))
    assert outbox.queue.qsize() == 1
    assert outbox.unsent("J1") == (START,)
    assert tool.commands


async def test_sent_command_stays_sent_when_the_run_is_reloaded(plant: Plant) -> None:
    outbox, loaded = OutboxCache(10), await loaded_job(plant)
    outbox.update(with_outbox(loaded, START))
    outbox.mark_sent("J1", START)
    outbox.update(with_outbox(loaded, START, STOP, later=1))
    assert outbox.unsent("J1") == (STOP,)
    assert outbox.has_sent("J1")


async def test_stops_stay_due_after_their_run_is_removed(plant: Plant) -> None:
    outbox, loaded = OutboxCache(10), await loaded_job(plant)
    outbox.update(with_outbox(loaded, START, STOP))
    outbox.drop_run("J1")
    assert outbox.unsent("J1") == (STOP,)
    outbox.mark_sent("J1", STOP)
    outbox.drop_run("J1")
    assert outbox.get("J1") is None


async def test_only_copies_without_commands_are_evicted(plant: Plant) -> None:
    outbox, loaded = OutboxCache(1), await loaded_job(plant)
    for number, commands in enumerate([(START,), (), ()]):
        job = msgspec.structs.replace(
            loaded.job, order=msgspec.structs.replace(loaded.job.order, job_order_id=f"J{number}")
        )
        outbox.update(replace(with_outbox(loaded, *commands), job=job))
    assert [bool(outbox.get(f"J{number}")) for number in range(3)] == [True, False, False]

"""Work that meets a defect repeatedly becomes a dead letter and fails its job; no other work is affected."""

from collections.abc import MutableMapping
from typing import Any

import pytest
from structlog.testing import capture_logs

from edge.foundation.backoff import MOST_TRIES
from edge.model.job_state import Cause, JobState
from edge.sfc.signal import Phase
from edge.station.equipment import Command, EquipmentAnswer
from edge.store import dead_letters, runs, work
from edge.store.dead_letters import Letter, LetterKind
from edge.store.work import WorkKind
from tests.station.plant import (
    NOW,
    SCOPE,
    FakeEquipment,
    Plant,
    linear,
    next_work,
    obliging,
    order,
    pull,
    until,
    until_all_is_acknowledged,
    until_true,
)


def _fields_of(event: str, logs: list[MutableMapping[str, Any]]) -> set[str]:
    """Return the names of the fields of every log entry of an event."""
    return {name for entry in logs if entry["event"] == event for name in entry}


async def letters(plant: Plant) -> list[Letter]:
    return list((await dead_letters.load_all(plant.store)).values())


async def the_letter(plant: Plant) -> Letter:
    async def is_there() -> bool:
        return bool(await letters(plant))

    await until(is_there)
    (letter,) = await letters(plant)
    return letter


async def test_start_with_a_defect_becomes_a_dead_letter_after_retries(plant: Plant, tool: FakeEquipment) -> None:
    tool.replies = obliging
    await plant.order(Cause.STORE_AND_START, order("J1"))
    await plant.store.execute("HSET", plant.store.keys.workmaster("linear"), f"scope:{SCOPE}", "{")
    async with plant.at_work():
        job = await plant.until_state("J1", JobState.ABORTED)
        await until_all_is_acknowledged(plant)
    letter = await the_letter(plant)
    assert (letter.kind, letter.scope, letter.job_id, letter.at) == (LetterKind.START, SCOPE, "J1", NOW)
    assert str(letter.reason) == str(job.error) == "its start met a defect of this software: DecodeError"


async def test_start_with_a_temporary_defect_succeeds(plant: Plant, tool: FakeEquipment) -> None:
    tool.replies = obliging
    key = plant.store.keys.workmaster("linear")
    master = await plant.store.execute("HGET", key, f"scope:{SCOPE}")
    await plant.order(Cause.STORE_AND_START, order("J1"))
    await plant.store.execute("HSET", key, f"scope:{SCOPE}", "{")
    async with plant.at_work():
        await plant.store.execute("HSET", key, f"scope:{SCOPE}", master)
        await plant.until_state("J1", JobState.ENDED)
    assert await letters(plant) == []


async def test_work_of_an_unreadable_job_does_not_block_later_work(plant: Plant, tool: FakeEquipment) -> None:
    tool.replies = obliging
    await plant.order(Cause.STORE_AND_START, order("J1"))
    await plant.store.execute("HSET", plant.store.keys.joborder("J1"), "state", "NO_STATE")
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J2"))
        letter = await the_letter(plant)
        await until_all_is_acknowledged(plant)
    assert letter.kind is LetterKind.START
    assert "KeyError" in str(letter.reason)


async def leave_a_decision(plant: Plant, tool: FakeEquipment) -> None:
    """Start a job, and add a work entry as for a decision of the command line."""
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await until_true(lambda: tool.received() == ["a"])
        await until_all_is_acknowledged(plant)
    entry = ("job_id", "J1", "action", "send", "scope", SCOPE)
    await plant.store.execute("XADD", plant.store.keys.sfc_work(SCOPE), "*", *entry)


async def test_decision_of_a_store_client_that_cannot_be_adopted_fails_its_job(
    plant: Plant, tool: FakeEquipment
) -> None:
    await leave_a_decision(plant, tool)
    await plant.store.execute("HSET", plant.store.keys.sfc_execution("J1"), "outbox:", "{")
    async with plant.at_work():
        job = await plant.until_state("J1", JobState.ABORTED)
        letter = await the_letter(plant)
        await until_true(lambda: tool.received(Phase.STOP) == ["a"])
        await until_all_is_acknowledged(plant)
    assert (letter.kind, str(letter.reason)) == (LetterKind.DECISION, str(job.error))


async def test_job_with_an_unreadable_run_is_aborted(plant: Plant, tool: FakeEquipment) -> None:
    await leave_a_decision(plant, tool)
    await plant.store.execute("HSET", plant.store.keys.sfc_execution("J1"), "recipe", '{"steps": []}')
    plant.runs.invalidate("J1")
    async with plant.at_work():
        job = await plant.until_state("J1", JobState.ABORTED)
        letter = await the_letter(plant)
        await until_all_is_acknowledged(plant)
    assert (letter.kind, str(letter.reason)) == (LetterKind.DECISION, str(job.error))
    assert await runs.active_jobs(plant.store) == []


async def test_command_of_an_unreadable_run_does_not_block_other_jobs(plant: Plant, tool: FakeEquipment) -> None:
    tool.replies = obliging
    await plant.order(Cause.STORE_AND_START, order("J1"))
    await plant.starter.start(await next_work(plant))
    await plant.store.execute("HSET", plant.store.keys.sfc_execution("J1"), "recipe", '{"steps": []}')
    plant.runs.invalidate("J1")
    async with plant.at_work():
        await plant.until_state("J1", JobState.ABORTED)
        await plant.order(Cause.STORE_AND_START, order("J2"))
        await plant.until_state("J2", JobState.ENDED)
    assert (await the_letter(plant)).kind is LetterKind.COMMAND


@pytest.mark.parametrize("phase", [Phase.START, Phase.STOP])
async def test_unsendable_command_becomes_a_dead_letter_after_retries(
    plant: Plant, tool: FakeEquipment, phase: Phase
) -> None:
    tried: list[Command] = []

    def reply(command: Command) -> None:
        if command.phase is phase:
            tried.append(command)
            raise ZeroDivisionError

    tool.replies = reply
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await until_true(lambda: bool(tool.commands))
        if phase is Phase.STOP:
            await plant.ask(Cause.ABORT, "J1")
        await plant.until_state("J1", JobState.ABORTED)
        letter = await the_letter(plant)
        await until_all_is_acknowledged(plant)
    assert letter.kind is LetterKind.COMMAND
    assert str(letter.reason) == "cannot be sent: ZeroDivisionError: "
    assert letter.details == {
        "phase": phase.value,
        "command_id": tried[0].command_id,
        "step": "one",
        "type_id": "tighten.v1",
    }
    assert len(tried) == MOST_TRIES


async def test_unreadable_job_at_the_head_of_the_queue_blocks_no_other(plant: Plant, tool: FakeEquipment) -> None:
    tool.replies = obliging
    await plant.order(Cause.STORE_AND_START, order("J1"))
    await plant.store.execute("HSET", plant.store.keys.joborder("J1"), "order", "{")
    # The entry that it caused has served another: those of others meet it at the head of the queue.
    entry = await next_work(plant)
    await plant.store.commit(work.acknowledge(plant.store.keys, SCOPE, [entry.entry_id]))
    async with plant.at_work():
        for job_id in ("J2", "J3", "J4"):
            await plant.order(Cause.STORE_AND_START, order(job_id))
        for job_id in ("J2", "J3", "J4"):
            await plant.until_state(job_id, JobState.ENDED)
        await until_all_is_acknowledged(plant)
    letter = await the_letter(plant)
    assert (letter.kind, letter.job_id) == (LetterKind.START, "J1")
    assert await plant.store.execute("ZCARD", plant.store.keys.joborder_startable(SCOPE)) == 0


async def test_failed_job_accepts_no_event_of_waiting_jobs(plant: Plant) -> None:
    await plant.teach("waiting", linear(pull("scan", "one")))
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1", "waiting"))
        await plant.until_state("J1", JobState.RUNNING)
        await plant.store.execute("HSET", plant.store.keys.sfc_execution("J1"), "recipe", "{", "outbox:", "{")
        plant.runs.invalidate("J1")
        await plant.store.commit(work.add(plant.store.keys, SCOPE, WorkKind.SEND, "J1"))
        await plant.until_state("J1", JobState.ABORTED)
        await plant.order(Cause.STORE_AND_START, order("J2", "waiting"))
        await plant.until_state("J2", JobState.RUNNING)
        task = await plant.happens()
    assert task
    assert task.job_id == "J2"


async def test_unwritable_dead_letter_does_not_block_other_jobs(plant: Plant, tool: FakeEquipment) -> None:
    def reply(command: Command) -> EquipmentAnswer | None:
        if command.job_id == "J1":
            raise ZeroDivisionError
        return obliging(command)

    tool.replies = reply
    letters_key = plant.store.keys.sfc_dead_letters()
    await plant.store.execute("SET", letters_key, "something else")
    with capture_logs() as logs:
        async with plant.at_work():
            await plant.order(Cause.STORE_AND_START, order("J1"))
            await plant.store.execute("XADD", plant.store.keys.sfc_work(SCOPE), "*", "action", "dance")
            await until_true(lambda: {"entry", "command"} <= _fields_of("dead letter not written", logs))
            await plant.order(Cause.STORE_AND_START, order("J2"))
            await plant.until_state("J2", JobState.ENDED)
            await plant.store.execute("DEL", letters_key)
            await plant.until_state("J1", JobState.ABORTED)
            await until_all_is_acknowledged(plant)

"""Dead letters are retried on request of an operator, completely or not at all."""

import msgspec
import pytest

from edge.config import RedisSettings
from edge.foundation.errors import Refused
from edge.model.job_state import Cause, JobState
from edge.sfc.signal import Phase
from edge.station.equipment import Command
from edge.station.manual_retry import resend, retry_letter
from edge.store import dead_letters
from edge.store import stream_of_samples as telemetry
from edge.store.dead_letters import Letter, LetterKind
from edge.store.open_store import open_store
from edge.store.reads import Entry, entries
from tests.station.plant import (
    NOW,
    SCOPE,
    Clock,
    FakeEquipment,
    Plant,
    obliging,
    order,
    until_all_is_acknowledged,
    until_true,
)
from tests.station.test_answers import started

START = Letter(LetterKind.START, SCOPE, "J1", "a defect", NOW)


async def set_aside(plant: Plant, letter: Letter) -> str:
    await plant.store.commit(dead_letters.add(plant.store.keys, letter, 60_000))
    return list(await dead_letters.load_all(plant.store))[-1]


@pytest.mark.parametrize("kind", [LetterKind.START, LetterKind.DECISION, LetterKind.DEADLINE, LetterKind.COMMAND])
async def test_retried_job_starts_again_with_new_command_ids(
    plant: Plant, tool: FakeEquipment, clock: Clock, kind: LetterKind
) -> None:
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1", priority=7))
        await until_true(lambda: tool.received() == ["a"])
        await plant.ask(Cause.ABORT, "J1")
        tool.replies = obliging
        failed = await plant.job("J1")
        letter = msgspec.structs.replace(START, kind=kind, details={"phase": "start"} if kind == "command" else {})
        letter_id = await set_aside(plant, letter)
        clock.now += 1000
        await retry_letter(plant.store, letter_id, letter, clock)
        job = await plant.until_state("J1", JobState.ENDED)
        await until_all_is_acknowledged(plant)
    assert (job.order, job.started_at, job.error) == (failed.order, clock.now, None)
    assert job.correlation_id != failed.correlation_id
    assert await plant.store.execute("EXISTS", plant.store.keys.jobresponse(failed.correlation_id)) == 0
    starts = [command.command_id for command in tool.commands if command.phase is Phase.START]
    assert len(set(starts)) == 3
    assert await dead_letters.load_all(plant.store) == {}


async def test_retry_of_an_open_or_removed_job_is_refused(plant: Plant, clock: Clock) -> None:
    letter_id = await set_aside(plant, START)
    with pytest.raises(Refused, match="not stored any more"):
        await retry_letter(plant.store, letter_id, START, clock)
    await plant.order(Cause.STORE, order("J1"))
    with pytest.raises(Refused, match="has not ended"):
        await retry_letter(plant.store, letter_id, START, clock)
    assert await dead_letters.load_all(plant.store) == {letter_id: START}


@pytest.mark.parametrize(
    ("token", "is_refused"), [("Bearer abc123def456ghi789jkl", True), ("*** no secret ***", False)]
)
async def test_retry_of_an_entry_with_hidden_secrets_is_refused(plant: Plant, token: str, *, is_refused: bool) -> None:
    details = {"kind": "equipment", "job_id": "J1", "data": token}
    letter = Letter(LetterKind.UNREADABLE, SCOPE, "J1", "it cannot be read", NOW, details)
    letter_id = await set_aside(plant, letter)
    stored = (await dead_letters.load_all(plant.store))[letter_id]
    assert stored.is_redacted == is_refused
    if not is_refused:
        await retry_letter(plant.store, letter_id, stored, lambda: NOW)
        return
    with pytest.raises(Refused, match=r"hidden by \*\*\*"):
        await retry_letter(plant.store, letter_id, stored, lambda: NOW)
    assert await dead_letters.load_all(plant.store) == {letter_id: stored}
    assert await plant.store.execute("XLEN", plant.store.keys.sfc_work(SCOPE)) == 0


async def test_retry_of_samples_with_hidden_secrets_is_refused(plant: Plant) -> None:
    entry = Entry("1-0", {"producer": "p", "0": '{"at":1,"tag":"line.token","value":"Bearer abc123def456ghi789jkl"}'})
    await plant.store.commit(telemetry.dead_letter(plant.store.keys, entry, "a defect", NOW))
    ((letter_id, letter),) = (await dead_letters.load_all(plant.store)).items()
    with pytest.raises(Refused, match=r"hidden by \*\*\*"):
        await retry_letter(plant.store, letter_id, letter, lambda: NOW)
    assert await plant.store.execute("XLEN", plant.store.keys.telemetry()) == 0


async def test_retried_stop_is_sent_although_its_job_has_ended(plant: Plant, tool: FakeEquipment, clock: Clock) -> None:
    def reply(command: Command) -> None:
        if command.phase is Phase.STOP:
            raise ZeroDivisionError

    tool.replies = reply
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await until_true(lambda: tool.received() == ["a"])
        await plant.ask(Cause.ABORT, "J1")
        await until_all_is_acknowledged(plant)
        ((letter_id, letter),) = (await dead_letters.load_all(plant.store)).items()
        tool.replies = obliging
        tool.commands.clear()
        await retry_letter(plant.store, letter_id, letter, clock)
        await until_true(lambda: tool.received(Phase.STOP) == ["a"])
        await until_all_is_acknowledged(plant)
        assert tool.commands[0].command_id == letter.details["command_id"]
        assert await dead_letters.load_all(plant.store) == {}
        await plant.ask(Cause.CLEAR, "J1")
    with pytest.raises(Refused, match="not stored any more"):
        await retry_letter(plant.store, letter_id, letter, clock)


async def test_retried_unreadable_entry_returns_to_the_work_stream(plant: Plant, clock: Clock) -> None:
    letter = msgspec.structs.replace(START, kind=LetterKind.UNREADABLE, details={"action": "dance", "job_id": "J1"})
    await retry_letter(plant.store, await set_aside(plant, letter), letter, clock)
    (entered,) = entries(await plant.store.execute("XRANGE", plant.store.keys.sfc_work(SCOPE), "-", "+"))
    assert entered.fields == letter.details
    nothing = msgspec.structs.replace(letter, details={})
    with pytest.raises(Refused, match="nothing is known"):
        await retry_letter(plant.store, await set_aside(plant, nothing), nothing, clock)


async def test_lost_command_is_sent_again_under_its_id(
    plant: Plant, tool: FakeEquipment, redis: RedisSettings, clock: Clock
) -> None:
    await started(plant, "J1")
    async with open_store(redis, None) as store, plant.at_work():
        assert await resend(Plant(store, {}, clock).runs, "J1") == 1
        await until_true(lambda: len(tool.commands) == 2)
    first, again = tool.commands
    assert (again.command_id, first.offered_again, again.offered_again) == (first.command_id, False, True)


async def test_resend_of_a_job_that_does_not_run_is_refused(plant: Plant) -> None:
    with pytest.raises(Refused):
        await resend(plant.runs, "J1")

"""Tests of begun marks, unknown outcomes and late results as equipment reports them."""

import asyncio

import pytest
from msgspec.structs import replace

from edge.config import RedisSettings
from edge.foundation.errors import Unavailable
from edge.model.action_attempt import ATTEMPTS_ID
from edge.model.job_state import Cause, JobState
from edge.sfc.signal import Begun
from edge.station.answers import Answers
from edge.station.equipment import Begin, EquipmentAnswer, LateResult, NotSent, OutcomeUnknown
from edge.station.response import UNKNOWN_ID
from edge.station.runs import Runs
from edge.store import dead_letters, responses
from edge.store.dead_letters import LetterKind
from edge.store.lease_watch import LIFETIME_S, OwnLease
from tests.station.plant import DEDUPE_MS, KEEP_ENDED_MS, NOW, SCOPE, TIGHTEN, Clock, FakeEquipment, Plant, instance
from tests.station.test_answers import started
from tests.store.losing_store import LosingStore, Loss


async def test_late_result_is_stored_with_its_job_and_as_a_dead_letter(plant: Plant, tool: FakeEquipment) -> None:
    await started(plant, "J1")
    await plant.ask(Cause.ABORT, "J1")
    for _ in range(2):
        await plant.answer(tool.commands[0], {"torque": 85})
    (letter,) = (await dead_letters.load_all(plant.store)).values()
    assert (letter.kind, letter.job_id, letter.details["data"]) == (LetterKind.LATE, "J1", '{"torque":85}')
    response = await responses.load(plant.store, await plant.job("J1"))
    (attempts,) = [
        parameter for parameter in (response and response.job_response_data) or () if parameter.id == ATTEMPTS_ID
    ]
    every = attempts.subparameters or ()
    late = [parameter.id for parameter in every if any(one.id == "late" for one in parameter.subparameters or ())]
    assert late == ["a/1"]
    assert (plant.answers.stats.late, plant.answers.stats.ignored) == (1, 1)


async def test_late_result_of_a_removed_job_is_stored_as_a_dead_letter(plant: Plant, tool: FakeEquipment) -> None:
    await started(plant, "J1")
    await plant.ask(Cause.ABORT, "J1")
    await plant.ask(Cause.CLEAR, "J1")
    await plant.answer(tool.commands[0], {"torque": 85})
    (letter,) = (await dead_letters.load_all(plant.store)).values()
    assert letter.details["command_id"] == tool.commands[0].command_id


async def test_late_result_of_a_removed_job_is_for_the_scope_of_the_gateway(plant: Plant, tool: FakeEquipment) -> None:
    """It had no scope, thus the MES got no event."""
    await started(plant, "J1")
    await plant.ask(Cause.ABORT, "J1")
    await plant.ask(Cause.CLEAR, "J1")
    answers = Answers(plant.store, plant.runs, DEDUPE_MS, scope=SCOPE)
    await answers.answer(EquipmentAnswer(tool.commands[0].command_id, {"torque": 85}))
    (letter,) = (await dead_letters.load_all(plant.store)).values()
    assert letter.scope == SCOPE


async def test_result_that_is_stored_is_known_by_its_id(plant: Plant, tool: FakeEquipment) -> None:
    """A second gateway that gets the same event of a device finds it; a late one counts as well."""
    await started(plant, "J1", "J2")
    answered, stopped = [command.command_id for command in tool.commands[:2]]
    await plant.answer(tool.commands[0], {"result_id": "N2", "results": {"1": {"result_id": "N1"}}})
    assert [await plant.answers.has_result(answered, text) for text in ("N1", "N2", "N3")] == [True, True, False]
    assert not await plant.answers.has_result(stopped, "N4")
    await plant.ask(Cause.ABORT, "J2")
    await plant.answer(tool.commands[1], {"result_id": "N4"})
    assert await plant.answers.has_result(stopped, "N4")
    assert not await plant.answers.has_result("of nobody", "N4")


async def test_unsolicited_result_is_kept_once(plant: Plant) -> None:
    result = LateResult("/tool", "result-7", SCOPE, {"torque": 85}, created_at=NOW)
    await plant.answers.late(result)
    await plant.answers.late(result)
    (letter,) = (await dead_letters.load_all(plant.store)).values()
    assert (letter.scope, letter.details["key"], letter.details["created_at"]) == (SCOPE, "result-7", str(NOW))


async def test_late_report_of_a_waiting_command_is_its_answer(plant: Plant, tool: FakeEquipment) -> None:
    await started(plant, "J1")
    await plant.answers.late(LateResult("/tool", "7", SCOPE, {"torque": 85}, tool.commands[0].command_id))
    assert await dead_letters.load_all(plant.store) == {}
    loaded = await plant.runs.load("J1")
    assert loaded
    assert loaded.stored.run.variables == {"torque": 85}


async def test_begun_mark_is_committed_once_before_the_start(plant: Plant, redis: RedisSettings, clock: Clock) -> None:
    await started(plant, "J1")
    (command,) = await plant.answers.outstanding((SCOPE,), (TIGHTEN,))
    assert await plant.answers.begin(command.command_id) is Begin.NEW
    assert await plant.answers.begin(command.command_id) is Begin.AGAIN
    (again,) = await plant.answers.outstanding((SCOPE,), (TIGHTEN,))
    assert (again.begun, again.offered_again) == (True, True)
    async with instance(redis, {}, clock) as restarted:
        assert await restarted.answers.begin(command.command_id) is Begin.AGAIN


async def test_begun_mark_of_a_former_generation_may_have_lost_its_answer(plant: Plant, tool: FakeEquipment) -> None:
    await started(plant, "J1")
    command = tool.commands[0].command_id
    begins = []
    for generation in ("g1", "g1", "g2"):
        plant.store.keys = replace(plant.store.keys, generation_id=generation)
        answers = Answers(plant.store, plant.runs, DEDUPE_MS)
        begins.append(await answers.begin(command))
    assert begins == [Begin.NEW, Begin.AGAIN, Begin.LOST]


async def test_begun_mark_with_an_unconfirmed_commit_allows_the_start(plant: Plant, tool: FakeEquipment) -> None:
    await started(plant, "J1")
    command = tool.commands[0].command_id
    losing = LosingStore(plant.store, [Loss.REPLY])
    answers = Answers(losing, Runs(losing, plant.runs.clock, KEEP_ENDED_MS), DEDUPE_MS)
    with pytest.raises(Unavailable):
        await answers.begin(command)
    assert await answers.begin(command) is Begin.NEW
    assert await answers.begin(command) is Begin.AGAIN


class UnconfirmedStore(LosingStore):
    """A store whose replicas do not confirm a begun mark."""

    async def settle_start(self) -> None:
        """Raise Unavailable, as when no replica has confirmed in time."""
        raise Unavailable("0 of 1 replicas have confirmed within 1000 ms")


async def test_start_that_was_held_back_is_sent_after_a_failover(plant: Plant, tool: FakeEquipment) -> None:
    """Its mark had reached the new primary: the outcome was unknown, although this gateway had sent nothing."""
    await started(plant, "J1")
    command = tool.commands[0].command_id
    plant.store.keys = replace(plant.store.keys, generation_id="g1")
    with pytest.raises(NotSent):
        await Answers(UnconfirmedStore(plant.store, ()), plant.runs, DEDUPE_MS).begin(command)
    (open_command,) = await plant.answers.outstanding((SCOPE,), (TIGHTEN,))
    assert not open_command.begun
    plant.store.keys = replace(plant.store.keys, generation_id="g2")
    answers = Answers(plant.store, plant.runs, DEDUPE_MS)
    assert [await answers.begin(command) for _ in range(2)] == [Begin.NEW, Begin.LOST]
    (open_command,) = await answers.outstanding((SCOPE,), (TIGHTEN,))
    assert open_command.begun


@pytest.mark.damaged_runs
async def test_start_whose_mark_was_lost_with_the_primary_is_not_sent_again(plant: Plant, tool: FakeEquipment) -> None:
    """Two partitions half a minute apart took the store back: 28 bolts were tightened twice under the same ids."""
    await started(plant, "J1")
    command = tool.commands[0].command_id
    plant.store.keys = replace(plant.store.keys, generation_id="g1")
    key = plant.store.keys.sfc_execution("J1")
    before = dict(await plant.store.execute("HGETALL", key))
    assert await Answers(plant.store, plant.runs, DEDUPE_MS).begin(command) is Begin.NEW
    await plant.store.execute("DEL", key)
    await plant.store.execute("HSET", key, *(text for pair in before.items() for text in pair))
    plant.runs.invalidate("J1")
    plant.store.keys = replace(plant.store.keys, generation_id="g2")
    # Also once its new mark is committed, and no replica had confirmed that.
    with pytest.raises(NotSent):
        await Answers(UnconfirmedStore(plant.store, ()), plant.runs, DEDUPE_MS).begin(command)
    assert await Answers(plant.store, plant.runs, DEDUPE_MS).begin(command) is Begin.LOST


async def test_start_that_was_permitted_and_withheld_is_sent_after_a_failover(
    plant: Plant, tool: FakeEquipment
) -> None:
    await started(plant, "J1")
    command, begins = tool.commands[0].command_id, []
    for generation in ("g1", "g2"):
        plant.store.keys = replace(plant.store.keys, generation_id=generation)
        answers = Answers(plant.store, plant.runs, DEDUPE_MS)
        begins.append(await answers.begin(command))
        if generation == "g1":
            answers.withhold(command)
    assert begins == [Begin.NEW, Begin.NEW]


async def test_start_of_another_process_may_have_left(plant: Plant, tool: FakeEquipment) -> None:
    """Only the process that has marked a start knows that it has not sent it."""
    await started(plant, "J1")
    command = tool.commands[0].command_id
    await plant.runs.signal("J1", Begun(command, "/another process"))
    plant.runs.own_starts.hold(command)
    assert await plant.answers.begin(command) is Begin.AGAIN


async def test_held_start_whose_outcome_became_unknown_is_not_sent(plant: Plant, tool: FakeEquipment) -> None:
    """Another gateway took over while this one was frozen, and a person decides."""
    await started(plant, "J1")
    command = tool.commands[0].command_id
    with pytest.raises(NotSent):
        await Answers(UnconfirmedStore(plant.store, ()), plant.runs, DEDUPE_MS).begin(command)
    await plant.answers.answer(OutcomeUnknown(command, "no answer"))
    assert await plant.answers.begin(command) is Begin.AGAIN


class FrozenStore(LosingStore):
    """A store at which the process stands still, until another gateway may have taken over."""

    seconds = 0.0

    async def settle_start(self) -> None:
        """Advance the clock."""
        self.seconds += LIFETIME_S


async def test_start_is_not_sent_by_a_process_that_stood_still(plant: Plant, tool: FakeEquipment) -> None:
    """Another gateway had taken over, a person had the start repeated, and the bolt was tightened twice."""
    await started(plant, "J1")
    command, store = tool.commands[0].command_id, FrozenStore(plant.store, ())
    store.own_lease = OwnLease(lambda: store.seconds)
    with pytest.raises(NotSent, match="stood still for 4 s"):
        await Answers(store, plant.runs, DEDUPE_MS).begin(command)
    assert await plant.answers.begin(command) is Begin.NEW


async def test_two_calls_at_once_release_a_start_once(plant: Plant, tool: FakeEquipment) -> None:
    await started(plant, "J1")
    command = tool.commands[0].command_id
    begins = await asyncio.gather(plant.answers.begin(command), plant.answers.begin(command))
    assert sorted(begin.name for begin in begins) == ["AGAIN", "NEW"]


async def test_begin_of_a_stopped_command_is_refused(plant: Plant, tool: FakeEquipment) -> None:
    await started(plant, "J1")
    await plant.ask(Cause.ABORT, "J1")
    assert await plant.answers.begin(tool.commands[0].command_id) is Begin.GONE
    assert await plant.answers.begin("nonsense") is Begin.GONE


async def test_unknown_outcome_is_counted_and_shown_in_the_response(plant: Plant, tool: FakeEquipment) -> None:
    await started(plant, "J1")
    await plant.answers.answer(OutcomeUnknown(tool.commands[0].command_id, "the controller was replaced"))
    assert plant.answers.stats.unknown == 1
    job = await plant.job("J1")
    assert job.status.state is JobState.RUNNING
    response = await responses.load(plant.store, job)
    (unknown,) = [
        parameter for parameter in (response and response.job_response_data) or () if parameter.id == UNKNOWN_ID
    ]
    (reason,) = unknown.subparameters or ()
    assert (reason.id, reason.value) == ("a", "outcome unknown: the controller was replaced")


async def test_result_that_does_not_count_is_late_and_its_command_waits(plant: Plant, tool: FakeEquipment) -> None:
    """It was listed without its job, and only the log had the reason."""
    await started(plant, "J1")
    command_id, reason = tool.commands[0].command_id, "its program is not the commanded one"
    await plant.answers.late(LateResult("/tool", "7", SCOPE, {"torque": 85}, command_id, reason=reason))
    (letter,) = (await dead_letters.load_all(plant.store)).values()
    assert (letter.job_id, letter.reason, letter.details["command_id"]) == ("J1", reason, command_id)
    assert await plant.answers.is_outstanding(command_id)
    assert (str(plant.answers.stats.last_late), plant.answers.stats.late) == (f"7: {reason}", 1)

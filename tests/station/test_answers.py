"""Answers and events reach their run exactly once, at any instance."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from edge.config import RedisSettings
from edge.model.isa95 import Parameter
from edge.model.job_state import Cause, JobState
from edge.sfc.run import ActionState
from edge.sfc.signal import Answer, Ignored, Signal, Unknown
from edge.station.answers import (
    Answers,
    begun_again,
    error_of,
    holds_result,
    is_result,
    signal_of,
)
from edge.station.decision import Decision, MethodRequest, NotAllowed
from edge.station.equipment import Begin, EquipmentAnswer, EquipmentEvent, Kept, OutcomeUnknown, Task
from edge.station.own_starts import OwnStarts
from edge.station.runs import NoRun, Runs
from edge.store import jobs, responses, runs
from edge.store.commit import Commit, Stale
from tests.station.plant import (
    DEDUPE_MS,
    KEEP_ENDED_MS,
    SCOPE,
    TIGHTEN,
    Clock,
    FakeEquipment,
    Plant,
    action,
    instance,
    linear,
    obliging,
    order,
    pull,
    results_of,
    until_true,
)

SCANNING = linear(pull("s", "one", parameters={"bolt": 1}), pull("t", "two"), action("a", "three"))


async def started(plant: Plant, *job_ids: str, master: str = "linear") -> None:
    """Start jobs one after the other, each a second after the one before, and send what they send."""
    for job_id in job_ids:
        await plant.order(Cause.STORE_AND_START, order(job_id, master))
        await plant.drive()
        assert isinstance(plant.runs.clock, Clock)
        plant.runs.clock.now += 1000


async def scanned(plant: Plant, job_id: str) -> list[str]:
    """Name the waits of a job that are over."""
    stored_run = await runs.load(plant.store, job_id)
    assert stored_run
    associations = stored_run.run.associations.values()
    return [
        association.action
        for association in associations
        if association.event_id and association.state is ActionState.COMPLETED
    ]


async def revision(plant: Plant, job_id: str = "J1") -> int:
    stored_run = await runs.load(plant.store, job_id)
    assert stored_run
    return stored_run.revision


async def test_answer_received_by_another_instance_advances_the_run(
    redis: RedisSettings, plant: Plant, tool: FakeEquipment, clock: Clock
) -> None:
    await started(plant, "J1")
    async with instance(redis, {TIGHTEN: tool}, clock, consumer="other") as other, other.at_work():
        await other.answer(tool.commands[0])
        await until_true(lambda: tool.received() == ["a", "b"])
    async with plant.at_work():
        await plant.answer(tool.commands[1])
        await plant.until_state("J1", JobState.ENDED)


async def test_two_instances_that_get_the_same_answer_have_one_effect(
    redis: RedisSettings, plant: Plant, tool: FakeEquipment, clock: Clock
) -> None:
    await started(plant, "J1")
    async with instance(redis, {TIGHTEN: tool}, clock, consumer="other") as other:
        await asyncio.gather(*(item.answer(tool.commands[0]) for item in (plant, other) * 5))
        async with plant.at_work(), other.at_work():
            await until_true(lambda: len(tool.received()) > 1)
    assert tool.received() == ["a", "b"]


async def test_concurrent_answers_of_one_run_at_two_instances_are_all_applied(
    redis: RedisSettings, plant: Plant, tool: FakeEquipment, clock: Clock
) -> None:
    paths = [[f"s{number}"] for number in range(8)]
    wide = {
        "steps": [{"name": "begin", "initial": True}, *({"name": path[0]} for path in paths), {"name": "end"}],
        "branches": [{"name": "all", "type": "simultaneous", "branches": paths}],
        "transitions": [
            {"source": "begin", "target": "all", "condition": "true"},
            {"source": "all", "target": "end", "condition": "true"},
        ],
        "actions": [action(f"a{number}", f"s{number}") for number in range(8)],
    }
    await plant.teach("wide", wide)
    async with plant.at_work(), instance(redis, {TIGHTEN: tool}, clock, consumer="other") as other:
        await plant.order(Cause.STORE_AND_START, order("J1", "wide"))
        await until_true(lambda: len(tool.commands) == 8)
        callers = (plant, other)
        await asyncio.gather(
            *(callers[number % 2].answer(command, {str(number): 1}) for number, command in enumerate(tool.commands))
        )
        job = await plant.until_state("J1", JobState.ENDED)
    response = await responses.load(plant.store, job)
    assert response
    assert len(results_of(response)) == 8


async def test_a_duplicate_answer_changes_nothing(plant: Plant, tool: FakeEquipment) -> None:
    await started(plant, "J1")
    await plant.answer(tool.commands[0], {"torque": 1})
    before = await revision(plant)
    await plant.answer(tool.commands[0], {"torque": 1})
    await plant.answer(tool.commands[0], error="failed after all")
    assert await revision(plant) == before


async def test_different_second_result_is_stored_without_effect(plant: Plant, tool: FakeEquipment) -> None:
    await started(plant, "J1")
    await plant.answer(tool.commands[0], {"torque": 1})
    await plant.answer(tool.commands[0], {"torque": 2})
    loaded = await plant.runs.load("J1")
    assert loaded
    assert (loaded.stored.run.variables, plant.answers.stats.late) == ({"torque": 1}, 1)


async def test_a_late_answer_changes_nothing(plant: Plant, tool: FakeEquipment) -> None:
    await started(plant, "J1")
    await plant.ask(Cause.ABORT, "J1")
    before = (await revision(plant), await plant.job("J1"))
    await plant.answer(tool.commands[0])
    assert (await revision(plant), await plant.job("J1")) == before


@pytest.mark.parametrize(
    "command_id",
    [
        "",
        "x",
        "J1",
        "J1/r/a/1",
        "J9/r/a/1",
        "J1/{run}/a/2",
        "J1/{run}/b/1",
        "J1/{run}/nothing/1",
        "list:station-1/r/a/1",
    ],
)
async def test_an_answer_to_a_command_that_was_never_sent_changes_nothing(plant: Plant, command_id: str) -> None:
    await started(plant, "J1")
    job = await plant.job("J1")
    before = await revision(plant)
    await plant.answers.answer(EquipmentAnswer(command_id.format(run=job.correlation_id)))
    assert await revision(plant) == before


async def test_answer_to_a_removed_job_changes_nothing(plant: Plant, tool: FakeEquipment) -> None:
    await started(plant, "J1")
    await plant.ask(Cause.ABORT, "J1")
    await plant.ask(Cause.CLEAR, "J1")
    await plant.answer(tool.commands[0])
    assert await jobs.load(plant.store, "J1") is None


async def test_cached_run_is_not_used_for_a_later_job_of_the_same_id(
    redis: RedisSettings, plant: Plant, tool: FakeEquipment, clock: Clock
) -> None:
    await started(plant, "J1")
    async with instance(redis, {TIGHTEN: tool}, clock, consumer="other") as other:
        await other.runs.load("J1")
        await plant.ask(Cause.ABORT, "J1")
        await plant.ask(Cause.CLEAR, "J1")
        await plant.teach("linear", linear(action("x", "new")))
        await started(plant, "J1")
        assert (await other.ask(Cause.ABORT, "J1")).status == 1
    stored_run = await runs.load(plant.store, "J1")
    assert stored_run
    assert set(stored_run.run.steps) == {"new"}
    assert [association.state for association in stored_run.run.associations.values()] == [ActionState.STOPPED]


async def test_event_without_a_job_goes_to_the_longest_waiting_job(plant: Plant) -> None:
    await plant.teach("scan", SCANNING)
    await started(plant, "J2", "J1", "J3", master="scan")
    assert await plant.happens() == Task("J2", "s", {"bolt": 1})
    assert [await scanned(plant, text) for text in ("J1", "J2", "J3")] == [[], ["s"], []]
    assert await plant.happens() == Task("J1", "s", {"bolt": 1})


async def test_event_with_a_job_id_goes_to_its_job(plant: Plant) -> None:
    await plant.teach("scan", SCANNING)
    await started(plant, "J1", "J2", master="scan")
    assert await plant.happens(job_id="J2") == Task("J2", "s", {"bolt": 1})
    assert await scanned(plant, "J1") == []


async def test_event_with_a_correlation_id_goes_to_its_job(plant: Plant) -> None:
    await plant.teach("scan", SCANNING)
    await started(plant, "J1", "J2", master="scan")
    job = await plant.job("J2")
    assert await plant.happens(correlation_id=job.correlation_id) == Task("J2", "s", {"bolt": 1})
    assert await scanned(plant, "J1") == []


async def test_task_contains_the_parameters_of_the_order(plant: Plant) -> None:
    await plant.teach("scan", SCANNING)
    async with plant.at_work():
        given = (Parameter(id="serial", value="S1"), Parameter(id="bolt", value=7))
        await plant.order(Cause.STORE_AND_START, order("J1", "scan", job_order_parameters=given))
        await plant.until_state("J1", JobState.RUNNING)
    assert await plant.happens() == Task("J1", "s", {"serial": "S1", "bolt": 7})


async def test_the_same_event_twice_has_one_effect_and_the_same_task(plant: Plant) -> None:
    await plant.teach("scan", SCANNING)
    await started(plant, "J1", master="scan")
    first = await plant.happens(event_id="e1")
    assert await plant.happens(event_id="e1") == first == Task("J1", "s", {"bolt": 1})
    assert await scanned(plant, "J1") == ["s"]


async def test_event_repeated_concurrently_has_one_effect_and_one_task(
    redis: RedisSettings, plant: Plant, tool: FakeEquipment, clock: Clock
) -> None:
    await plant.teach("scan", SCANNING)
    await started(plant, "J1", "J2", master="scan")
    async with instance(redis, {TIGHTEN: tool}, clock, consumer="other") as other:
        tasks = await asyncio.gather(*(item.happens(event_id="e1") for item in (plant, other) * 10))
    assert tasks == [Task("J1", "s", {"bolt": 1})] * 20
    assert [await scanned(plant, text) for text in ("J1", "J2")] == [["s"], []]


async def test_repeated_event_has_one_effect_after_its_mark_has_expired(plant: Plant) -> None:
    await plant.teach("scan", SCANNING)
    await started(plant, "J1", master="scan")
    await plant.happens(event_id="e1")
    for key in await plant.store.execute("KEYS", f"{plant.store.keys.prefix}:cededupe:*"):
        await plant.store.execute("DEL", key)
    assert await plant.happens(event_id="e1") is None
    assert await scanned(plant, "J1") == ["s"]


async def test_events_of_two_sources_may_have_the_same_id(plant: Plant) -> None:
    await plant.teach("scan", SCANNING)
    await started(plant, "J1", master="scan")
    assert await plant.happens(event_id="1", source="left") == Task("J1", "s", {"bolt": 1})
    assert await plant.happens(event_id="1", source="right") == Task("J1", "t", {})


async def test_concurrent_events_satisfy_one_wait_each(plant: Plant) -> None:
    await plant.teach("scan", SCANNING)
    await started(plant, *(f"J{number}" for number in range(6)), master="scan")
    tasks = await asyncio.gather(*(plant.happens() for _ in range(12)))
    taken = sorted((task.job_id, task.action) for task in tasks if isinstance(task, Task))
    assert taken == sorted((f"J{number}", name) for number in range(6) for name in "st")


async def test_event_without_a_waiting_action_returns_no_task(plant: Plant) -> None:
    await plant.teach("scan", SCANNING)
    await started(plant, "J1", master="scan")
    assert await plant.happens("other.v1") is None
    assert await plant.happens(job_id="J9") is None
    assert await plant.happens(correlation_id="nobody's") is None
    assert await plant.happens(correlation_id="list:station-1") is None
    assert await plant.happens(job_id="list:station-1") is None
    assert await scanned(plant, "J1") == []


async def test_event_without_a_waiting_action_is_not_kept(plant: Plant) -> None:
    await plant.teach("scan", SCANNING)
    assert await plant.happens(event_id="early") is None
    await started(plant, "J1", master="scan")
    assert await scanned(plant, "J1") == []
    # It was seen: its repetition is of the part before, too.
    assert await plant.happens(event_id="early") is None
    assert await plant.happens(event_id="next") == Task("J1", "s", {"bolt": 1})


async def test_early_event_with_a_job_id_is_kept_for_its_job(plant: Plant, tool: FakeEquipment) -> None:
    await plant.teach("scan", linear(action("a", "one"), pull("s", "two")))
    await started(plant, "J1", master="scan")
    assert await plant.happens(job_id="J1", data={"code": "X"}) == Kept("J1")
    async with plant.at_work():
        await plant.answer(tool.commands[0])
        await plant.until_state("J1", JobState.ENDED)


async def test_waits_of_an_ended_job_accept_no_event(plant: Plant) -> None:
    await plant.teach("scan", SCANNING)
    await started(plant, "J1", "J2", master="scan")
    await plant.ask(Cause.ABORT, "J1")
    assert await plant.happens() == Task("J2", "s", {"bolt": 1})


async def test_an_event_during_a_pause_is_recorded(plant: Plant, tool: FakeEquipment) -> None:
    await plant.teach("scan", linear(pull("s", "one"), action("a", "two")))
    await started(plant, "J1", master="scan")
    await plant.ask(Cause.PAUSE, "J1")
    assert await plant.happens() == Task("J1", "s", {})
    assert tool.commands == []
    tool.replies = obliging
    async with plant.at_work():
        await plant.ask(Cause.RESUME, "J1")
        await plant.until_state("J1", JobState.ENDED)


async def test_answer_data_is_cached_as_it_is_read_from_the_store(plant: Plant, tool: FakeEquipment) -> None:
    await started(plant, "J1")
    data = {
        "nan": float("nan"),
        "raw": b"\x01",
        "deep": {"list": [1, {"a": None}]},
        "big": 10**30,
        "größe": "8\u00a0mm",
    }
    await plant.answer(tool.commands[0], data)
    before = await plant.runs.get("J1")
    plant.runs.invalidate("J1")
    loaded = await plant.runs.load("J1")
    assert before
    assert loaded
    assert before.stored.run.variables == loaded.stored.run.variables


async def test_mark_of_an_event_expires(plant: Plant) -> None:
    await plant.teach("scan", SCANNING)
    await started(plant, "J1", master="scan")
    await plant.happens(event_id="e1")
    keys = await plant.store.execute("KEYS", f"{plant.store.keys.prefix}:cededupe:*")
    assert keys
    for key in keys:
        assert 0 < await plant.store.execute("PTTL", key) <= DEDUPE_MS


async def test_event_that_reactivates_its_step_still_returns_the_task(plant: Plant) -> None:
    again = [{"source": "one", "target": "one", "condition": "true"}]
    loop = {"steps": [{"name": "one", "initial": True}], "transitions": again, "actions": [pull("s", "one")]}
    await plant.teach("loop", loop)
    await started(plant, "J1", master="loop")
    assert await plant.happens(event_id="e1") == Task("J1", "s", {})
    assert await plant.happens(event_id="e2") == Task("J1", "s", {})


async def test_event_with_the_id_of_an_unstarted_job_is_kept(plant: Plant) -> None:
    await plant.teach("scan", SCANNING)
    await plant.order(Cause.STORE_AND_START, order("J1", "scan"))
    assert await plant.happens(job_id="J1", event_id="e1") == Kept("J1")
    assert await plant.happens(job_id="J1", event_id="e1") == Kept("J1")
    await plant.drive()
    assert await scanned(plant, "J1") == ["s"]


async def test_event_with_the_id_of_an_aborted_or_unknown_job_is_discarded(plant: Plant) -> None:
    await plant.order(Cause.STORE, order("J1"))
    await plant.ask(Cause.ABORT, "J1")
    assert await plant.happens(job_id="J1") is None
    assert await plant.happens(job_id="J2") is None
    assert (await plant.job("J1")).early == ()


async def test_stale_entry_of_the_wait_index_accepts_no_event(plant: Plant) -> None:
    await plant.teach("scanning", SCANNING)
    await started(plant, "J1", master="scanning")
    await plant.store.execute("ZADD", plant.store.keys.sfc_waits(SCOPE, "scan.v1"), 1, "gone", 2, "gone too")
    task = await plant.happens()
    assert task
    assert task.job_id == "J1"


class StartsAfterTheLook(Runs):
    """Has a job start right after it was found not to run."""

    start: Callable[[], Awaitable[None]]

    async def signal(
        self,
        job_id: str,
        signal: Signal,
        asked: MethodRequest | None = None,
        also: Callable[[Decision], Commit] = lambda _: Commit(),
    ) -> Decision | Ignored | NotAllowed | NoRun | Stale:
        found = await super().signal(job_id, signal, asked, also)
        if isinstance(found, NoRun):
            await self.start()
        return found


async def test_event_for_a_job_starting_concurrently_is_accepted(plant: Plant) -> None:
    await plant.teach("scanning", SCANNING)
    await plant.order(Cause.STORE_AND_START, order("J1", "scanning"))
    late = StartsAfterTheLook(plant.store, plant.runs.clock, KEEP_ENDED_MS)
    late.start = plant.drive
    event = EquipmentEvent("scanner", "1", "scan.v1", SCOPE, None, "J1")
    task = await Answers(plant.store, late, DEDUPE_MS).event(event)
    assert task
    assert (task.job_id, await scanned(plant, "J1")) == ("J1", ["s"])


def test_result_beyond_the_limit_is_a_failure() -> None:
    signal = signal_of(EquipmentAnswer("J1/r/a/1", data={"text": "x" * 300_000}))
    assert isinstance(signal, Answer)
    assert (signal.ok, signal.data, is_result(signal)) == (False, None, False)
    assert "its result is too large" in str(signal.error)


def test_unknown_outcome_has_its_reason() -> None:
    unknown = OutcomeUnknown("J1/r/a/1", "it was cut off")
    assert (signal_of(unknown), error_of(unknown)) == (Unknown("J1/r/a/1", "it was cut off"), "it was cut off")


BATCH = {"result_id": "N6", "results": {"1": {"result_id": "N1"}, "2": {"results": {"1": {"result_id": "N2"}}}}}


@pytest.mark.parametrize(
    ("data", "result_id", "held"),
    [(BATCH, "N6", True), (BATCH, "N1", True), (BATCH, "N2", True), (BATCH, "N3", False), ("N6", "N6", False)],
    ids=["itself", "joining", "spindle", "another", "no object"],
)
def test_result_is_found_within_the_result_that_holds_it(data: Any, result_id: str, *, held: bool) -> None:
    assert holds_result(data, result_id) is held


@pytest.mark.parametrize(
    ("found", "own", "expected"),
    [
        ("", "", Begin.AGAIN),
        ("g1", "g1", Begin.AGAIN),
        ("g1", "g2", Begin.LOST),
        ("", "g1", Begin.LOST),
        ("g1", "", Begin.LOST),
    ],
    ids=["without Sentinel", "same", "after a failover", "first with Sentinel", "no longer with Sentinel"],
)
def test_mark_of_another_generation_is_lost(found: str, own: str, expected: Begin) -> None:
    held = OwnStarts()
    assert begun_again(held.mark(found), held.mark(own)) is expected


def test_mark_of_an_earlier_release_counts_as_one_without_sentinel() -> None:
    former = "0b1c7a3e-6a0f-4b53-9a0e-0d6f1f1d3c5e"
    held = OwnStarts()
    assert begun_again(former, held.mark("")) is Begin.AGAIN
    assert begun_again(former, held.mark("g1")) is Begin.LOST


async def test_outstanding_commands_are_sent_and_unanswered(plant: Plant, tool: FakeEquipment) -> None:
    await started(plant, "J1", "J2")
    assert await plant.answers.outstanding((SCOPE,), (TIGHTEN,)) == [
        msgspec.structs.replace(command, offered_again=True) for command in tool.commands
    ]
    await plant.answer(tool.commands[0])
    await plant.drive()
    answered, *open_ones = tool.commands
    commands = await plant.answers.outstanding((SCOPE,), (TIGHTEN,))
    assert sorted(command.command_id for command in commands) == sorted(one.command_id for one in open_ones)
    assert answered not in commands
    each_by_itself = [await plant.answers.is_outstanding(command.command_id) for command in tool.commands]
    assert each_by_itself == [command is not answered for command in tool.commands]
    assert not await plant.answers.is_outstanding("nobody's")


async def test_commands_of_other_scopes_or_types_are_not_outstanding(plant: Plant) -> None:
    await started(plant, "J1")
    assert await plant.answers.outstanding(("station-9",), (TIGHTEN,)) == []
    assert await plant.answers.outstanding((SCOPE,), ("photo",)) == []


async def test_command_whose_time_is_over_is_not_outstanding(running: Plant, tool: FakeEquipment, clock: Clock) -> None:
    """Equipment that lost it must not start now: the timers of its run stop it."""
    assert len(await running.answers.outstanding((SCOPE,), (TIGHTEN,))) == 1
    clock.now += 5_000
    assert await running.answers.outstanding((SCOPE,), (TIGHTEN,)) == []
    assert tool.received() == ["a"]


async def test_begun_command_is_the_first_outstanding_one(plant: Plant, tool: FakeEquipment) -> None:
    """The job with the earlier name took the tool of the begun one after a reconnect: its outcome was unknown."""
    await started(plant, "Jc", "Jb", "Ja")
    assert (await plant.answers.begin(tool.commands[1].command_id)) is Begin.NEW
    commands = await plant.answers.outstanding((SCOPE,), (TIGHTEN,))
    assert [(command.job_id, command.begun) for command in commands] == [("Jb", True), ("Jc", False), ("Ja", False)]

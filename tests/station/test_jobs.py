"""The eleven job methods in every state: called once, repeated and concurrent."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from edge.config import RedisSettings
from edge.foundation.errors import EdgeError, Unavailable
from edge.model.isa95 import (
    IdCall,
    JobOrder,
    LocalizedText,
    OrderCall,
    Parameter,
    ReturnStatus,
    WorkMaster,
)
from edge.model.job_state import METHODS, Cause, JobState, JobStatus, SubState, state_entries
from edge.station.job_call import CallAnswer, JobCall
from edge.station.jobs import (
    AcceptedJobs,
    CallIdentity,
    OrderFacts,
    read_answer,
    read_job,
    read_order_facts,
)
from edge.station.response import ResponseProvider
from edge.station.runs import compiled
from edge.station.start import FoundRecipe, RecipeLookup
from edge.store import changes, dedupe, jobs, responses
from edge.store.client import Store
from edge.store.jobs import Job
from edge.store.reads import scan_keys
from tests.station.plant import (
    SCOPE,
    TIGHTEN,
    Clock,
    FakeEquipment,
    Plant,
    action,
    all_keys,
    instance,
    linear,
    obliging,
    order,
)
from tests.store.servers import own_server, reads_of

OK = ReturnStatus.NO_ERROR
UNKNOWN = ReturnStatus.UNKNOWN_JOB_ORDER_ID
STATE = ReturnStatus.INVALID_JOB_ORDER_STATUS

# OPC 10031-4, 6.2.2 and table 7: which method is allowed where, and where it leads; "-" removes the entry. The order of
# the states is that of table 6: not allowed to start, allowed to start, running, interrupted, ended, aborted.
STANDARD = {
    # method:         1          2          3          4          5          6
    "Store":         (STATE,     STATE,     STATE,     STATE,     STATE,     STATE),
    "StoreAndStart": (STATE,     STATE,     STATE,     STATE,     STATE,     STATE),
    "Start":         (2,         STATE,     STATE,     STATE,     STATE,     STATE),
    "RevokeStart":   (STATE,     1,         STATE,     STATE,     STATE,     STATE),
    "Update":        (1,         2,         STATE,     STATE,     STATE,     STATE),
    "Pause":         (STATE,     STATE,     4,         STATE,     STATE,     STATE),
    "Resume":        (STATE,     STATE,     STATE,     3,         STATE,     STATE),
    "Stop":          (STATE,     STATE,     5,         5,         STATE,     STATE),
    "Abort":         (6,         6,         6,         6,         STATE,     STATE),
    "Cancel":        ("-",       "-",       STATE,     STATE,     STATE,     STATE),
    "Clear":         (STATE,     STATE,     STATE,     STATE,     "-",       "-"),
}  # fmt: skip
CASES = [
    (method, state, expected)
    for method, row in STANDARD.items()
    for state, expected in zip((1, 2, 3, 4, 5, 6), row, strict=True)
]
TAKES_AN_ORDER = {"Store", "StoreAndStart", "Update"}


async def bring_to(plant: Plant, state: int) -> None:
    """Bring the job J1 to a state by its number; nothing is at work in the end."""
    await plant.order(Cause.STORE if state == 1 else Cause.STORE_AND_START, order("J1"))
    if state in {1, 2}:
        return
    await plant.drive()
    for method in {3: [], 4: [Cause.PAUSE], 5: [Cause.STOP], 6: [Cause.ABORT]}[state]:
        assert (await plant.ask(method, "J1")).status == OK
    await plant.drive()


def test_standard_table_covers_every_method() -> None:
    assert set(STANDARD) == {str(method) for method in METHODS}


@pytest.mark.parametrize(("method", "state", "expected"), CASES)
async def test_method_result_in_each_state_is_that_of_the_standard(
    plant: Plant, method: str, state: int, expected: ReturnStatus | int | str
) -> None:
    await bring_to(plant, state)
    before = await plant.job("J1")
    if method in TAKES_AN_ORDER:
        answer = await plant.order(Cause(method), order("J1", priority=7))
    else:
        answer = await plant.ask(Cause(method), "J1")
    if isinstance(expected, ReturnStatus):
        assert answer.status == expected
        assert answer.reasons
        assert await plant.job("J1") == before
    elif expected == "-":
        assert answer == CallAnswer(OK)
        assert await jobs.load(plant.store, "J1") is None
        left = [key for key in await all_keys(plant.store) if key != plant.store.keys.joborder_tombstone("J1")]
        assert "J1" not in "".join(left)
    else:
        assert answer == CallAnswer(OK)
        assert (await plant.job("J1")).status.state == expected


@pytest.mark.parametrize(("state", "expected"), [(1, STATE), (2, STATE), (3, OK), (4, OK), (5, OK), (6, OK)])
async def test_response_is_found_by_id_and_by_state_in_each_state(
    plant: Plant, state: int, expected: ReturnStatus
) -> None:
    """OPC 10031-4, 6.2.7: a job has a response from its start on."""
    await bring_to(plant, state)
    provider = ResponseProvider(plant.store)
    found = await provider.of_job(SCOPE, "J1")
    assert found.status == expected
    assert [response.job_state[0].state_number for response in found.responses] == ([state] if expected == OK else [])
    for job_state in JobState:
        by_state = await provider.in_state(SCOPE, state_entries(JobStatus(job_state)))
        assert by_state.status == OK
        assert bool(by_state.responses) == (job_state == state and expected == OK)


@pytest.mark.parametrize("method", [text for text in STANDARD if text not in {"Store", "StoreAndStart"}])
async def test_a_job_that_is_not_stored_is_unknown(plant: Plant, method: str) -> None:
    if method == "Update":
        answer = await plant.order(Cause.UPDATE, order("J1"))
    else:
        answer = await plant.ask(Cause(method), "J1")
    assert answer.status == UNKNOWN


@pytest.mark.parametrize("method", ["Abort", "Update"])
async def test_a_job_of_another_scope_is_unknown(plant: Plant, method: str) -> None:
    await plant.order(Cause.STORE, order("J1"))
    if method == "Update":
        answer = await plant.order(Cause.UPDATE, order("J1"), scope="station-2")
    else:
        answer = await plant.ask(Cause.ABORT, "J1", scope="station-2")
    assert answer.status == UNKNOWN


@pytest.mark.parametrize(
    ("method", "expected"),
    [(Cause.PAUSE, SubState.SUSPENDED), (Cause.STOP, SubState.CLOSED)],
)
async def test_pause_and_stop_of_the_mes_lead_to_their_own_sub_states(
    plant: Plant, method: Cause, expected: SubState
) -> None:
    await bring_to(plant, 3)
    await plant.ask(method, "J1")
    assert (await plant.job("J1")).status.substate is expected


async def test_repeated_call_gets_the_same_answer_and_has_no_second_effect(plant: Plant) -> None:
    first = await plant.order(Cause.STORE, order("J1"), event_id="e1")
    job = await plant.job("J1")
    assert await plant.order(Cause.STORE, order("J1"), event_id="e1") == first == CallAnswer(OK)
    assert await plant.job("J1") == job
    assert await plant.store.execute("XLEN", plant.store.keys.joborder_changes(SCOPE)) == 1


async def test_repeated_declined_call_gets_the_same_answer(plant: Plant) -> None:
    declined = await plant.ask(Cause.START, "J1", event_id="e1")
    await plant.order(Cause.STORE, order("J1"))
    assert await plant.ask(Cause.START, "J1", event_id="e1") == declined
    assert (await plant.job("J1")).status.state is JobState.NOT_ALLOWED_TO_START


async def test_call_repeated_concurrently_has_one_effect(plant: Plant) -> None:
    answers = await asyncio.gather(*(plant.order(Cause.STORE_AND_START, order("J1"), event_id="e1") for _ in range(20)))
    assert set(answers) == {CallAnswer(OK)}
    assert await plant.store.execute("XLEN", plant.store.keys.sfc_work(SCOPE)) == 1


async def test_pause_repeated_concurrently_gets_the_same_answers(plant: Plant) -> None:
    await bring_to(plant, 3)
    answers = await asyncio.gather(*(plant.ask(Cause.PAUSE, "J1", event_id="p") for _ in range(10)))
    assert set(answers) == {CallAnswer(OK)}


async def test_one_of_concurrent_orders_with_the_same_id_is_stored(plant: Plant) -> None:
    answers = await asyncio.gather(*(plant.order(Cause.STORE, order("J1")) for _ in range(10)))
    assert sorted(answer.status for answer in answers) == [OK, *[STATE] * 9]


async def test_store_and_start_never_overwrites_a_running_job(plant: Plant, tool: FakeEquipment) -> None:
    await plant.teach("other", linear(action("x", "one")))
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await plant.until_state("J1", JobState.RUNNING)
        running = await plant.job("J1")
        answer = await plant.order(Cause.STORE_AND_START, order("J1", "other"))
        assert answer.status == STATE
        assert await plant.job("J1") == running
        tool.replies = obliging
        await plant.answer(tool.commands[0])
        await plant.until_state("J1", JobState.ENDED)
    assert tool.received() == ["a", "b"]


async def test_stored_job_starts_after_a_start_call(plant: Plant, tool: FakeEquipment) -> None:
    tool.replies = obliging
    async with plant.at_work():
        await plant.order(Cause.STORE, order("J1"))
        assert (await plant.ask(Cause.START, "J1")).status == OK
        await plant.until_state("J1", JobState.ENDED)


async def test_a_revoked_start_does_not_start(plant: Plant, tool: FakeEquipment) -> None:
    tool.replies = obliging
    await plant.order(Cause.STORE_AND_START, order("J1"))
    await plant.ask(Cause.REVOKE_START, "J1")
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J2"))
        await plant.until_state("J2", JobState.ENDED)
    assert (await plant.job("J1")).status.state is JobState.NOT_ALLOWED_TO_START
    assert {command.job_id for command in tool.commands} == {"J2"}
    assert await plant.store.execute("XLEN", plant.store.keys.sfc_work(SCOPE)) == 0


async def test_revoked_and_restarted_job_starts_once(plant: Plant, tool: FakeEquipment) -> None:
    tool.replies = obliging
    await plant.order(Cause.STORE_AND_START, order("J1"))
    await plant.ask(Cause.REVOKE_START, "J1")
    await plant.ask(Cause.START, "J1")
    async with plant.at_work():
        await plant.until_state("J1", JobState.ENDED)
    assert tool.received() == ["a", "b"]


async def test_a_job_updated_before_its_start_runs_as_updated(plant: Plant, tool: FakeEquipment) -> None:
    tool.replies = obliging
    await plant.order(Cause.STORE, order("J1", priority=1))
    updated = order("J1", priority=9, job_order_parameters=(Parameter(id="torque", value=12),))
    await plant.order(Cause.UPDATE, updated)
    await plant.ask(Cause.START, "J1")
    async with plant.at_work():
        await plant.until_state("J1", JobState.ENDED)
    assert (await plant.job("J1")).order == updated
    assert tool.commands[0].parameters == {"torque": 12}
    assert float(await plant.store.execute("ZSCORE", plant.store.keys.joborder_list(SCOPE), "J1")) == 9


async def test_comment_of_a_call_is_stored_with_the_job(plant: Plant) -> None:
    await bring_to(plant, 3)
    remark = (LocalizedText(text="shift ends", locale="en"),)
    call = JobCall(SCOPE, Cause.PAUSE, IdCall(job_order_id="J1", comment=remark), "mes", "p")
    assert (await plant.jobs.call(call)).status == OK
    assert (await plant.job("J1")).comment == remark


async def test_each_change_is_reported_once_in_order(plant: Plant, tool: FakeEquipment) -> None:
    tool.replies = obliging
    await plant.order(Cause.STORE, order("J1"))
    await plant.order(Cause.UPDATE, order("J1"))
    await plant.ask(Cause.START, "J1")
    async with plant.at_work():
        await plant.until_state("J1", JobState.ENDED)
    await plant.ask(Cause.CLEAR, "J1")
    reported = []
    async for change in changes.follow(plant.store, {SCOPE: "0-0"}):
        reported.append((str(change.cause), int(change.status.state)))
        if change.cause is Cause.CLEAR:
            break
    assert reported == [("Store", 1), ("Update", 1), ("Start", 2), ("Run", 3), ("Complete", 5), ("Clear", 5)]


async def test_response_of_an_aborted_job_is_unchanged_by_a_late_command_answer(
    plant: Plant, tool: FakeEquipment
) -> None:
    await bring_to(plant, 3)
    await plant.ask(Cause.ABORT, "J1")
    await plant.answer(tool.commands[0], {"torque": 1})
    response = await responses.load(plant.store, await plant.job("J1"))
    assert response
    assert [state.state_number for state in response.job_state] == [6]


async def test_a_job_aborted_before_its_start_has_a_response_and_never_runs(plant: Plant, tool: FakeEquipment) -> None:
    await plant.order(Cause.STORE_AND_START, order("J1"))
    await plant.ask(Cause.ABORT, "J1")
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J2"))
        await plant.until_state("J2", JobState.RUNNING)
    job = await plant.job("J1")
    assert job.status.state is JobState.ABORTED
    assert await responses.load(plant.store, job)
    assert "J1" not in {command.job_id for command in tool.commands}


@pytest.mark.parametrize(
    ("method", "state", "reason"),
    [
        (Cause.STOP, 3, "stopped by anna at the station page"),
        (Cause.ABORT, 3, "aborted by anna at the station page"),
        (Cause.ABORT, 1, "aborted by anna at the station page"),
    ],
)
async def test_response_of_a_stopped_job_names_its_caller(plant: Plant, method: Cause, state: int, reason: str) -> None:
    await bring_to(plant, state)
    by = "anna at the station page"
    await plant.jobs.call(JobCall(SCOPE, method, IdCall(job_order_id="J1"), "mes", "stop", by=by))
    response = await responses.load(plant.store, await plant.job("J1"))
    assert response
    assert response.description == LocalizedText(text=reason, locale="en")


async def test_resumed_job_whose_last_answer_arrived_in_the_pause_ends_at_once(
    plant: Plant, tool: FakeEquipment
) -> None:
    await plant.teach("short", linear(action("a", "one")))
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1", "short"))
        await plant.until_state("J1", JobState.RUNNING)
        await plant.ask(Cause.PAUSE, "J1")
    await plant.answer(tool.commands[0])
    assert (await plant.job("J1")).status.state is JobState.INTERRUPTED
    assert (await plant.ask(Cause.RESUME, "J1")).status == OK
    assert (await plant.job("J1")).status.state is JobState.ENDED


async def test_a_paused_job_sends_nothing_until_it_is_resumed(plant: Plant, tool: FakeEquipment) -> None:
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await plant.until_state("J1", JobState.RUNNING)
        await plant.ask(Cause.PAUSE, "J1")
        await plant.answer(tool.commands[0])
        assert tool.received() == ["a"]
        tool.replies = obliging
        await plant.ask(Cause.RESUME, "J1")
        await plant.until_state("J1", JobState.ENDED)
    assert tool.received() == ["a", "b"]


async def test_call_during_a_store_outage_is_not_answered(tmp_path: Path, tool: FakeEquipment, clock: Clock) -> None:
    async with (
        own_server(tmp_path) as server,
        instance(RedisSettings(url=server.url), {TIGHTEN: tool}, clock) as plant,
    ):
        await plant.teach("linear", linear(action("a", "one")))
        await server.kill()
        with pytest.raises(Unavailable):
            await plant.order(Cause.STORE, order("J1"), event_id="e1")
        await server.start()
        assert await plant.order(Cause.STORE, order("J1"), event_id="e1") == CallAnswer(OK)


NEW = CallIdentity("/mes", "call-1", SCOPE, None)


async def test_facts_of_an_order_take_one_round_trip(store: Store) -> None:
    job_order = JobOrder(job_order_id="J1", work_master_id=(WorkMaster(id="linear"),))
    before = await reads_of(store)
    facts = await read_order_facts(store, NEW, job_order, None)
    assert isinstance(facts, OrderFacts)
    # The other tests have no connection that calls meanwhile; the second INFO is a read event as well.
    assert await reads_of(store) - before <= 2
    assert (facts.before, facts.removed_at, facts.open_jobs, facts.recipe) == (None, None, 0, None)


async def test_job_is_read_with_its_call(plant: Plant) -> None:
    await plant.order(Cause.STORE, order("J1"))
    job = await read_job(plant.store, NEW, "J1")
    assert isinstance(job, Job)
    assert job.status.state is JobState.NOT_ALLOWED_TO_START


@pytest.mark.parametrize("transaction", [None, "t-1"])
async def test_answer_given_before_is_returned_although_the_job_is_unreadable(
    store: Store, transaction: str | None
) -> None:
    identity = CallIdentity("/mes", "call-1", SCOPE, transaction)
    assert await read_answer(store, identity) is None
    await store.execute("HSET", store.keys.joborder("J1"), "_version", 99)
    with pytest.raises(EdgeError, match="version 99"):
        await read_job(store, identity, "J1")
    await store.commit(dedupe.mark(store.keys, "/mes", "call-1", "given", 1000))
    assert await read_job(store, identity, "J1") == "given"
    assert await read_order_facts(store, identity, JobOrder(job_order_id="J1"), None) == "given"


async def test_recipe_that_is_not_cached_takes_a_second_round_trip(plant: Plant) -> None:
    await plant.order(Cause.STORE, order("J1"))
    recipes = RecipeLookup(plant.store, compiled)
    job_order = order("J2")
    trips = []
    for _ in range(2):
        before = await reads_of(plant.store)
        facts = await read_order_facts(plant.store, NEW, job_order, recipes)
        trips.append(await reads_of(plant.store) - before - 1)
        assert isinstance(facts, OrderFacts)
        assert isinstance(facts.recipe, FoundRecipe)
    assert trips == [2, 1]


async def test_known_answer_of_an_event_hides_an_unreadable_transaction(store: Store) -> None:
    identity = CallIdentity("/mes", "call-1", SCOPE, "t-1")
    await store.commit(dedupe.mark_transaction(store.keys, SCOPE, "t-1", "other", 10_000, "mes"))
    (key,) = [key async for batch in scan_keys(store, store.keys.transdedupe("*")) for key in batch]
    await store.execute("DEL", key)
    await store.execute("SADD", key, "x")
    # Without an answer: its mark would fail on this key without end.
    with pytest.raises(EdgeError, match="WRONGTYPE"):
        await read_answer(store, identity)
    await store.commit(dedupe.mark(store.keys, "/mes", "call-1", "given", 10_000))
    assert await read_answer(store, identity) == "given"


async def lost(accepted: AcceptedJobs, store: Store) -> list[Any]:
    with capture_logs() as logs:
        await accepted.report_lost(store)
    return [job for entry in logs for job in entry.get("accepted_seconds_ago", ())]


async def test_accepted_job_that_is_not_stored_is_named_once(plant: Plant) -> None:
    for job_id in ("kept", "lost"):
        assert (await plant.order(Cause.STORE, order(job_id))).status is ReturnStatus.NO_ERROR
    assert await lost(plant.accepted_jobs, plant.store) == []
    await plant.store.execute("DEL", plant.store.keys.joborder("lost"))
    assert await lost(plant.accepted_jobs, plant.store) == ["lost"]
    assert await lost(plant.accepted_jobs, plant.store) == []


async def test_loss_of_many_jobs_is_few_lines_and_a_problem(plant: Plant) -> None:
    """A store that came back empty was a line for each of 757 jobs, and no problem in status line or doctor."""
    now, names = 0, [f"J{number:03}" for number in range(250)]
    accepted = AcceptedJobs(lambda: now)
    for job_id in names:
        accepted.note(plant.store.keys.prefix, stored(job_id), CallAnswer(ReturnStatus.NO_ERROR), now)
    assert list(accepted.problems()) == []
    with capture_logs() as logs:
        await accepted.report_lost(plant.store)
    lines = [entry for entry in logs if entry["event"] == "accepted jobs lost in a failover"]
    assert [(line["count"], len(line["accepted_seconds_ago"])) for line in lines] == [(250, 100), (250, 100), (250, 50)]
    assert [job for line in lines for job in line["accepted_seconds_ago"]] == names
    assert list(map(str, accepted.problems())) == ["250 accepted jobs were lost in a failover: J000, J001, J002, …"]
    now = 3_600_000
    assert list(accepted.problems()) == []


async def test_job_that_was_refused_or_removed_is_not_named(plant: Plant) -> None:
    assert (await plant.order(Cause.STORE, order("refused", "no such master"))).status is not ReturnStatus.NO_ERROR
    assert (await plant.order(Cause.STORE, order("removed"))).status is ReturnStatus.NO_ERROR
    assert (await plant.ask(Cause.CANCEL, "removed")).status is ReturnStatus.NO_ERROR
    assert await lost(plant.accepted_jobs, plant.store) == []


async def test_job_that_another_process_has_cleared_is_not_named(plant: Plant) -> None:
    """A gateway, a command and the end of the retention remove jobs, too; a repeated call accepts them once more."""
    accepted, sent_at = AcceptedJobs(plant.runs.clock), plant.runs.clock()
    for job_id in ("cleared", "again"):
        answer = await plant.order(Cause.STORE, order(job_id))
        accepted.note(plant.store.keys.prefix, replace(stored(job_id), sent_at=sent_at), answer, sent_at)
        assert (await plant.ask(Cause.CANCEL, job_id)).status is ReturnStatus.NO_ERROR
    again = replace(stored("again"), sent_at=sent_at)
    accepted.note(plant.store.keys.prefix, again, CallAnswer(ReturnStatus.NO_ERROR), sent_at)
    assert await lost(accepted, plant.store) == []


async def test_job_that_another_gateway_removed_is_not_named_as_lost(plant: Plant) -> None:
    """Acceptance was by our own clock, removal by that of the store's host."""
    accepted = AcceptedJobs(lambda: 122_000)
    accepted.note(plant.store.keys.prefix, stored("cleared"), CallAnswer(ReturnStatus.NO_ERROR), 2_000)
    await plant.store.commit(dedupe.bury(plant.store.keys, "cleared", "station-1", 3_000, 60_000))
    assert await lost(accepted, plant.store) == []


async def test_job_that_was_accepted_after_its_removal_is_named(plant: Plant) -> None:
    accepted = AcceptedJobs(lambda: 2_000)
    accepted.note(plant.store.keys.prefix, stored("lost"), CallAnswer(ReturnStatus.NO_ERROR), 2_000)
    await plant.store.commit(dedupe.bury(plant.store.keys, "lost", "station-1", 1_000, 60_000))
    assert await lost(accepted, plant.store) == ["lost"]


def stored(job_id: str) -> JobCall:
    return JobCall(SCOPE, Cause.STORE, OrderCall(job_order=order(job_id)), "/mes", job_id)


async def test_job_that_was_accepted_long_ago_is_not_named(plant: Plant) -> None:
    """Retention or a person may have removed it since."""
    now = 0
    accepted = AcceptedJobs(lambda: now)
    for job_id, now in (("old", 0), ("new", 500_000)):
        accepted.note(plant.store.keys.prefix, stored(job_id), CallAnswer(ReturnStatus.NO_ERROR), now)
    now = 700_000
    assert await lost(accepted, plant.store) == ["new"]

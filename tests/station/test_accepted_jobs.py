"""Jobs that were accepted and that a new primary does not have are named in the log, once."""

from typing import Any

from msgspec.structs import replace
from structlog.testing import capture_logs

from edge.model.isa95 import OrderCall, ReturnStatus
from edge.model.job_state import Cause
from edge.station.accepted_jobs import AcceptedJobs, accepted_jobs
from edge.station.job_call import CallAnswer, JobCall
from edge.store import dedupe
from edge.store.client import Store
from tests.station.plant import SCOPE, Plant, order


async def lost(accepted: AcceptedJobs, store: Store) -> list[Any]:
    with capture_logs() as logs:
        await accepted.report_lost(store)
    return [job for entry in logs for job in entry.get("accepted_seconds_ago", ())]


async def test_accepted_job_that_is_not_stored_is_named_once(plant: Plant) -> None:
    for job_id in ("kept", "lost"):
        assert (await plant.order(Cause.STORE, order(job_id))).status is ReturnStatus.NO_ERROR
    assert await lost(accepted_jobs, plant.store) == []
    await plant.store.execute("DEL", plant.store.keys.joborder("lost"))
    assert await lost(accepted_jobs, plant.store) == ["lost"]
    assert await lost(accepted_jobs, plant.store) == []


async def test_loss_of_many_jobs_is_few_lines_and_a_problem(plant: Plant) -> None:
    """A store that came back empty was a line for each of 757 jobs, and no problem in status line or doctor."""
    now, names = 0, [f"J{number:03}" for number in range(250)]
    accepted = AcceptedJobs(lambda: now)
    for job_id in names:
        accepted.note(plant.store.keys.prefix, stored(job_id), CallAnswer(ReturnStatus.NO_ERROR))
    assert list(accepted.problems()) == []
    with capture_logs() as logs:
        await accepted.report_lost(plant.store)
    lines = [entry for entry in logs if entry["event"] == "accepted jobs lost in a failover"]
    assert [(line["count"], len(line["accepted_seconds_ago"])) for line in lines] == [(250, 100), (250, 100), (250, 50)]
    assert [job for line in lines for job in line["accepted_seconds_ago"]] == names
    assert list(accepted.problems()) == ["250 accepted jobs were lost in a failover: J000, J001, J002, …"]
    now = 3_600_000
    assert list(accepted.problems()) == []


async def test_job_that_was_refused_or_removed_is_not_named(plant: Plant) -> None:
    assert (await plant.order(Cause.STORE, order("refused", "no such master"))).status is not ReturnStatus.NO_ERROR
    assert (await plant.order(Cause.STORE, order("removed"))).status is ReturnStatus.NO_ERROR
    assert (await plant.ask(Cause.CANCEL, "removed")).status is ReturnStatus.NO_ERROR
    assert await lost(accepted_jobs, plant.store) == []


async def test_job_that_another_process_has_cleared_is_not_named(plant: Plant) -> None:
    """A gateway, a command and the end of the retention remove jobs, too; a repeated call accepts them once more."""
    accepted, sent_at = AcceptedJobs(plant.runs.clock), plant.runs.clock()
    for job_id in ("cleared", "again"):
        answer = await plant.order(Cause.STORE, order(job_id))
        accepted.note(plant.store.keys.prefix, replace(stored(job_id), sent_at=sent_at), answer)
        assert (await plant.ask(Cause.CANCEL, job_id)).status is ReturnStatus.NO_ERROR
    again = replace(stored("again"), sent_at=sent_at)
    accepted.note(plant.store.keys.prefix, again, CallAnswer(ReturnStatus.NO_ERROR))
    assert await lost(accepted, plant.store) == []


async def test_job_that_was_accepted_after_its_removal_is_named(plant: Plant) -> None:
    accepted = AcceptedJobs(lambda: 2_000)
    accepted.note(plant.store.keys.prefix, stored("lost"), CallAnswer(ReturnStatus.NO_ERROR))
    await plant.store.commit(dedupe.bury(plant.store.keys, "lost", 1_000, 60_000))
    assert await lost(accepted, plant.store) == ["lost"]


def stored(job_id: str) -> JobCall:
    return JobCall(SCOPE, Cause.STORE, OrderCall(job_order=order(job_id)), "/mes", job_id)


async def test_job_that_was_accepted_long_ago_is_not_named(plant: Plant) -> None:
    """Retention or a person may have removed it since."""
    now = 0
    accepted = AcceptedJobs(lambda: now)
    for job_id, now in (("old", 0), ("new", 500_000)):  # noqa: B007 - the clock reads it
        accepted.note(plant.store.keys.prefix, stored(job_id), CallAnswer(ReturnStatus.NO_ERROR))
    now = 700_000
    assert await lost(accepted, plant.store) == ["new"]

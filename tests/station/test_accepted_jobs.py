"""Jobs that were accepted and that a new primary does not have are named in the log, once."""

from typing import Any

from structlog.testing import capture_logs

from edge.model.isa95 import OrderCall, ReturnStatus
from edge.model.job_state import Cause
from edge.station.accepted_jobs import AcceptedJobs, accepted_jobs
from edge.station.job_call import CallAnswer, JobCall
from edge.store.client import Store
from tests.station.plant import SCOPE, Plant, order


async def lost(accepted: AcceptedJobs, store: Store) -> list[Any]:
    with capture_logs() as logs:
        await accepted.report_lost(store)
    return [each["job"] for each in logs if each["event"] == "accepted job lost in a failover"]


async def test_accepted_job_that_is_not_stored_is_named_once(plant: Plant) -> None:
    for job_id in ("kept", "lost"):
        assert (await plant.order(Cause.STORE, order(job_id))).status is ReturnStatus.NO_ERROR
    assert await lost(accepted_jobs, plant.store) == []
    await plant.store.execute("DEL", plant.store.keys.joborder("lost"))
    assert await lost(accepted_jobs, plant.store) == ["lost"]
    assert await lost(accepted_jobs, plant.store) == []


async def test_job_that_was_refused_or_removed_is_not_named(plant: Plant) -> None:
    assert (await plant.order(Cause.STORE, order("refused", "no such master"))).status is not ReturnStatus.NO_ERROR
    assert (await plant.order(Cause.STORE, order("removed"))).status is ReturnStatus.NO_ERROR
    assert (await plant.ask(Cause.CANCEL, "removed")).status is ReturnStatus.NO_ERROR
    assert await lost(accepted_jobs, plant.store) == []


async def test_job_that_was_accepted_long_ago_is_not_named(plant: Plant) -> None:
    """Retention or a person may have removed it since."""
    now = 0.0
    accepted = AcceptedJobs(lambda: now)
    for job_id, now in (("old", 0.0), ("new", 500.0)):  # noqa: B007 - the clock reads it
        call = JobCall(SCOPE, Cause.STORE, OrderCall(job_order=order(job_id)), "/mes", job_id)
        accepted.note(plant.store.keys.prefix, call, CallAnswer(ReturnStatus.NO_ERROR))
    now = 700.0
    assert await lost(accepted, plant.store) == ["new"]

"""A scanned code starts a stored job or a new job of a Work Master, and the same code starts no second job."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from structlog.testing import capture_logs

from edge.features.readers.scanned_job import ScannedJob
from edge.features.readers.service import ScannedJobs
from edge.foundation.errors import Refused
from edge.foundation.task_group import background_task
from edge.model.isa95 import JobOrder, OrderCall, WorkMaster
from edge.model.job_state import Cause
from edge.station.job_call import JobCall
from edge.store import jobs
from edge.store.client import Store
from tests.conftest import WaitUntil
from tests.station.plant import LINEAR, PHOTO, SCOPE, TIGHTEN, Clock, FakeEquipment, Plant


async def prepared(store: Store) -> Plant:
    tool = FakeEquipment()
    plant = Plant(store, {TIGHTEN: tool, PHOTO: tool}, Clock())
    await plant.teach("linear", LINEAR)
    return plant


def outcomes(logs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what the log says of each scanned job."""
    started = "scanned job "
    return [entry["event"].removeprefix(started) for entry in logs if entry["event"].startswith(started)]


async def test_new_job_has_the_scanned_code_as_id_and_parameter(store: Store, wait_until: WaitUntil) -> None:
    plant, scanned = await prepared(store), ScannedJobs("urn:test")
    async with background_task(scanned.run(plant.jobs), "scanned"):
        with capture_logs() as logs:
            for event in ("e1", "e2"):
                await scanned.put(ScannedJob(SCOPE, "VIN-7", "linear", {"code": "VIN-7"}, event))
            await wait_until(lambda: len(outcomes(logs)) == 2)
    assert outcomes(logs) == ["started", "refused"]
    job = await jobs.load(store, "VIN-7")
    assert job
    assert [(parameter.id, parameter.value) for parameter in job.order.job_order_parameters or ()] == [
        ("code", "VIN-7")
    ]


async def test_stored_job_is_started_and_an_unknown_one_refused(store: Store, wait_until: WaitUntil) -> None:
    plant, scanned = await prepared(store), ScannedJobs("urn:test")
    order = JobOrder(job_order_id="VIN-7", work_master_id=(WorkMaster(id="linear"),))
    await plant.jobs.call(JobCall(SCOPE, Cause.STORE, OrderCall(job_order=order), "urn:mes", "1"))
    async with background_task(scanned.run(plant.jobs), "scanned"):
        with capture_logs() as logs:
            for code in ("VIN-7", "VIN-8", "a\nb"):
                await scanned.put(ScannedJob(SCOPE, code, "", {}, code))
            await wait_until(lambda: len(outcomes(logs)) == 3)
    assert outcomes(logs) == ["started", "refused", "refused"]


async def test_codes_beyond_the_limit_are_refused() -> None:
    scanned = ScannedJobs("urn:test")
    job = ScannedJob(SCOPE, "A", "linear", {}, "e")
    for _ in range(100):
        await scanned.put(job)
    with pytest.raises(Refused, match="100 scanned jobs wait"):
        await scanned.put(job)

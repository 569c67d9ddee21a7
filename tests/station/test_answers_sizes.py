"""The size of results and events of equipment is limited, because they are stored and listed."""

import pytest

from edge.errors import Refused
from edge.model.acceptance import MAX_BYTES
from edge.model.job_state import JobState
from edge.store import responses
from tests.station.plant import FakeEquipment, Plant
from tests.station.test_answers import SCANNING, scanned, started


async def test_result_beyond_the_size_limit_fails_its_action(plant: Plant, tool: FakeEquipment) -> None:
    await started(plant, "J1")
    await plant.answer(tool.commands[0], {"trace": "x" * MAX_BYTES})
    job = await plant.job("J1")
    assert job.status.state is JobState.ABORTED
    response = await responses.load(plant.store, job)
    assert response
    assert response.description
    assert "too large: 262156 bytes of JSON, where 262144 can be kept" in response.description.text


async def test_event_too_large_to_be_stored_is_refused(plant: Plant) -> None:
    await plant.teach("scan", SCANNING)
    await started(plant, "J1", master="scan")
    with pytest.raises(Refused, match="can be kept") as refused:
        await plant.happens(data="x" * MAX_BYTES)
    assert refused.value.kind == "too_large"
    assert await scanned(plant, "J1") == []

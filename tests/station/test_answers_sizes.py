"""The size of results and events of equipment is limited, because they are stored and listed."""

from pathlib import Path

import pytest

from edge.features.traces.files import TraceFiles, TraceLimits, read_file
from edge.foundation.errors import Refused
from edge.model.acceptance import MAX_BYTES
from edge.model.job_state import JobState
from edge.ports.result_trace import TraceReference, stored_in
from edge.station.answers import Answers
from edge.store import responses, runs
from tests.station.plant import DEDUPE_MS, FakeEquipment, Plant
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


async def test_curve_of_an_event_is_stored_as_a_file_and_does_not_count(plant: Plant, tmp_path: Path) -> None:
    """The joining of an operator's own is an event: a long one would be refused with each try of the controller."""
    limits = TraceLimits(max_bytes=1 << 24, max_files=10, max_age_s=3600)
    plant.answers = Answers(plant.store, plant.runs, DEDUPE_MS, result_files=TraceFiles(tmp_path, limits))
    await plant.teach("scan", SCANNING)
    await started(plant, "J1", master="scan")
    curve = {"channels": [{"name": "Torque", "values": [n / 10 for n in range(60_000)]}]}
    await plant.happens(data={"torque": 85, "trace": curve})
    assert await scanned(plant, "J1") == ["s"]
    stored_run = await runs.load(plant.store, "J1")
    assert stored_run
    data = [association.result for association in stored_run.run.associations.values() if association.event_id]
    (reference,) = stored_in(data[0])
    assert isinstance(reference, TraceReference)
    assert (reference.points, len(read_file(tmp_path, reference))) == (60_000, reference.size)

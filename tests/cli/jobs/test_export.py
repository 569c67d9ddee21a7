"""Tests of `edge jobs export`."""

import json
from pathlib import Path

from edge.model.job_state import Cause
from edge.store import jobs, undelivered
from tests.cli.calling import Edge
from tests.station.plant import SCOPE, Plant, order


async def test_ended_jobs_are_written_with_their_results(edge: Edge, plant: Plant, tmp_path: Path) -> None:
    for job_id in ("J1", "J2"):
        await plant.order(Cause.STORE, order(job_id))
    await plant.ask(Cause.ABORT, "J1")
    file = tmp_path / "results.jsonl"
    answer = await edge("jobs", "export", str(file))
    assert (answer.exit_code, answer.output) == (0, f"1 jobs written to {file}\n")
    (record,) = [json.loads(line) for line in file.read_text().splitlines()]
    assert (record["scope"], record["delivered_at"]) == (SCOPE, None)
    assert record["order"]["JobOrder"]["JobOrderID"] == "J1"
    assert record["response"]["JobState"][0]["StateText"]["Text"] == "Aborted"


async def test_only_undelivered_jobs_are_written_on_request(edge: Edge, plant: Plant, tmp_path: Path) -> None:
    for job_id in ("J1", "J2"):
        await plant.order(Cause.STORE, order(job_id))
        await plant.ask(Cause.ABORT, job_id)
    await plant.store.commit(undelivered.add(plant.store.keys, SCOPE, "J2", 1))
    file = tmp_path / "results.jsonl"
    assert (await edge("jobs", "export", str(file), "--undelivered")).exit_code == 0
    assert [json.loads(line)["order"]["JobOrder"]["JobOrderID"] for line in file.read_text().splitlines()] == ["J2"]


async def test_an_existing_file_is_not_replaced(edge: Edge, plant: Plant, tmp_path: Path) -> None:  # noqa: ARG001
    file = tmp_path / "results.jsonl"
    file.write_text("kept")
    assert (await edge("jobs", "export", str(file))).exit_code == 2
    assert file.read_text() == "kept"


async def test_confirmed_results_count_as_delivered(edge: Edge, plant: Plant, tmp_path: Path) -> None:
    for job_id in ("J1", "J2"):
        await plant.order(Cause.STORE, order(job_id))
        await plant.ask(Cause.ABORT, job_id)
    await plant.store.commit(undelivered.add(plant.store.keys, SCOPE, "J2", 1))
    answer = await edge("jobs", "export", str(tmp_path / "results.jsonl"), "--undelivered", "--confirm")
    assert answer.exit_code == 0
    assert await undelivered.count(plant.store, SCOPE) == 0
    delivered = {name: await jobs.load(plant.store, name) for name in ("J1", "J2")}
    assert {name: job and job.confirmed_at is not None for name, job in delivered.items()} == {"J1": False, "J2": True}

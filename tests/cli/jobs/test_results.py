"""`edge jobs results` lists results, also of earlier attempts and late ones."""

import json
from pathlib import Path

from edge.model.job_state import Cause
from edge.sfc.signal import Withdrawn
from edge.store import ended_jobs, jobs
from tests.cli.calling import Edge
from tests.conftest import WaitUntil
from tests.station.plant import SCOPE, FakeEquipment, Plant, order

ORDER = json.dumps({"JobOrderID": "J/1", "WorkMasterID": [{"ID": "linear"}]})


async def test_earlier_attempts_and_late_results_are_shown(edge: Edge, plant: Plant, tool: FakeEquipment) -> None:
    """The curve of a bad joining that was repeated is wanted most."""
    await plant.order(Cause.STORE_AND_START, order("J1"))
    await plant.drive()
    await plant.ask(Cause.ABORT, "J1")
    await plant.answer(tool.commands[0], {"evaluation": "OK", "torque": {"value": 85.2, "unit": "N·m"}})
    assert "a #1: late, OK, torque 85.2 N·m" in (await edge("jobs", "results", "J1")).output
    (found,) = json.loads((await edge("jobs", "results", "J1", "--json")).output)["results"]
    assert (found["late"], found["attempt"], found["result"]["evaluation"]) == (True, 1, "OK")


async def test_batch_lists_each_bolt(edge: Edge, plant: Plant, tool: FakeEquipment) -> None:
    await plant.order(Cause.STORE_AND_START, order("J1"))
    await plant.drive()
    bolts = {str(n): {"evaluation": "OK", "torque": {"value": 80 + n, "unit": "N·m"}} for n in range(1, 4)}
    await plant.answer(tool.commands[0], {"evaluation": "OK", "counts": {"ok": 3, "not_ok": 0}, "results": bolts})
    assert (await edge("jobs", "results", "J1")).output.splitlines() == [
        "a #1: OK, 3 parts",
        "  1: OK, torque 81 N·m",
        "  2: OK, torque 82 N·m",
        "  3: OK, torque 83 N·m",
    ]
    # It was JSON that a terminal of 80 columns broke within its words.
    shown = [line for line in (await edge("jobs", "show", "J1")).output.splitlines() if "parts" in line]
    assert len(shown) == 1


async def test_result_without_torque_and_evaluation_is_shown_as_json(
    edge: Edge, plant: Plant, tool: FakeEquipment
) -> None:
    await plant.order(Cause.STORE_AND_START, order("J1"))
    await plant.drive()
    await plant.answer(tool.commands[0], {"force_kN": 12.5})
    assert (await edge("jobs", "results", "J1")).output == 'a #1: {"force_kN": 12.5}\n'


async def test_large_result_is_listed_member_by_member(edge: Edge, plant: Plant, tool: FakeEquipment) -> None:
    """It was one line of JSON, 278 characters long."""
    await plant.order(Cause.STORE_AND_START, order("J1"))
    await plant.drive()
    bead = {"width": {"value": 3.1, "unit": "mm"}, "gaps": [], "position": {"x": 12.5, "y": -3, "reference": "seam"}}
    await plant.answer(tool.commands[0], {"pass": True, "recipe": "bead-front", "bead": bead, "codes": ["A1", "A2"]})
    assert (await edge("jobs", "results", "J1")).output.splitlines() == [
        "a #1:",
        "  pass: true",
        "  recipe: bead-front",
        "  bead.width: 3.1 mm",
        "  bead.gaps: []",
        "  bead.position.x: 12.5",
        "  bead.position.y: -3",
        "  bead.position.reference: seam",
        '  codes: ["A1", "A2"]',
    ]


async def test_late_result_without_evaluation_is_shown_with_its_values(
    edge: Edge, plant: Plant, tool: FakeEquipment
) -> None:
    await plant.order(Cause.STORE_AND_START, order("J1"))
    await plant.drive()
    await plant.ask(Cause.ABORT, "J1")
    await plant.answer(tool.commands[0], {"force_kN": 12.5})
    assert (await edge("jobs", "results", "J1")).output == 'a #1: late, {"force_kN": 12.5}\n'


async def test_command_that_was_never_sent_is_listed_without_result(
    edge: Edge, plant: Plant, tool: FakeEquipment, wait_until: WaitUntil
) -> None:
    async with plant.at_work():
        assert (await edge("jobs", "store", "-", "--start", given=ORDER)).exit_code == 0
        await wait_until(lambda: bool(tool.commands))
        await plant.ask(Cause.ABORT, "J/1")
        await plant.runs.signal("J/1", Withdrawn(tool.commands[0].command_id, "its port was closed"))
    result = await edge("jobs", "results", "J/1")
    assert "a #1: never sent: its port was closed" in result.output
    (listed,) = json.loads((await edge("jobs", "results", "J/1", "--json")).output)["results"]
    assert (listed["result"], listed["sending"], listed["sent_at"]) == (None, "never sent", None)


async def test_ended_jobs_are_written_with_their_results(edge: Edge, plant: Plant, tmp_path: Path) -> None:
    for job_id in ("J1", "J2"):
        await plant.order(Cause.STORE, order(job_id))
    await plant.ask(Cause.ABORT, "J1")
    file = tmp_path / "results.jsonl"
    answer = await edge("jobs", "export", str(file))
    assert (answer.exit_code, answer.output) == (0, f"1 job written to {file}\n")
    (record,) = [json.loads(line) for line in file.read_text().splitlines()]
    assert (record["scope"], record["delivered_at"]) == (SCOPE, None)
    assert record["order"]["JobOrder"]["JobOrderID"] == "J1"
    assert record["response"]["JobState"][0]["StateText"]["Text"] == "Aborted"


async def test_only_undelivered_jobs_are_written_on_request(edge: Edge, plant: Plant, tmp_path: Path) -> None:
    for job_id in ("J1", "J2"):
        await plant.order(Cause.STORE, order(job_id))
        await plant.ask(Cause.ABORT, job_id)
    await plant.store.commit(ended_jobs.add_undelivered(plant.store.keys, SCOPE, "J2", 1))
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
    await plant.store.commit(ended_jobs.add_undelivered(plant.store.keys, SCOPE, "J2", 1))
    answer = await edge("jobs", "export", str(tmp_path / "results.jsonl"), "--undelivered", "--confirm")
    assert answer.exit_code == 0
    assert (await ended_jobs.count_kept_results(plant.store, SCOPE)).undelivered == 0
    delivered = {name: await jobs.load(plant.store, name) for name in ("J1", "J2")}
    assert {name: job and job.confirmed_at is not None for name, job in delivered.items()} == {"J1": False, "J2": True}

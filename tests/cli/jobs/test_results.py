"""`edge jobs results` lists results, also of earlier attempts and late ones."""

import json

from edge.model.job_state import Cause
from edge.sfc.signal import Withdrawn
from tests.cli.calling import Edge
from tests.conftest import WaitUntil
from tests.station.plant import FakeEquipment, Plant, order

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
    shown = await edge("jobs", "results", "J/1")
    assert "a #1: never sent: its port was closed" in shown.output
    (listed,) = json.loads((await edge("jobs", "results", "J/1", "--json")).output)["results"]
    assert (listed["result"], listed["sending"], listed["sent_at"]) == (None, "never sent", None)

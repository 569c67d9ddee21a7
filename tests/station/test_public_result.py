"""The public form of a result has its values, and its size in its place where it is too large."""

from edge.model.job_state import Cause
from edge.station.public_result import measured_values, public_results
from edge.station.stored_job import load
from tests.station.plant import FakeEquipment, Plant, order


async def test_large_result_is_stated_by_its_size(plant: Plant, tool: FakeEquipment) -> None:
    await plant.order(Cause.STORE_AND_START, order("J1"))
    await plant.drive()
    await plant.answer(tool.commands[0], {"text": "x" * 90})
    stored_job = await load(plant.store, "J1")
    (whole,), (bounded,) = public_results(stored_job, largest=101), public_results(stored_job, largest=100)
    assert (whole.result, bounded.result) == ({"text": "x" * 90}, {"bytes": 101})
    assert (whole.values, whole.sending, whole.late) == (bounded.values, "sent", False)
    assert public_results(stored_job)[0].result == whole.result


def test_measured_values_are_the_numbers_of_a_result_that_have_a_unit() -> None:
    torque = {"value": 85.2, "unit": "Nm"}
    result = {
        "torque": torque,
        "count": 3,
        "text": {"value": "tight", "unit": "Nm"},
        "results": {"2": {"torque": torque}},
    }
    assert [(found.name, found.value, found.unit) for found in measured_values(result)] == [
        ("torque", 85.2, "Nm"),
        ("results.2.torque", 85.2, "Nm"),
    ]
    assert [found.name for found in measured_values({"value": 3, "unit": "kg"})] == ["value"]
    assert list(measured_values({str(number): torque for number in range(9)}, most=2))[2:] == []
    assert list(measured_values(None)) == list(measured_values({"ok": {"value": True, "unit": "1"}})) == []

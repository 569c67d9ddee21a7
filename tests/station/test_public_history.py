"""The public form of a history has each decision, and the size of a signal that is too large."""

from edge.model.job_state import Cause
from edge.station.public_history import public_history
from edge.station.stored_job import RecordedRun, load_recorded
from tests.station.plant import FakeEquipment, Plant, order


async def test_large_signal_is_stated_by_its_size(plant: Plant, tool: FakeEquipment) -> None:
    await plant.order(Cause.STORE_AND_START, order("J1"))
    await plant.drive()
    await plant.answer(tool.commands[0], {"text": "x" * 5000})
    recorded = await load_recorded(plant.store, "J1")
    assert isinstance(recorded, RecordedRun)
    start, answer = public_history(recorded, 4096).decisions[:2]
    assert (start.signal, start.entered, start.commands[0].action) == ("start", ("one",), "a")
    assert (answer.signal, answer.text) == ("answer", "answer to a 1: done")
    assert answer.members["bytes"] > 5000
    assert public_history(recorded).decisions[1].members == recorded.records[1].signal

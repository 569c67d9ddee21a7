"""An unreadable job is named and does not hide the other jobs."""

from edge.model.job_state import Cause
from tests.cli.calling import Edge
from tests.station.plant import Plant, order


async def test_unreadable_job_is_named_in_one_line_of_the_list(edge: Edge, plant: Plant) -> None:
    """The traceback went to the terminal, with all that other jobs held."""
    await plant.order(Cause.STORE, order("J1"))
    await plant.order(Cause.STORE, order("J2"))
    await plant.store.execute("HSET", plant.store.keys.joborder("J1"), "order", "{")
    answer = await edge("jobs", "list")
    assert answer.exit_code == 0
    assert "J2" in answer.stdout
    assert "DecodeError: Input data was truncated" in answer.stderr
    assert "Traceback" not in answer.stderr
    assert len(answer.stderr.splitlines()) == 1

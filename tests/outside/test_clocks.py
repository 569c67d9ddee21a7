"""Neither a step of the wall clock nor clocks that differ disturb a job."""

import pytest

from tests.outside.conftest import Plant
from tests.outside.plant import TIGHTEN_ACTION, TIGHTENING

HOUR = 3600.0
LIMITED = {**TIGHTENING, "actions": [{**TIGHTEN_ACTION, "timeout_seconds": 60}]}


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [HOUR, -HOUR])
def test_a_step_of_the_wall_clock_ends_no_action_and_starts_jobs(plant: Plant, seconds: float) -> None:
    plant.mes.configure(recipe=LIMITED)
    plant.wrench.holds = True
    assert plant.mes.start_job("before").status == 1
    plant.wrench.client.wait(plant.wrench.starts, "the tool has the command")
    plant.step_clocks(seconds)
    assert plant.mes.start_job("after").status == 1
    plant.wrench.client.wait(lambda: len(set(plant.wrench.starts())) == 2, "the second job starts")
    plant.wrench.release()
    for job in ("before", "after"):
        plant.mes.wait_for_state(job, "Ended")
    assert plant.mes.client.disconnects == 0


_LONG = [pytest.param(seconds, marks=pytest.mark.long) for seconds in (-0.01, 1.0, -1.0, -HOUR)]


@pytest.mark.parametrize("seconds", [0.01, HOUR, *_LONG])
@pytest.mark.slow
def test_gateways_whose_clocks_differ_start_every_accepted_job(plant: Plant, seconds: float) -> None:
    plant.gateway_clock.set(seconds)
    other = plant.new_gateway("other", plant.new_clock("other"))
    other.start()
    jobs = [f"J{number}" for number in range(12)]
    for job in jobs:
        assert plant.mes.start_job(job).status == 1
    for job in jobs:
        plant.mes.wait_for_state(job, "Ended", 15)
    assert len(set(plant.wrench.starts())) == len(jobs)

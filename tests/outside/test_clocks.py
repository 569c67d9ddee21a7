"""Neither a step of the wall clock nor clocks that differ disturb a job."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.outside.conftest import Plant
from tests.outside.mqtt_client import Received
from tests.outside.plant import METHOD, TIGHTEN_ACTION, TIGHTENING, order

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


@pytest.mark.slow
def test_gateways_whose_clocks_differ_judge_the_expiry_of_a_call_alike(plant: Plant) -> None:
    """The one ahead answered "expired, send a new one" and the other one executed: the MES orders the work twice."""
    clock = plant.new_clock("other")
    clock.set(120.0)
    plant.new_gateway("other", clock).start()
    sent_at = datetime.now(UTC).isoformat()
    sent = [
        plant.mes.send(METHOD.format("StoreAndStart"), order(f"J{number}"), time=sent_at, expiryinterval="60")
        for number in range(4)
    ]

    def answers() -> list[Received]:
        return [message for message in list(plant.mes.client.received) if message.correlation_data in sent]

    plant.mes.client.wait(lambda: len(answers()) == 2 * len(sent), "each gateway has answered each call")
    assert [answer.attributes.get("mdcserrorkind") for answer in answers()] == [None] * 2 * len(sent)
    late = (datetime.now(UTC) - timedelta(seconds=90)).isoformat()
    refused = plant.mes.start_job("late", time=late, expiryinterval="60")
    assert refused.attributes["mdcserrorkind"] == "expired"


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

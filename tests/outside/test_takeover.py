"""Another gateway continues the work of a killed gateway."""

import pytest

from tests.outside.conftest import Plant

pytestmark = pytest.mark.slow


def test_another_gateway_completes_the_job_of_a_killed_gateway(plant: Plant) -> None:
    other = plant.new_gateway("other", None)
    other.start()
    plant.wrench.holds = True
    assert plant.mes.start_job("J1").status == 1
    plant.wrench.client.wait(plant.wrench.starts, "the tool has the command")
    plant.gateway.kill()
    plant.wrench.release()
    plant.mes.wait_for_state("J1", "Ended", 30)
    assert len(set(plant.wrench.starts())) == 1


def test_a_status_event_that_is_published_again_has_the_same_id(plant: Plant) -> None:
    assert plant.mes.start_job("J1").status == 1
    plant.mes.wait_for_state("J1", "Ended")
    plant.gateway.kill()
    plant.gateway.start()
    assert plant.mes.start_job("J2").status == 1
    plant.mes.wait_for_state("J2", "Ended")
    assert plant.mes.states("J1") == ["Running", "Ended"]


def test_retained_results_are_published_again_to_an_empty_broker(plant: Plant) -> None:
    assert plant.mes.start_job("J1").status == 1
    plant.mes.client.wait(lambda: plant.mes.result("J1"), "the MES has the result")
    plant.broker.kill()
    (plant.broker.directory / "mosquitto.db").unlink(missing_ok=True)
    plant.mes.client.received.clear()
    plant.broker.start()
    plant.mes.client.wait(lambda: plant.mes.result("J1"), "the MES has the result again", 30)

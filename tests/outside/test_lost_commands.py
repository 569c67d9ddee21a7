"""A command reaches its tool although the broker loses it."""

from tests.outside.conftest import Plant
from tests.outside.plant import Wrench


def test_a_command_that_the_broker_lost_is_sent_again(plant: Plant) -> None:
    """The broker confirms the command, is killed before it stores it, and comes back; the tool sends no presence."""
    plant.wrench.client.close()
    wrench = Wrench(plant.broker.port, session_expiry=3600)
    wrench.open()
    wrench.client.close()
    plant.broker.save()
    assert plant.mes.start_job("J1").status == 1
    plant.mes.wait_for_state("J1", "Running")
    plant.broker.kill()
    plant.broker.start()
    wrench = Wrench(plant.broker.port, session_expiry=3600)
    wrench.open()
    wrench.client.wait(wrench.starts, "the command is sent again", 30)
    plant.mes.wait_for_state("J1", "Ended", 30)
    assert len(set(wrench.starts())) == 1
    wrench.client.close()

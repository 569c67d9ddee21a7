"""A command reaches its tool although the broker loses it."""

import pytest

from tests.outside.conftest import Plant
from tests.outside.plant import Wrench


def test_command_lost_by_the_broker_is_sent_again(plant: Plant) -> None:
    """The broker confirms the command, is killed before it stores it, and comes back; the tool sends no presence."""
    _start_job_for_a_tool_that_is_away(plant)
    plant.broker.kill()
    plant.broker.start()
    _expect_the_command(plant)


@pytest.mark.slow
def test_command_lost_by_the_broker_is_sent_again_after_a_restart(plant: Plant) -> None:
    """The gateway is away while the broker loses the command; the tool sends no presence."""
    _start_job_for_a_tool_that_is_away(plant)
    plant.gateway.stop()
    plant.broker.kill()
    plant.broker.start()
    plant.gateway.start()
    _expect_the_command(plant)


def test_command_is_sent_again_until_a_subscriber_exists(plant: Plant) -> None:
    """The tool keeps no session and sends no presence: the broker drops what comes before it subscribes."""
    plant.wrench.client.close()
    assert plant.mes.start_job("J1").status == 1
    plant.mes.wait_for_state("J1", "Running")
    wrench = Wrench(plant.broker.port)
    wrench.open()
    wrench.client.wait(wrench.starts, "the command is sent again", 30)
    plant.mes.wait_for_state("J1", "Ended", 30)
    wrench.client.close()


@pytest.mark.slow
def test_an_open_command_is_sent_once_for_each_connection(plant: Plant) -> None:
    """A tool with a retained presence gets an open command once after a restart of the gateway, not for each reason."""
    plant.wrench.holds = True
    plant.gateway.stop()
    plant.wrench.client.publish(f"{plant.wrench.topic}/presence", b"online", {}, retain=True)
    plant.gateway.start()
    assert plant.mes.start_job("J1").status == 1
    plant.wrench.client.wait(plant.wrench.starts, "the tool has the command")
    plant.gateway.kill()
    plant.gateway.start()
    plant.wrench.client.wait(lambda: len(plant.wrench.starts()) > 1, "the command is sent again", 30)
    # A second job: whatever the gateway sends again for the first one, it sends before this command.
    assert plant.mes.start_job("J2").status == 1
    plant.wrench.client.wait(lambda: len(set(plant.wrench.starts())) > 1, "the tool has the next command", 30)
    assert len(plant.wrench.starts()) == 3


def _start_job_for_a_tool_that_is_away(plant: Plant) -> None:
    """Start a job whose command waits in a session of the tool that the broker has stored without it."""
    plant.wrench.client.close()
    wrench = Wrench(plant.broker.port, session_expiry=3600)
    wrench.open()
    wrench.client.close()
    plant.broker.save()
    assert plant.mes.start_job("J1").status == 1
    plant.mes.wait_for_state("J1", "Running")


def _expect_the_command(plant: Plant) -> None:
    wrench = Wrench(plant.broker.port, session_expiry=3600)
    wrench.open()
    wrench.client.wait(wrench.starts, "the command is sent again", 30)
    plant.mes.wait_for_state("J1", "Ended", 30)
    assert len(set(wrench.starts())) == 1
    wrench.client.close()

"""A command reaches its tool although a broker loses it."""

import pytest

from tests.outside.conftest import Plant


@pytest.mark.slow
def test_a_command_of_a_killed_gateway_is_sent_once_under_its_id(plant: Plant) -> None:
    plant.wrench.holds = True
    assert plant.mes.start_job("J1").status == 1
    plant.wrench.client.wait(plant.wrench.starts, "the tool has the command")
    plant.gateway.kill()
    plant.gateway.start()
    plant.wrench.release()
    plant.mes.wait_for_state("J1", "Ended", 30)
    assert len(set(plant.wrench.starts())) == 1


@pytest.mark.slow
def test_a_job_continues_after_the_store_was_frozen(plant: Plant) -> None:
    plant.wrench.holds = True
    assert plant.mes.start_job("J1").status == 1
    plant.wrench.client.wait(plant.wrench.starts, "the tool has the command")
    plant.store.freeze()
    plant.wrench.release()
    call = plant.mes.send("org.opcfoundation.ISA95-JOBCONTROL_V2.Clear.v2", {"JobOrderID": "unknown"})
    plant.store.thaw()
    plant.mes.client.wait(lambda: plant.mes.answer_to(call), "the call is answered", 30)
    plant.mes.wait_for_state("J1", "Ended", 30)


@pytest.mark.slow
def test_a_job_continues_after_the_broker_was_frozen(plant: Plant) -> None:
    plant.wrench.holds = True
    assert plant.mes.start_job("J1").status == 1
    plant.wrench.client.wait(plant.wrench.starts, "the tool has the command")
    plant.broker.freeze()
    plant.wrench.release()
    plant.broker.thaw()
    plant.mes.wait_for_state("J1", "Ended", 30)


def test_declined_call_has_its_reason_in_the_payload(plant: Plant) -> None:
    answer = plant.mes.call("Clear", {"JobOrderID": "never-stored"})
    assert answer.data == {"ReturnStatus": 2, "Reason": "no such job order in this scope"}
    assert answer.attributes["mdcserrormessage"] == answer.data["Reason"]


def test_refused_message_has_its_reason_in_the_payload(plant: Plant) -> None:
    answer = plant.mes.call("Clear", {"JobOrder": "no id"})
    assert answer.attributes["mdcserrorkind"] == answer.data["ErrorKind"] == "invalid_payload"
    assert answer.attributes["mdcserrormessage"] == answer.data["Reason"]
    assert "JobOrderID" in answer.data["Reason"]

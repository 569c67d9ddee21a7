"""Changes of a job without a status event reach the MES, and each of its calls is in the audit trail once."""

import json
import uuid
from typing import Any

import pytest

from tests.outside.conftest import Plant
from tests.outside.plant import TIGHTEN
from tests.outside.servers import wait_for

UPDATE = "com.github.aschamberger.microdcs.ResponseUpdate.v1"
PERSON = "com.github.aschamberger.microdcs.AwaitsPerson.v1"

pytestmark = pytest.mark.slow


def _events(plant: Plant, event_type: str) -> list[Any]:
    received = {
        item.attributes["id"]: item.data
        for item in list(plant.mes.client.received)
        if item.attributes.get("type") == event_type
    }
    return list(received.values())


@pytest.mark.parametrize("method", ["Stop", "Abort"])
def test_result_after_the_end_of_a_job_is_a_response_update(plant: Plant, method: str) -> None:
    """The last status event lacks it: the tool still worked."""
    plant.wrench.holds = True
    assert plant.mes.start_job("J1").status == 1
    plant.wrench.client.wait(plant.wrench.starts, "the tool has the command")
    assert plant.mes.call(method, {"JobOrderID": "J1"}).status == 1
    plant.mes.wait_for_state("J1", "Aborted" if method == "Abort" else "Ended")
    assert _events(plant, UPDATE) == []
    plant.wrench.release()
    plant.mes.client.wait(lambda: any("85.2" in json.dumps(event) for event in _events(plant, UPDATE)), "the update")
    update = _events(plant, UPDATE)[-1]
    assert update["JobOrder"]["JobOrderID"] == update["JobResponse"]["JobOrderID"] == "J1"
    assert update["JobState"][0]["StateText"]["Text"] == ("Aborted" if method == "Abort" else "Ended")
    plant.mes.client.wait(lambda: "85.2" in json.dumps(plant.mes.result("J1")), "the retained result has it too")


def test_job_that_waits_for_a_person_is_an_event(plant: Plant) -> None:
    plant.wrench.holds = True
    assert plant.mes.start_job("J1").status == 1
    plant.wrench.client.wait(plant.wrench.starts, "the tool has the command")
    (command,) = plant.wrench.starts()
    answer = {"specversion": "1.0", "id": str(uuid.uuid4()), "source": "/wrench", "type": TIGHTEN}
    answer |= {"causationid": command, "mdcserrorkind": "unknown", "mdcserrormessage": "memory lost"}
    plant.wrench.client.publish(f"{plant.wrench.topic}/answers", "", answer)
    plant.mes.client.wait(lambda: _events(plant, PERSON), "the event")
    (waiting,) = _events(plant, PERSON)
    assert waiting["JobOrderID"] == "J1"
    assert waiting["JobState"][0]["StateText"]["Text"] == "Running"
    (question,) = waiting["Questions"]
    assert (question["Kind"], question["Action"]) == ("OutcomeUnknown", "tighten")
    assert "memory lost" in question["Reason"]
    decision = {"JobOrderID": "J1", "Action": "tighten", "Resolution": "done", "By": "anna", "Reason": "seen"}
    assert plant.mes.ask("com.github.aschamberger.microdcs.resolve.v1", decision).status == 1
    plant.mes.wait_for_state("J1", "Ended")
    assert len(_events(plant, PERSON)) == 1


def test_call_is_in_the_audit_trail_once_with_two_gateways(plant: Plant) -> None:
    other = plant.new_gateway("other", None)
    other.start()
    for number in range(5):
        assert plant.mes.start_job(f"J{number}").status == 1
    plant.mes.configure("WM-2")
    for number in range(5):
        plant.mes.wait_for_state(f"J{number}", "Ended")

    def calls() -> list[tuple[str, str]]:
        records = json.loads(plant.gateway.cli("audit", "list", "--kind", "mes.call", "--json"))
        return sorted((record["action"], record["subject"]) for record in records)

    expected = [("PUT workmaster", "station-1")] * 2 + [("StoreAndStart", f"J{number}") for number in range(5)]
    wait_for(lambda: len(calls()) >= len(expected), "the calls are recorded")
    assert calls() == expected

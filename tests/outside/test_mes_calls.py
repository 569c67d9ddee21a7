"""Calls of a MES: optional members, repeated transactions, states, settings and attempts."""

import uuid
from typing import Any

import pytest

from tests.outside.conftest import Plant
from tests.outside.mqtt_client import MqttClient, Received
from tests.outside.plant import RECIPE_SCHEMA, SETTING, TIGHTEN_ACTION, Mes, order
from tests.outside.servers import PREFIX, SCOPE

pytestmark = pytest.mark.slow

SCAN = "com.example.station.scan.v1"
DEADLINE = 60.0


def two_steps(second: dict[str, Any]) -> dict[str, Any]:
    """Return a recipe that tightens and then does one more action."""
    return {
        "steps": [{"name": "Tighten", "initial": True}, {"name": "Second"}, {"name": "Done"}],
        "transitions": [
            {"source": "Tighten", "target": "Second", "condition": "actions.tighten.done"},
            {"source": "Second", "target": "Done", "condition": f"actions.{second['name']}.done"},
        ],
        "actions": [TIGHTEN_ACTION, second | {"step": "Second", "qualifier": "N"}],
    }


INSPECT = two_steps({"name": "scan", "interaction": "pull_event", "type_id": SCAN})
LOOP = {
    "steps": [{"name": "Tighten", "initial": True}, {"name": "Look"}, {"name": "Done"}],
    "transitions": [
        {"source": "Tighten", "target": "Look", "condition": "actions.tighten.done"},
        {"source": "Look", "target": "Tighten", "condition": "torque.value < 80", "priority": 1},
        {"source": "Look", "target": "Done", "condition": "torque.value >= 80", "priority": 2},
    ],
    "actions": [TIGHTEN_ACTION],
}


def setting(mes: Mes, kind: str, items: object, method: str) -> Received:
    """Send a setting and return its answer."""
    correlation = mes.send(SETTING.format(kind), items, method=method)
    mes.client.wait(lambda: mes.answer_to(correlation), f"an answer to {method} {kind}", DEADLINE)
    received = mes.answer_to(correlation)
    assert received
    return received


def scan(client: MqttClient, event_id: str, response_topic: str | None = None, **attributes: str) -> None:
    """Publish the event of a scanner."""
    event = {"specversion": "1.0", "id": event_id, "source": "/scanner", "type": SCAN, "subject": SCOPE}
    topic = f"{PREFIX}/equipment/wrench/events"
    client.publish(topic, '{"pass": true}', event | attributes, response_topic=response_topic)


def test_null_members_are_absent_and_a_transaction_counts_once(plant: Plant) -> None:
    """The second call has another id, as of a MES that restarted."""
    null = {"StartTime": None, "Priority": None, "Description": None, "JobOrderParameters": None}
    work_master = {"ID": "WM-1", "Parameters": None, "Description": None}
    stored = {"JobOrder": {"JobOrderID": "J1", "WorkMasterID": [work_master]} | null, "Comment": None}
    assert plant.mes.call("Store", stored).status == 1
    for transaction, method, statuses in (("T1", "Start", (1, 1)), ("T2", "Clear", (1, 1))):
        call = {"JobOrderID": "J1", "Comment": None}
        answers = [plant.mes.call(method, call, transactionid=transaction).status for _ in statuses]
        assert tuple(answers) == statuses
        if method == "Start":
            plant.mes.wait_for_state("J1", "Ended", DEADLINE)
    assert plant.mes.call("Clear", {"JobOrderID": "J1"}).status == 2
    assert len(plant.wrench.starts()) == 1


def test_an_order_that_cannot_run_is_refused_with_the_reason(plant: Plant) -> None:
    unrouted = two_steps({"name": "weld", "interaction": "push_command", "type_id": "com.example.weld.v1"})
    plant.mes.configure("WM-weld", unrouted)
    setting(plant.mes, "workmaster", [{"ID": "WM-none"}], "PUT")
    masters = {"com.example.weld.v1": ["WM-weld"], "recipe": ["WM-none"], "unknown": ["WM-x"], "one": ["WM-1", "WM-2"]}
    for reason, names in masters.items():
        payload = {"JobOrder": {"JobOrderID": reason, "WorkMasterID": [{"ID": name} for name in names]}}
        answer = plant.mes.call("Store", payload)
        assert answer.status == 16, answer
        assert answer.data["Reason"], answer


def test_responses_are_found_by_the_text_of_their_state_and_by_the_index(plant: Plant) -> None:
    plant.mes.client.subscribe(f"{PREFIX}/{SCOPE}/state-index")
    for name in ("J1", "J2"):
        assert plant.mes.start_job(name).status == 1
        plant.mes.wait_for_state(name, "Ended", DEADLINE)
    by_text = [{"StateText": {"Text": "Ended"}}]
    assert _found(plant.mes, by_text) == ["J1", "J2"]
    assert _found(plant.mes, [{"StateText": {"Text": "Aborted"}}]) == []
    states = [received.data for received in list(plant.mes.client.received) if received.topic.endswith("state-index")]
    published = next(job["state"] for job in states[-1]["jobs"] if job["job_order_id"] == "J1")
    assert _found(plant.mes, published) == ["J1", "J2"]


def _found(mes: Mes, state: object) -> list[str]:
    answer = mes.call("RequestJobResponseByJobOrderState", {"JobOrderState": state})
    assert answer.status == 1, answer
    return [response["JobOrderID"] for response in answer.data["JobResponses"]]


def test_settings_are_read_back_and_a_used_work_master_warns(plant: Plant) -> None:
    setting(plant.mes, "equipment", [{"ID": "press-7"}], "PUT")
    setting(plant.mes, "jobacceptance", {"max_downloadable_job_orders": 5}, "PUT")
    assert "press-7" in str(setting(plant.mes, "equipment", [], "GET").data)
    assert "5" in str(setting(plant.mes, "jobacceptance", {}, "GET").data)
    (master,) = setting(plant.mes, "workmaster", [], "GET").data
    assert (master["ID"], master["dataschema"]) == ("WM-1", RECIPE_SCHEMA)
    assert plant.mes.call("Store", order("J1")).status == 1
    deleted = setting(plant.mes, "workmaster", [{"ID": "WM-1"}], "DELETE")
    assert "mdcserrorkind" not in deleted.attributes
    assert "J1" in deleted.attributes["mdcserrormessage"]


def test_each_attempt_is_kept_with_its_times(plant: Plant) -> None:
    torques = [12.0, 34.0, 85.0]
    plant.wrench.torque = lambda: torques.pop(0)
    plant.mes.configure("WM-1", LOOP)
    assert plant.mes.start_job("J1").status == 1
    plant.mes.wait_for_state("J1", "Ended", DEADLINE)
    plant.mes.client.wait(lambda: plant.mes.result("J1"), "the result", DEADLINE)
    response = str(plant.mes.result("J1"))
    assert all(text in response for text in ("12.0", "34.0", "85.0"))
    assert response.count("'ID': 'start'") == response.count("'ID': 'end'") == 3


def test_redelivered_discarded_event_is_not_used_for_the_next_part(plant: Plant) -> None:
    """The broker delivers it again while the next part waits for such an event."""
    scanner = MqttClient(plant.broker.port, "scanner")
    scanner.connect()
    plant.mes.configure("WM-1", INSPECT)
    scan(scanner, "ok-1")
    assert plant.mes.start_job("J1").status == 1
    plant.wrench.client.wait(plant.wrench.starts, "the part is tightened", DEADLINE)
    scan(scanner, "ok-1")
    _require_running(plant, "J1")
    scan(scanner, "ok-2")
    plant.mes.wait_for_state("J1", "Ended", DEADLINE)
    scanner.close()


def _require_running(plant: Plant, job: str) -> None:
    """Require that a job runs, after all that was sent before was handled: the wrench is asked something else."""
    topic = f"{PREFIX}/equipment/wrench/asked"
    asker = MqttClient(plant.broker.port, str(uuid.uuid4()))
    asker.connect()
    asker.subscribe(topic)
    question = {"specversion": "1.0", "id": str(uuid.uuid4()), "source": "/asker", "type": "work.v1", "subject": SCOPE}
    asker.publish(f"{PREFIX}/equipment/wrench/events", "{}", question, response_topic=topic)
    asker.wait(lambda: asker.received, "the question is answered", DEADLINE)
    assert asker.received[0].attributes["mdcserrorkind"] == "nothing_waiting"
    asker.close()
    assert plant.mes.states(job) == ["Running"]


def test_event_for_a_job_before_its_start_is_answered_kept(plant: Plant) -> None:
    scanner, topic = MqttClient(plant.broker.port, "scanner"), f"{PREFIX}/equipment/wrench/mine"
    scanner.connect()
    scanner.subscribe(topic)
    plant.mes.configure("WM-1", INSPECT)
    assert plant.mes.call("Store", order("J1")).status == 1
    for _ in range(2):
        scan(scanner, "early", topic, joborderid="J1")
    scanner.wait(lambda: len(scanner.received) == 2, "both questions are answered", DEADLINE)
    assert [received.attributes["mdcserrorkind"] for received in scanner.received] == ["kept", "kept"]
    assert plant.mes.call("Start", {"JobOrderID": "J1"}).status == 1
    plant.mes.wait_for_state("J1", "Ended", DEADLINE)
    scanner.close()


@pytest.mark.long
@pytest.mark.timeout(240)
def test_work_of_an_unknown_consumer_is_claimed(plant: Plant) -> None:
    """A consumer on no register, as of a person at redis-cli, takes the entry of a job away: within two minutes."""
    plant.gateway.stop()
    order_file = plant.gateway.directory / "order.json"
    order_file.write_text('{"JobOrderID": "J1", "WorkMasterID": [{"ID": "WM-1"}]}')
    assert plant.gateway.cli("jobs", "store", str(order_file), "--start") is not None
    stream = f"microdcs-edge:sfc:work:{SCOPE}"
    taken = plant.store.cli("xreadgroup", "GROUP", "sfc-engine", "ghost", "STREAMS", stream, ">")
    assert "J1" in taken
    plant.gateway.start()
    plant.mes.wait_for_state("J1", "Ended", 150)

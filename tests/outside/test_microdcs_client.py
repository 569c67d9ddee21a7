"""A MicroDCS client reads every message, and parameters have the documented precedence."""

import json
from typing import Any

import msgspec

from tests.outside.conftest import Plant
from tests.outside.mqtt_client import MqttClient, Received
from tests.outside.plant import RECIPE_SCHEMA, SETTING, TIGHTEN_ACTION, TIGHTENING
from tests.outside.servers import PREFIX


class Data(msgspec.Struct, kw_only=True, rename="pascal"):
    """A data class of that client: all members are optional, unknown ones are ignored."""


class Text(Data):
    locale: str | None = None
    text: str | None = None


class PathElement(Data):
    reference_type_id: str | None = None
    is_inverse: bool | None = None
    include_subtypes: bool | None = None
    target_name: str | None = None


class Path(Data):
    elements: list[PathElement] | None = None


class State(Data):
    browse_path: Path | None = None
    state_text: Text | None = None
    state_number: int | None = None


class Parameter(Data):
    id: str | None = msgspec.field(default=None, name="ID")
    value: Any = None
    description: list[Text] | None = None
    subparameters: "list[Parameter] | None" = None


class WorkMaster(Data):
    id: str | None = msgspec.field(default=None, name="ID")
    parameters: list[Parameter] | None = None


class Order(Data):
    job_order_id: str | None = msgspec.field(default=None, name="JobOrderID")
    work_master_id: list[WorkMaster] | None = msgspec.field(default=None, name="WorkMasterID")
    start_time: str | None = None
    end_time: str | None = None
    priority: int | None = None
    job_order_parameters: list[Parameter] | None = None


class OrderAndState(Data):
    job_order: Order | None = None
    state: list[State] | None = None


class Response(Data):
    job_response_id: str | None = msgspec.field(default=None, name="JobResponseID")
    job_order_id: str | None = msgspec.field(default=None, name="JobOrderID")
    start_time: str | None = None
    end_time: str | None = None
    job_state: list[State] | None = None
    job_response_data: list[Parameter] | None = None


class StatusEvent(Data):
    job_order: Order | None = None
    job_response: Response | None = None
    job_state: list[State] | None = None


class ResponseAnswer(Data):
    job_response: Response | None = None
    return_status: int | None = None


class ResponsesAnswer(Data):
    job_responses: list[Response] | None = None
    return_status: int | None = None


class MethodAnswer(Data):
    return_status: int | None = None


KINDS = {
    "JobOrderStatusEventType.v2": StatusEvent,
    "RequestJobResponseByJobOrderID": ResponseAnswer,
    "RequestJobResponseByJobOrderState": ResponsesAnswer,
}


def _decode(received: Received) -> object:
    kind = received.attributes.get("type", "")
    if received.topic.startswith(f"{PREFIX}/station-1/order/"):
        return msgspec.json.decode(received.payload, type=OrderAndState)
    if received.topic.startswith(f"{PREFIX}/station-1/result/"):
        return msgspec.json.decode(received.payload, type=Response)
    for part, data in KINDS.items():
        if part in kind:
            return msgspec.json.decode(received.payload, type=data)
    return msgspec.json.decode(received.payload, type=MethodAnswer)


def _machine_of(state: State) -> list[str]:
    elements = (state.browse_path and state.browse_path.elements) or []
    return [(element.target_name or "").rpartition(";")[2] for element in elements]


def test_a_microdcs_client_decodes_every_message(plant: Plant) -> None:
    mes, listening = plant.mes, MqttClient(plant.broker.port, "microdcs")
    listening.connect()
    for topic in ("events", "order/+", "result/+"):
        listening.subscribe(f"{PREFIX}/station-1/{topic}")
    plant.wrench.holds = True
    try:
        later = {
            "JobOrder": {"JobOrderID": "J0", "WorkMasterID": [{"ID": "WM-1"}], "StartTime": "2100-01-01T00:00:00Z"}
        }
        assert mes.call("Store", later).status == 1
        for method in ("Start", "RevokeStart", "Start", "Abort"):
            assert mes.call(method, {"JobOrderID": "J0"}).status == 1
        one = {"JobOrderID": "J1"}
        assert mes.start_job("J1").status == 1
        plant.wrench.client.wait(plant.wrench.starts, "the tool has the command")
        mes.wait_for_state("J1", "Running")
        for method in ("Pause", "Resume"):
            assert mes.call(method, one).status == 1
        plant.wrench.release()
        mes.wait_for_state("J1", "Ended")
        assert mes.call("RequestJobResponseByJobOrderID", one).status == 1
        state = [{"StateText": {"Text": "Ended", "Locale": "en"}}]
        found = mes.call("RequestJobResponseByJobOrderState", {"JobOrderState": state})
        assert [response["JobOrderID"] for response in found.data["JobResponses"]] == ["J1"]
        listening.wait(lambda: len(listening.received) >= 10, "the client has heard it all")
    finally:
        listening.close()
    answers = [received for received in mes.client.received if received.correlation_data]
    decoded = [_decode(answer) for answer in (*listening.received, *answers) if answer.payload]
    events = [value for value in decoded if isinstance(value, StatusEvent)]
    assert len(events) >= 6
    names = {name for event in events for state in event.job_state or () for name in _machine_of(state)}
    assert names == {"AllowedToStartSubstates", "NotAllowedToStartSubstates", "InterruptedSubstates", "EndedSubstates"}
    assert {type(value) for value in decoded} >= {StatusEvent, OrderAndState, Response, ResponseAnswer, ResponsesAnswer}


def test_parameters_reach_commands_and_the_last_wins(plant: Plant) -> None:
    """Recipe, Work Master, Work Master in the order, order."""
    action: dict[str, Any] = TIGHTEN_ACTION | {"parameters": dict.fromkeys("abcd", "recipe")}
    recipe: dict[str, Any] = {**TIGHTENING, "actions": [action]}
    master: dict[str, Any] = {"ID": "WM-2", "data": recipe, "dataschema": RECIPE_SCHEMA.rstrip("/")}
    master |= {"Parameters": [{"ID": name, "Value": "master"} for name in "bcd"]}
    put = plant.mes.send(SETTING.format("workmaster"), [master], method="PUT")
    plant.mes.client.wait(lambda: plant.mes.answer_to(put), "the Work Master is stored")
    within = {"ID": "WM-2", "Parameters": [{"ID": name, "Value": "order's master"} for name in "cd"]}
    order = {"JobOrderID": "J1", "WorkMasterID": [within], "JobOrderParameters": [{"ID": "d", "Value": "order"}]}
    assert plant.mes.call("StoreAndStart", {"JobOrder": order}).status == 1
    plant.wrench.client.wait(plant.wrench.starts, "the tool has the command")
    (command,) = plant.wrench.commands
    expected = {"a": "recipe", "b": "master", "c": "order's master", "d": "order"}
    assert json.loads(command.payload)["parameters"] == expected
    two = {"JobOrderID": "J2", "WorkMasterID": [{"ID": "WM-2"}, {"ID": "WM-1"}]}
    refused = plant.mes.call("Store", {"JobOrder": two})
    assert (refused.status, "name one" in refused.data["Reason"]) == (16, True)

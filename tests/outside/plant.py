"""A MES and a tightening tool of other vendors, written from docs/reference only: northbound.md and equipment.md."""

import json
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.outside.mqtt_client import MqttClient, Received
from tests.outside.servers import PREFIX, SCOPE

METHOD = "org.opcfoundation.ISA95-JOBCONTROL_V2.{}.v2"
SETTING = "com.github.aschamberger.ISA95-JOBCONTROL_V2.config.{}.v1"
STATUS_EVENT = "ISA95JobOrderStatusEventType.v2"
RECIPE_SCHEMA = "https://aschamberger.github.io/schemas/microdcs/sfc-recipe/v1.0.0/"
TIGHTEN = "com.example.station.tighten.v1"
COMMANDS = f"{PREFIX}/{SCOPE}/commands"
TIGHTEN_ACTION = {
    "name": "tighten",
    "step": "Tighten",
    "qualifier": "N",
    "interaction": "push_command",
    "type_id": TIGHTEN,
}
TIGHTENING = {
    "steps": [{"name": "Tighten", "initial": True}, {"name": "Done"}],
    "transitions": [{"source": "Tighten", "target": "Done", "condition": "always"}],
    "actions": [TIGHTEN_ACTION],
}
"""A recipe with one command."""


@dataclass(frozen=True)
class Answer:
    """The answer to a call of the MES."""

    status: int | None
    attributes: dict[str, str]
    data: Any
    seconds: float


class Mes:
    """A MES: it calls methods, pushes Work Masters and keeps what the station publishes."""

    def __init__(self, port: int, client_id: str = "mes", scope: str = SCOPE) -> None:
        self.scope = scope
        self.client = MqttClient(port, client_id, session_expiry=3600)
        self.answers = f"{PREFIX}/answers/{client_id}"
        self.retains = False
        """Whether its calls have RETAIN."""

    def open(self) -> None:
        """Connect and subscribe to answers, events and retained topics."""
        self.client.connect()
        for topic in (self.answers, f"{PREFIX}/{self.scope}/events", f"{PREFIX}/{self.scope}/result/+"):
            self.client.subscribe(topic)

    def send(self, event_type: str, data: object, **attributes: str) -> bytes:
        """Send a call, return its correlation data."""
        correlation = uuid.uuid4().bytes
        call = {
            "specversion": "1.0",
            "id": str(uuid.uuid4()),
            "source": "/mes",
            "type": event_type,
            "subject": self.scope,
        }
        self.client.publish(
            f"{PREFIX}/{self.scope}/commands",
            json.dumps(data),
            call | attributes,
            response_topic=self.answers,
            correlation_data=correlation,
            retain=self.retains,
        )
        return correlation

    def answer_to(self, correlation: bytes) -> Received | None:
        """Return the answer to a call, None while there is none."""
        return next(
            (received for received in list(self.client.received) if received.correlation_data == correlation), None
        )

    def call(self, method: str, data: object, *, deadline: float = 60.0, **attributes: str) -> Answer:
        """Call a method and wait for its answer."""
        return self._ask(METHOD.format(method), data, deadline, attributes)

    def ask(self, event_type: str, data: object, *, deadline: float = 60.0) -> Answer:
        """Call a method of this product by its type and wait for its answer."""
        return self._ask(event_type, data, deadline, {})

    def configure(self, work_master: str = "WM-1", recipe: object = TIGHTENING) -> None:
        """Push a Work Master with a recipe."""
        item = {"ID": work_master, "data": recipe, "dataschema": RECIPE_SCHEMA}
        answer = self._ask(SETTING.format("workmaster"), [item], 60.0, {"method": "PUT"})
        assert "mdcserrorkind" not in answer.attributes, answer

    def start_job(self, job_order_id: str, **attributes: str) -> Answer:
        """Call StoreAndStart for a job of the Work Master."""
        return self._ask(METHOD.format("StoreAndStart"), order(job_order_id), 60.0, attributes)

    def states(self, job_order_id: str) -> list[str]:
        """Return the states that the status events of a job reported, each event once."""
        events: dict[str, str] = {}
        for item in list(self.client.received):
            if item.attributes.get("type", "").endswith(STATUS_EVENT):
                data = item.data
                if data["JobOrder"]["JobOrderID"] == job_order_id:
                    events[item.attributes["id"]] = data["JobState"][0]["StateText"]["Text"]
        return list(events.values())

    def wait_for_state(self, job_order_id: str, state: str, deadline: float = 60.0) -> None:
        """Wait until a job has reported a state."""
        self.client.wait(lambda: state in self.states(job_order_id), f"{job_order_id} is {state}", deadline)

    def result(self, job_order_id: str) -> Any:
        """Return the job response that is retained; None where there is none."""
        topic = f"{PREFIX}/{self.scope}/result/{job_order_id}"
        payloads = [received.payload for received in list(self.client.received) if received.topic == topic]
        return json.loads(payloads[-1]) if payloads and payloads[-1] else None

    def _ask(self, event_type: str, data: object, deadline: float, attributes: dict[str, str]) -> Answer:
        correlation = self.send(event_type, data, **attributes)
        began = time.monotonic()
        self.client.wait(lambda: self.answer_to(correlation), f"an answer to {event_type}", deadline)
        received = self.answer_to(correlation)
        assert received
        body = json.loads(received.payload) if received.payload else None
        status = body.get("ReturnStatus") if isinstance(body, dict) else None
        return Answer(status, received.attributes, body, received.at - began)


def order(job_order_id: str) -> dict[str, Any]:
    """Return the payload of Store and StoreAndStart."""
    return {"JobOrder": {"JobOrderID": job_order_id, "WorkMasterID": [{"ID": "WM-1"}]}}


class Wrench:
    """A tightening tool: it drops a command it has seen, answers each once unless it holds."""

    def __init__(self, port: int, name: str = "wrench", *, session_expiry: int = 0) -> None:
        self.client = MqttClient(port, f"tool-{name}", session_expiry=session_expiry)
        self.topic = f"{PREFIX}/equipment/{name}"
        self.holds = False
        self.trace = ""
        """A trace that each result holds."""
        self.torque: Callable[[], float] = lambda: 85.2
        """Returns the torque of the next tightening, in Nm."""
        self.commands: list[Received] = []
        self.client.on_message = self._take

    def open(self) -> None:
        """Connect and subscribe to commands."""
        self.client.connect()
        self.client.subscribe(f"{self.topic}/commands")

    def starts(self) -> list[str]:
        """Return the ids of the commands to start, each delivery of them."""
        return [command.attributes["id"] for command in self.commands if command.attributes.get("phase") == "start"]

    def release(self) -> None:
        """Answer every command that was held, and those to come."""
        self.holds = False
        for command in list(self.commands):
            self._answer(command)

    def _take(self, received: Received) -> None:
        self.commands.append(received)
        if not self.holds:
            self._answer(received)

    def _answer(self, command: Received) -> None:
        attributes = {
            "specversion": "1.0",
            "id": str(uuid.uuid4()),
            "source": f"/{self.topic}",
            "type": command.attributes.get("type", ""),
            "causationid": command.attributes.get("id", ""),
        }
        if command.response_topic:
            self.client.publish(
                command.response_topic,
                json.dumps({"torque": {"value": self.torque(), "unit": "Nm"}, "trace": self.trace}),
                attributes,
                correlation_data=command.correlation_data,
                confirm=None,
            )

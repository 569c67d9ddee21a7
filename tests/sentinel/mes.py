"""A MES that repeats each call, as it was, until it is answered, and now and then once more after its answer."""

import json
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tests.outside.mqtt_client import MqttClient, Received
from tests.outside.plant import METHOD, RECIPE_SCHEMA, SETTING, STATUS_EVENT
from tests.outside.servers import PREFIX, SCOPE

ACCEPTED, UNABLE = 1, 16
REPEAT_S = 1.0
RESOLVE = "com.github.aschamberger.microdcs.resolve.v1"
_COMMANDS = f"{PREFIX}/{SCOPE}/commands"
_ANSWERS = f"{PREFIX}/answers/mes"


@dataclass(slots=True)
class Call:
    """A call: its message stays the same each time; `answers` are those of all gateways with their instants."""

    payload: str
    attributes: dict[str, str]
    correlation: bytes
    sent: int = 0
    answers: list[tuple[float, int | None]] = field(default_factory=list)

    @property
    def status(self) -> int | None:
        """The status of its first answer; None while there is none."""
        return self.answers[0][1] if self.answers else None


class Mes:
    """`orders` are the calls that ordered a job, `events` the status events of each job in order."""

    def __init__(self, port: int, recipe: object) -> None:
        self.orders: dict[str, Call] = {}
        self.events: dict[str, list[tuple[float, str, str]]] = {}
        self.refused: list[tuple[str, int | None]] = []
        self.configured = 0
        self._recipe = recipe
        self._calls: dict[bytes, Call] = {}
        self._numbers = 0
        self._changed = threading.Condition()
        self._client = MqttClient(port, "mes", session_expiry=3600)
        self._client.on_message = self._take

    def open(self) -> None:
        """Connect, subscribe, and send the recipe."""
        self._client.connect()
        self._client.subscribe(_ANSWERS)
        self._client.subscribe(f"{PREFIX}/{SCOPE}/events")
        self.configure()

    def close(self) -> None:
        """Disconnect."""
        self._client.close()

    def configure(self) -> None:
        """Send the Work Master."""
        item = {"ID": "WM-1", "data": self._recipe, "dataschema": RECIPE_SCHEMA}
        call = self._call(SETTING.format("workmaster"), [item], "configure", method="PUT")
        assert self._until_answered(call, 120), "the Work Master was not accepted"
        self.configured += 1

    def order(self, job_id: str, deadline: float = 120.0, **fields: str) -> bool:
        """Order a job, with further fields of its order; return whether it was accepted in time."""
        end = time.monotonic() + deadline
        while time.monotonic() < end:
            payload = {"JobOrder": {"JobOrderID": job_id, "WorkMasterID": [{"ID": "WM-1"}], **fields}}
            call = self.orders[job_id] = self._call(METHOD.format("StoreAndStart"), payload, f"order {job_id}")
            if not self._until_answered(call, end - time.monotonic()):
                return False
            if call.status == ACCEPTED:
                return True
            self.refused.append((job_id, call.status))
            if call.status == UNABLE:
                self.configure()
        return False

    def repeat(self, job_id: str) -> None:
        """Send the order of a job again as it was: no MES knows that its call was answered to another client."""
        self._send(self.orders[job_id])

    def resolve(self, job_id: str, action: str, resolution: str) -> bool:
        """Decide about an action of unknown outcome; return whether there was one."""
        data = {
            "JobOrderID": job_id,
            "Action": action,
            "Resolution": resolution,
            "By": "anna",
            "Reason": "seen at the tool",
            "Data": {"torque": 85.2},
        }
        call = self._call(RESOLVE, data, f"resolve {job_id}")
        return self._until_answered(call, 30) and call.status == ACCEPTED

    def accepted(self) -> dict[str, float]:
        """Return the jobs that any gateway has accepted, with the instant of the first such answer."""
        instants = {
            job: min((at for at, status in list(call.answers) if status == ACCEPTED), default=None)
            for job, call in self.orders.copy().items()
        }
        return {job: at for job, at in instants.items() if at is not None}

    def states(self, job_id: str) -> list[str]:
        """Return the states of the distinct events of a job, in the order of their first delivery."""
        distinct: dict[str, str] = {}
        for _, event_id, state in list(self.events.get(job_id, ())):
            distinct.setdefault(event_id, state)
        return list(distinct.values())

    def has_ended(self, job_id: str) -> bool:
        """Return whether the end of a job was published."""
        return any(state in {"Ended", "Aborted"} for _, _, state in self.events.get(job_id, ()))

    def ends_after(self, instant: float) -> bool:
        """Return whether the end of any job was published after an instant."""
        return any(
            at > instant and state == "Ended" for events in list(self.events.values()) for at, _, state in list(events)
        )

    def wait(self, condition: Any, deadline: float) -> bool:
        """Wait for a condition that messages make true; return whether it is."""
        with self._changed:
            return bool(self._changed.wait_for(condition, deadline))

    def _call(self, event_type: str, data: object, name: str, **attributes: str) -> Call:
        with self._changed:
            self._numbers += 1
            number = self._numbers
        named = {
            "specversion": "1.0",
            "id": f"{name} {number}",
            "source": "/mes",
            "type": event_type,
            "subject": SCOPE,
            "time": datetime.now(UTC).isoformat(),
        }
        call = Call(json.dumps(data), named | attributes, f"{number:016d}".encode())
        self._calls[call.correlation] = call
        return call

    def _until_answered(self, call: Call, deadline: float) -> bool:
        end = time.monotonic() + deadline
        while not call.answers and time.monotonic() < end:
            self._send(call)
            self.wait(lambda: call.answers, REPEAT_S)
        return bool(call.answers)

    def _send(self, call: Call) -> None:
        call.sent += 1
        self._client.publish(
            _COMMANDS,
            call.payload,
            call.attributes,
            response_topic=_ANSWERS,
            correlation_data=call.correlation,
            confirm=None,
        )

    def _take(self, received: Received) -> None:
        with self._changed:
            if received.topic == _ANSWERS:
                call = self._calls.get(received.correlation_data or b"")
                body = received.data if received.payload else None
                status = body.get("ReturnStatus") if isinstance(body, dict) else None
                if call and (status is not None or "mdcserrorkind" not in received.attributes):
                    call.answers.append((received.at, status))
            elif received.attributes.get("type", "").endswith(STATUS_EVENT):
                data = received.data
                state = data["JobState"][0]["StateText"]["Text"]
                job_id = data["JobOrder"]["JobOrderID"]
                self.events.setdefault(job_id, []).append((received.at, received.attributes["id"], state))
            self._changed.notify_all()

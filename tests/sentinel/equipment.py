"""Equipment with a log of its own: what it has physically done is the truth of the campaign."""

import json
import threading
import time
import uuid
from collections import Counter
from dataclasses import dataclass

from tests.outside.mqtt_client import MqttClient, Received
from tests.outside.servers import PREFIX

WORK_S = 0.15


@dataclass(frozen=True, slots=True)
class Work:
    """A work that has begun, physically."""

    at: float
    command_id: str
    job_id: str
    action: str


class Tool:
    """A tool over MQTT, by docs/reference/equipment.md alone.

    With a memory it drops an id that it has seen and repeats its answer. Without one it works for each start that it
    receives: the settings declare it as `once`.
    """

    def __init__(self, port: int, name: str, type_id: str, *, remembers: bool) -> None:
        self.name = name
        self.type_id = type_id
        self.remembers = remembers
        self.begun: list[Work] = []
        self.starts: list[float] = []
        """The instant of each start that came for the first time."""
        self._topic = f"{PREFIX}/equipment/{name}"
        self._client = MqttClient(port, f"tool-{uuid.uuid4()}", session_expiry=3600)
        self._client.on_message = self._take
        self._answers: dict[tuple[str, str], dict[str, str] | None] = {}
        self._guard = threading.Lock()

    @property
    def settings(self) -> str:
        """Its section in the settings of a gateway."""
        repetition = "recognisable" if self.remembers else "once"
        return (
            f'[southbound.{self.name}]\ntype_ids = ["{self.type_id}"]\ntopic_prefix = "{PREFIX}/equipment"\n'
            f'repetition = "{repetition}"\n'
        )

    def open(self) -> None:
        """Connect and subscribe to commands."""
        self._client.connect()
        self._client.subscribe(f"{self._topic}/commands")
        self._client.publish(f"{self._topic}/presence", b"online", {}, retain=True)

    def close(self) -> None:
        """Disconnect."""
        self._client.close()

    def works(self) -> Counter[tuple[str, str]]:
        """Return how often each action of a job was physically done."""
        return Counter((work.job_id, work.action) for work in list(self.begun))

    def _take(self, received: Received) -> None:
        key = (received.attributes["id"], received.attributes["phase"])
        with self._guard:
            is_new = key not in self._answers
            answer = self._answers.setdefault(key, None)
            if is_new and key[1] == "start":
                self.starts.append(received.at)
        if key[1] == "start" and (is_new or not self.remembers):
            data = received.data
            self.begun.append(Work(time.monotonic(), key[0], data["job_id"], data["action"]))
            timer = threading.Timer(WORK_S, self._answer, (received, {}))
            timer.daemon = True
            timer.start()
        elif key[1] == "stop" and is_new:
            self._answer(received, {"mdcserrorkind": "stopped", "mdcserrormessage": "stopped on request"})
        elif key[1] == "reset" and is_new:
            self._answer(received, {})
        elif answer is not None:
            self._answer(received, answer)

    def _answer(self, command: Received, error: dict[str, str]) -> None:
        command_id, phase = command.attributes["id"], command.attributes["phase"]
        with self._guard:
            self._answers[command_id, phase] = error
        attributes = {
            "specversion": "1.0",
            "id": f"{command_id}/{phase}/answer",
            "source": f"/{self._topic}",
            "type": command.attributes["type"],
            "causationid": command_id,
            **error,
        }
        assert command.response_topic
        self._client.publish(
            command.response_topic,
            json.dumps({"torque": 85.2} if not error else {}),
            attributes,
            correlation_data=command.correlation_data,
            confirm=None,
        )

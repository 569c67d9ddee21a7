"""A tightening tool over MQTT, by paho and docs/reference/equipment.md alone, with faults and a physical log."""

import json
import threading
import uuid
from collections.abc import Mapping
from enum import StrEnum

from tests.outside.mqtt_client import MqttClient, Received


class DeviceFault(StrEnum):
    """What a device does wrong."""

    NONE = "none"
    IGNORES_STOPS = "ignores stops"
    GOES_ON_AFTER_A_STOP = "confirms a stop and continues"
    WORKS_AGAIN = "works again for a start that it has answered"
    WORKS_TWICE_AT_ONCE = "works again for a start that it is working on"
    IGNORES_THE_LOCK = "works without permission"
    IGNORES_OTHER_PARAMETERS = "answers a start of a known id with other parameters as the first"


class MqttDevice:
    """A tool on `topic`; `begun` counts the works of each command, `ended` those that were not stopped."""

    def __init__(
        self,
        port: int,
        topic: str,
        fault: DeviceFault,
        *,
        lock: bool,
        work_s: float,
        login: tuple[str, str] | None = None,
    ) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []
        self._client = MqttClient(port, f"device-{uuid.uuid4()}", login=login)
        self._topic = topic
        self._fault = fault
        self._lock = lock
        self._work_s = work_s
        self._enabled = False
        self._answered: dict[tuple[str, str], Mapping[str, str]] = {}
        self._payloads: dict[str, bytes] = {}
        self._at_work: dict[str, threading.Event] = {}
        self._guard = threading.Lock()
        self._client.on_message = self._take

    def open(self) -> None:
        """Connect, subscribe and say that it is there."""
        self._client.connect()
        self._client.subscribe(f"{self._topic}/enabled")
        self._client.subscribe(f"{self._topic}/commands")
        self._client.publish(f"{self._topic}/presence", b"online", {}, retain=True)

    def close(self) -> None:
        """Disconnect, once no work is left."""
        for stopped in list(self._at_work.values()):
            stopped.set()
        self._client.close()

    def _take(self, received: Received) -> None:
        if received.topic.endswith("/enabled"):
            self._enabled = received.payload == b"true"
            return
        command_id, phase = received.attributes["id"], received.attributes["phase"]
        with self._guard:
            known = self._answered.get((command_id, phase))
            at_work = command_id in self._at_work
            payload = self._payloads.setdefault(command_id, received.payload) if phase == "start" else b""
        is_other = phase == "start" and payload != received.payload
        match phase:
            case "start" if is_other and self._fault is not DeviceFault.IGNORES_OTHER_PARAMETERS:
                self._send(received, {"mdcserrorkind": "repeated_id", "mdcserrormessage": "known with others"})
            case "start" if known is not None and self._fault is not DeviceFault.WORKS_AGAIN:
                self._answer(received, known)
            case "start" if at_work and self._fault is not DeviceFault.WORKS_TWICE_AT_ONCE:
                return
            case "start" if self._lock and not self._enabled and self._fault is not DeviceFault.IGNORES_THE_LOCK:
                self._answer(received, {"mdcserrorkind": "disabled", "mdcserrormessage": "no permission"})
            case "start":
                self._at_work[command_id] = threading.Event()
                threading.Thread(target=self._work, args=(received, self._at_work[command_id]), daemon=True).start()
            case "stop" if self._fault is DeviceFault.IGNORES_STOPS:
                return
            case "stop":
                if at_work and self._fault is not DeviceFault.GOES_ON_AFTER_A_STOP:
                    self._at_work[command_id].set()
                self._answer(received, {"mdcserrorkind": "stopped", "mdcserrormessage": "stopped on request"})
            case "reset":
                self._answer(received, {})
            case _:
                return

    def _work(self, command: Received, stopped: threading.Event) -> None:
        command_id = command.attributes["id"]
        with self._guard:
            self.begun.append(command_id)
        was_stopped = stopped.wait(self._work_s)
        with self._guard:
            self._at_work.pop(command_id, None)
        if not was_stopped:
            with self._guard:
                self.ended.append(command_id)
            self._answer(command, {})

    def _answer(self, command: Received, error: Mapping[str, str]) -> None:
        command_id, phase = command.attributes["id"], command.attributes["phase"]
        with self._guard:
            self._answered[command_id, phase] = error
        self._send(command, error)

    def _send(self, command: Received, error: Mapping[str, str]) -> None:
        """Send a result or an error; it is not remembered."""
        command_id, phase = command.attributes["id"], command.attributes["phase"]
        data = {} if error else {"reset": True} if phase == "reset" else {"torque": 85.2}
        attributes = {
            "specversion": "1.0",
            "id": f"{command_id}/answer",
            "source": f"/{self._topic}",
            "type": command.attributes["type"],
            "causationid": command_id,
            **error,
        }
        assert command.response_topic
        self._client.publish(
            command.response_topic,
            json.dumps(data),
            attributes,
            correlation_data=command.correlation_data,
            confirm=None,
        )

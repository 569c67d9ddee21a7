"""A plant whose gateway has rules, a source of samples and a mirror, as a MES and sensors of other vendors see it."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.outside.mqtt_client import MqttClient
from tests.outside.plant import Mes, Wrench
from tests.outside.servers import PREFIX, SCOPE, Broker, Gateway, Store

CHANGES = "microdcs-edge:alarms:changes"
RULES = [
    {"id": "early", "kind": "occurs", "pattern": "carriers.left", "while": "job.running", "severity": 700},
    {
        "id": "hot",
        "kind": "limit",
        "tag": "*.temp",
        "limits": {"high": {"at": 80, "severity": 500}, "high_high": {"at": 95, "severity": 800}},
        "hysteresis": 5,
        "on_delay_seconds": 0.5,
        "message": {"en": "{subject} has {value} °C", "de": "{subject}: {value} °C"},
    },
    {
        "id": "drift",
        "kind": "control_chart",
        "tag": "wrench.torque",
        "mean": 80,
        "sigma": 1,
        "nelson": [6],
        "severity": 400,
    },
    {
        "id": "drift-2",
        "kind": "control_chart",
        "tag": "wrench.torque",
        "mean": 80,
        "sigma": 1,
        "nelson": [2],
        "severity": 300,
    },
    {
        "id": "stop",
        "kind": "limit",
        "tag": "line.stop",
        "limits": {"high": {"at": 0, "severity": 900}},
        "action": "abort",
    },
    {
        "id": "strong",
        "kind": "limit",
        "tag": "wrench.torque",
        "subject": "job",
        "limits": {"high": {"at": 99, "severity": 350}},
        "message": "{job}: {data.action} of {subject}",
    },
    {
        "id": "hold",
        "kind": "limit",
        "tag": "line.hold",
        "limits": {"high": {"at": 0, "severity": 600}},
        "action": "pause",
    },
]


@dataclass
class TelemetryPlant:
    """A plant whose gateway has rules and a source of samples."""

    broker: Broker
    store: Store
    gateway: Gateway
    mes: Mes
    wrench: Wrench
    sensor: MqttClient
    line: Store
    """The Redis of the line controller."""

    def send(self, name: str, value: object) -> None:
        """Publish a sample of a sensor."""
        self.sensor.publish(f"sensors/{name}", json.dumps({"v": value}), {})

    def changes(self, rule: str, subject: str) -> list[str]:
        """Return the changes of an alarm that the MES received, each event once."""
        events = {
            received.attributes["id"]: received.data
            for received in list(self.mes.client.received)
            if received.topic == f"{PREFIX}/{SCOPE}/alarms"
        }
        return [
            event["kind"]
            for event in events.values()
            if (event["alarm"]["rule"], event["alarm"]["subject"]) == (rule, subject)
        ]

    def has_come(self, rule: str, subject: str) -> bool:
        """Return whether an alarm was raised and cleared."""
        return self.changes(rule, subject) == ["raised", "cleared"]

    def has_changes(self, count: int) -> bool:
        """Return whether the store has so many changes of alarms."""
        return int(self.store.cli("XLEN", CHANGES)) >= count

    def retained(self, rule: str, subject: str) -> dict[str, Any] | None:
        """Return an alarm as a new client reads it; None when there is none."""
        client = MqttClient(self.broker.port, f"look-{time.monotonic_ns()}")
        client.connect()
        try:
            client.subscribe(f"{PREFIX}/{SCOPE}/alarm/+")
            client.subscribe(f"{PREFIX}/echo")
            client.publish(f"{PREFIX}/echo", "x", {})
            client.wait(
                lambda: any(received.topic == f"{PREFIX}/echo" for received in list(client.received)), "the echo"
            )
            found = [
                received.data["alarm"]
                for received in list(client.received)
                if "/alarm/" in received.topic and received.payload
            ]
        finally:
            client.close()
        return next((value for value in found if (value["rule"], value["subject"]) == (rule, subject)), None)

    def wait_for(self, condition: Callable[[], object], what: str) -> None:
        self.mes.client.wait(condition, what)

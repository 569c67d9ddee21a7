"""The station as an edge node of Sparkplug B, seen by a host on npm packages."""

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.outside.mqtt_client import MqttClient
from tests.outside.servers import Broker, Gateway, Store, ended, wait_for

ROOT = Path(__file__).parents[2]


@contextmanager
def host_at(port: int) -> Iterator[list[dict[str, Any]]]:
    """Run a host; yield the messages that it receives."""
    received: list[dict[str, Any]] = []
    environment = {"PATH": os.environ["PATH"], "NODE_PATH": str(ROOT / ".node" / "node_modules")}
    command = ["node", str(ROOT / "tests" / "features" / "sparkplug" / "host.js"), str(port)]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout
        lines = host.stdout
        listener = threading.Thread(target=lambda: received.extend(map(json.loads, lines)))
        listener.start()
        try:
            wait_for(lambda: received, "the host has subscribed")
            yield received
        finally:
            host.kill()
            listener.join()


def of(received: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """Return the messages of a kind."""
    return [entry["payload"] for entry in received if f"/{kind}/" in entry.get("topic", "")]


def birth_numbers(payloads: list[dict[str, Any]]) -> list[int]:
    """Return the birth numbers of certificates, each once: a new tag of the gateway is a reason for another birth."""
    found = [metric["value"] for payload in payloads for metric in payload["metrics"] if metric["name"] == "bdSeq"]
    return list(dict.fromkeys(found))


@pytest.mark.slow
def test_killed_edge_node_sends_its_will_and_a_birth_with_the_next_bdseq(tmp_path: Path) -> None:
    broker, store = Broker(tmp_path / "broker"), Store(tmp_path / "store")
    with ended(broker, store):
        broker.start()
        store.start()
        gateway = Gateway(
            tmp_path / "gateway",
            "edge",
            f'[redis]\nurl = "unix://{store.socket}"\n[mqtt]\nurl = "mqtt://127.0.0.1:{broker.port}"\n'
            '[opcua]\nendpoint = ""\n'
            '[source.sensors]\ntopic = "sensors/+"\ntag = "press.{2}"\n[sparkplug]\ngroup = "plant"\n',
        )
        sensor = MqttClient(broker.port, "sensor")
        sensor.connect()
        with ended(gateway), host_at(broker.port) as received:
            gateway.start()
            sensor.publish("sensors/oil", "41.5", {})
            wait_for(lambda: of(received, "DBIRTH"), "the device is born")
            gateway.kill()
            wait_for(lambda: of(received, "NDEATH"), "the broker publishes the will")
            sensor.publish("sensors/oil", "42.5", {})
            since = len(received)
            gateway.start()
            wait_for(lambda: any(metric["value"] == 42.5 for metric in _metrics(received[since:])), "the missed sample")
            gateway.stop()
            wait_for(lambda: len(of(received, "NDEATH")) > 1, "the edge node publishes its end")
        sensor.close()
    assert birth_numbers(of(received, "NBIRTH")) == [0, 1]
    assert birth_numbers(of(received, "NDEATH")) == [0, 1]


def _metrics(received: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [metric for kind in ("DBIRTH", "DDATA") for payload in of(received, kind) for metric in payload["metrics"]]

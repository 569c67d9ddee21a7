"""Flows run on real gateways: values reach the broker, and no kill of a gateway repeats an action."""

import contextlib
import itertools
import json
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.outside.mqtt_client import MqttClient
from tests.outside.servers import EDGE, PREFIX, Broker, Gateway, Store, ended, wait_for


class Counter:
    """A server of another vendor that counts what is posted to it; `holds` keeps it from answering."""

    def __init__(self) -> None:
        self.posted: list[str] = []
        self.holds = False
        counter = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                self.rfile.read(length)
                counter.posted.append(self.headers["Idempotency-Key"])
                while counter.holds:
                    time.sleep(0.02)
                self.send_response(200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                with contextlib.suppress(OSError):
                    self.wfile.write(b"{}")

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/"

    def close(self) -> None:
        """Stop it."""
        self.holds = False
        self._server.shutdown()
        self._server.server_close()


@dataclass
class FlowPlant:
    """A broker, a store and the gateways on it."""

    directory: Path
    broker: Broker
    store: Store
    counter: Counter
    gateways: dict[str, Gateway] = field(default_factory=dict)

    def start(self, name: str) -> Gateway:
        """Start a gateway that runs flows."""
        if name not in self.gateways:
            settings = (
                f'[redis]\nurl = "unix://{self.store.socket}"\n[mqtt]\nurl = "mqtt://127.0.0.1:{self.broker.port}"\n'
                f'[northbound]\ntopic_prefix = "{PREFIX}"\n[opcua]\nendpoint = ""\n[flows]\nrun = "on"\n'
            )
            self.gateways[name] = Gateway(self.directory / name, name, settings)
        self.gateways[name].start()
        return self.gateways[name]

    def edge(self, *arguments: str) -> str:
        """Call `edge flows` with the settings of the first gateway."""
        settings = next(iter(self.gateways.values())).settings
        command = [str(EDGE), "flows", *arguments, "--settings", str(settings)]
        found = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert found.returncode == 0, found.stderr
        return found.stdout

    def put(self, document: dict[str, Any]) -> None:
        """Register and start a flow."""
        file = self.directory / "flow.json"
        file.write_text(json.dumps(document))
        self.edge("put", str(file), "--start")

    def task(self, flow: str, cycle: int, node: str) -> dict[str, Any]:
        """Read a node task as it is stored."""
        found: dict[str, Any] = json.loads(
            self.store.cli("get", f"microdcs-edge:node_tasks:{flow}_{cycle}_{node}") or "{}"
        )
        return found

    def wait_for(self, flow: str, cycle: int, node: str, status: str) -> dict[str, Any]:
        """Wait for the state of a node task."""
        wait_for(lambda: self.task(flow, cycle, node).get("status") == status, f"{node} is {status}")
        return self.task(flow, cycle, node)


@pytest.fixture
def plant(tmp_path: Path) -> Iterator[FlowPlant]:
    """A plant without a gateway yet."""
    broker, store, counter = Broker(tmp_path / "broker"), Store(tmp_path / "store"), Counter()
    found = FlowPlant(tmp_path, broker, store, counter)
    with ended(broker, store), contextlib.ExitStack() as stack:
        stack.callback(counter.close)
        broker.start()
        store.start()
        yield found
        for gateway in found.gateways.values():
            gateway.kill()


def chain(flow: str, *nodes: dict[str, Any], **members: Any) -> dict[str, Any]:
    """Return a flow whose nodes follow each other."""
    ids = [node["id"] for node in nodes]
    return {"id": flow, "nodes": nodes, "edges": list(itertools.pairwise(ids)), **members}


def node(name: str, kind: str, **config: Any) -> dict[str, Any]:
    """Return a node."""
    return {"id": name, "kind": kind, "config": config}


VALUES = node("values", "constant", value=[2, 4, 6])


def test_mean_is_published_in_every_cycle(plant: FlowPlant) -> None:
    client = MqttClient(plant.broker.port, "reader")
    client.connect()
    client.subscribe("plant/press/mean")
    plant.start("edge")
    mean, publish = node("mean", "aggregate", of="mean"), node("publish", "mqtt.publish", topic="plant/press/mean")
    plant.put(chain("press-report", VALUES, mean, publish, interval_seconds=0.2))
    client.wait(lambda: len(client.received) >= 3, "three cycles have published")
    client.close()
    assert {message.data for message in client.received} == {4.0}
    assert int(plant.store.cli("hget", "microdcs-edge:flow:press-report", "last_cycle")) >= 2


def test_action_is_not_repeated_after_a_kill(plant: FlowPlant) -> None:
    plant.counter.holds = True
    gateway = plant.start("edge")
    plant.put(
        chain("order", VALUES, {**node("post", "http.post", url=plant.counter.url), "retries": 9}, interval_seconds=0)
    )
    wait_for(lambda: plant.counter.posted, "the value is posted")
    gateway.kill()
    plant.start("edge")
    assert plant.wait_for("order", 0, "post", "failed")["reason"] == "interrupted"
    assert plant.counter.posted == ["order_0_post"]


def test_second_gateway_takes_over_the_cycle_of_a_killed_one(plant: FlowPlant) -> None:
    first = plant.start("first")
    later = node("later", "delay", seconds=2)
    plant.put(chain("order", VALUES, later, node("post", "http.post", url=plant.counter.url), interval_seconds=0))
    plant.wait_for("order", 0, "later", "running")
    plant.start("second")
    first.kill()
    assert plant.wait_for("order", 0, "post", "completed")["attempts"] == 1
    assert plant.task("order", 0, "later")["attempts"] == 2
    assert plant.store.cli("hget", "microdcs-edge:flow:order:cycle:0", "owner") == "second"
    assert plant.counter.posted == ["order_0_post"]


def test_deleted_flow_leaves_no_key(plant: FlowPlant) -> None:
    def keys() -> set[str]:
        found = set(plant.store.cli("--scan").split("\n"))
        return {key for key in found if "flow" in key or "node_tasks" in key} - {"microdcs-edge:flows:signals"}

    plant.start("edge")
    assert keys() == set()
    plant.put(chain("order", VALUES, node("again", "delay", seconds=0), interval_seconds=0.05))
    wait_for(lambda: "microdcs-edge:flow:order:cycle:3" in keys(), "three cycles have run")
    plant.edge("delete", "order")
    assert keys() == set()

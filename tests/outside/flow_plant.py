"""Real gateways that run flows, the broker and store they share, and a server that counts what is posted to it."""

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

from tests.outside.plant import TIGHTEN
from tests.outside.servers import EDGE, PREFIX, Broker, Clock, Gateway, Server, Store, ended, wait_for

SENSORS = '[source.sensors]\ntopic = "sensors/+"\npointer = "/v"\ntag = "{2}"\n'
EQUIPMENT = f'[southbound.wrench]\ntype_ids = ["{TIGHTEN}"]\ntopic_prefix = "{PREFIX}/equipment"\n'


class Counter:
    """A server of another vendor that counts what is posted to it; `holds` and `slow_s` delay its answers."""

    def __init__(self) -> None:
        self.posted: list[str] = []
        self.holds = False
        self.slow_s = 0.0
        counter = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                self.rfile.read(length)
                counter.posted.append(self.headers["Idempotency-Key"].rpartition("@")[0])
                time.sleep(counter.slow_s)
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


class Worker(Server):
    """A process of `edge worker`."""

    def start(self, name: str, settings: Path) -> None:
        """Start it and wait until it takes tasks."""
        command: list[str | Path] = [EDGE, "worker", "--name", name, "--lease", "2", "--settings", settings]
        self.launch(command, lambda: "runs" in self.log.read_text())


@dataclass
class FlowPlant:
    """A broker, a store and the gateways on it."""

    directory: Path
    broker: Broker
    store: Store
    counter: Counter
    gateways: dict[str, Gateway] = field(default_factory=dict)
    workers: list["Worker"] = field(default_factory=list)
    telemetry: str = ""
    """More of the section [telemetry]."""
    flows: str = ""
    """More of the section [flows]."""
    opcua: str = 'endpoint = ""'
    """The section [opcua]."""

    @property
    def nodes(self) -> Path:
        """The folder of the node kinds of the site."""
        return self.directory / "nodes"

    def start(self, name: str) -> Gateway:
        """Start a gateway that runs flows."""
        if name not in self.gateways:
            settings = (
                f'[redis]\nurl = "unix://{self.store.socket}"\n[mqtt]\nurl = "mqtt://127.0.0.1:{self.broker.port}"\n'
                f'[northbound]\ntopic_prefix = "{PREFIX}"\n[opcua]\n{self.opcua}\n[flows]\nrun = "on"\n{self.flows}'
                f'nodes = "{self.nodes}"\n[telemetry]\nmode = "on"\n{self.telemetry}{SENSORS}{EQUIPMENT}'
            )
            self.gateways[name] = Gateway(self.directory / name, name, settings)
        self.gateways[name].start()
        return self.gateways[name]

    def start_worker(self, name: str) -> "Worker":
        """Start a worker."""
        worker = Worker(self.directory / name)
        self.workers.append(worker)
        worker.start(name, next(iter(self.gateways.values())).settings)
        return worker

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


@contextlib.contextmanager
def open_flow_plant(directory: Path, clock: Clock | None = None) -> Iterator[FlowPlant]:
    """Start broker and store, which may have a clock of its own; gateways are started by the test."""
    broker, store, counter = Broker(directory / "broker"), Store(directory / "store", clock), Counter()
    flow_plant = FlowPlant(directory, broker, store, counter)
    flow_plant.nodes.mkdir()
    with ended(broker, store), contextlib.ExitStack() as stack:
        stack.callback(counter.close)
        broker.start()
        store.start()
        try:
            yield flow_plant
        finally:
            for worker in (*flow_plant.workers, *flow_plant.gateways.values()):
                worker.kill()


def chain(flow: str, *nodes: dict[str, Any], **members: Any) -> dict[str, Any]:
    """Return a flow whose nodes follow each other."""
    ids = [node["id"] for node in nodes]
    return {"id": flow, "nodes": nodes, "edges": list(itertools.pairwise(ids)), **members}


def node(name: str, kind: str, **config: Any) -> dict[str, Any]:
    """Return a node."""
    return {"id": name, "kind": kind, "config": config}

"""A line of two gateways on a store behind Sentinel, with broker, MES and two tools, under jobs without end."""

import contextlib
import functools
import itertools
import json
import random
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from redis import RedisError

from tests.outside.servers import PREFIX, SCOPE, Broker, Clock, Gateway, build_shim, ended, wait_for
from tests.sentinel.equipment import Tool
from tests.sentinel.line import Line, open_line
from tests.sentinel.mes import Mes
from tests.sentinel.network import Network

KEY_PREFIX = "microdcs-edge"
FIT, PRESS = "com.example.station.tighten.v1", "com.example.station.press.v1"
_STEPS = {"Fit": FIT, "Press": PRESS, "Tighten": FIT, "PressAgain": PRESS, "Check": FIT}
RECIPE = {
    "steps": [{"name": name, "initial": name == "Fit"} for name in (*_STEPS, "Done")],
    "transitions": [
        {"source": source, "target": target, "condition": "always"}
        for source, target in itertools.pairwise((*_STEPS, "Done"))
    ],
    "actions": [
        {
            "name": name.lower(),
            "step": name,
            "qualifier": "N",
            "interaction": "push_command",
            "type_id": type_id,
        }
        for name, type_id in _STEPS.items()
    ],
}
"""Five commands in line: those of a tool with a memory and of one without take turns."""
ACTIONS = [name.lower() for name in _STEPS]
ONCE_ACTIONS = [name.lower() for name, type_id in _STEPS.items() if type_id == PRESS]
_LANE_WAITS_S = 20.0
_REPEATED, _REPEATED_WITHIN_S = 0.3, 5.0
"""How many orders are sent once more although they were answered, and when at the latest."""


class Station(Gateway):
    """A gateway that is started again whenever it ends, as by systemd, unless its machine is away."""

    def __init__(self, directory: Path, settings: str, environment: dict[str, str]) -> None:
        super().__init__(directory, directory.name, settings)
        self.name = directory.name
        self.environment |= environment
        self.starts = 0
        self.readies = 0
        """How often it got ready."""
        self.away = threading.Event()
        self._over = threading.Event()
        self._guard = threading.Lock()
        self._thread = threading.Thread(target=self._keep_running, name=f"keep {self.name}", daemon=True)

    def process(self) -> int | None:
        """Return its process id, None while it does not run."""
        process = self._process
        return process.pid if process else None

    def open(self) -> None:
        """Start it and keep it running."""
        self._thread.start()

    def close(self) -> None:
        """End it for good."""
        self._over.set()
        self.kill()
        self._thread.join(70)

    def lose(self) -> None:
        """Kill it; it stays away until `away` is cleared."""
        self.away.set()
        self.kill()

    def runs(self) -> bool:
        """Return whether its process runs."""
        process = self._process
        return process is not None and process.poll() is None

    def _keep_running(self) -> None:
        while not self._over.wait(0.1):
            if self.away.is_set() or self.runs():
                continue
            self.kill()
            self.starts += 1
            # It ends with an error when no store can be reached, and is started again.
            with contextlib.suppress(AssertionError):
                self.start()
                self.readies += 1

    def records(self, since: int = 0) -> list[dict[str, Any]]:
        """Return the records of its log from an offset on."""
        with self.log.open("rb") as log:
            log.seek(since)
            lines = log.read().decode(errors="replace").splitlines()
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]


@dataclass
class Plant:
    """The programs of the plant; `lanes` threads order a job each, wait for its end, and order the next one."""

    network: Network
    line: Line
    broker: Broker
    gateways: list[Station]
    mes: Mes
    tools: list[Tool]
    clocks: dict[str, Clock]
    chance: random.Random
    over: threading.Event = field(default_factory=threading.Event)
    unanswered: list[str] = field(default_factory=list)
    lost: set[str] = field(default_factory=set)
    """Jobs that the store has lost: no lane waits for them."""
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def publisher(self) -> Station:
        """Return the gateway that publishes the events of the scope; the first where none does."""
        primary = self.line.primary()
        try:
            name = primary.call("GET", f"{KEY_PREFIX}:lease:publisher:{SCOPE}") if primary else None
        except RedisError:
            name = None
        # A lease begins with the name of its holder.
        return next((gateway for gateway in self.gateways if str(name).startswith(gateway.name)), self.gateways[0])

    def stored_state(self, job_id: str) -> str | None:
        """Return the state of a job at the primary; None for one that is not stored."""
        primary = self.line.primary()
        state = primary.call("HGET", f"{KEY_PREFIX}:joborder:{job_id}", "state") if primary else None
        return None if state is None else str(state)

    def order(self) -> str:
        """Order the next job; return its id."""
        job_id = f"J{next(self._numbers)}"
        if not self.mes.order(job_id) and not self.over.is_set():
            self.unanswered.append(job_id)
        return job_id

    def start_lanes(self, lanes: int) -> list[threading.Thread]:
        """Order jobs until `over`."""
        threads = [threading.Thread(target=self._order_jobs, name=f"lane {n}", daemon=True) for n in range(lanes)]
        for thread in threads:
            thread.start()
        return threads

    def _order_jobs(self) -> None:
        while not self.over.is_set():
            job_id = self.order()
            if self.chance.random() < _REPEATED:
                self.over.wait(self.chance.uniform(0, _REPEATED_WITHIN_S))
                self.mes.repeat(job_id)
            self.mes.wait(functools.partial(self._is_over, job_id), _LANE_WAITS_S)

    def _is_over(self, job_id: str) -> bool:
        return self.over.is_set() or job_id in self.lost or self.mes.has_ended(job_id)


def _settings(line: Line, broker_port: int, tools: list[Tool], further: str) -> str:
    """Return the settings of a gateway of the line."""
    return (
        f'[redis]\nurl = "{line.url}"\n{further}[mqtt]\nurl = "mqtt://127.0.0.1:{broker_port}"\n'
        f'[northbound]\ntopic_prefix = "{PREFIX}"\n[opcua]\nendpoint = ""\n[logging]\nformat = "json"\n'
        + "".join(tool.settings for tool in tools)
    )


@contextlib.contextmanager
def open_plant(
    directory: Path, shim: Path, *, nodes: int = 3, program: str = "redis", redis: str = "", line_settings: str = ""
) -> Iterator[Plant]:
    """Run a plant with two gateways; `redis` are further lines of their section, `line_settings` those of the nodes."""
    clocks = {f"d{n}": Clock(shim, directory / f"clock-d{n}") for n in range(1, nodes + 1)}
    with contextlib.ExitStack() as stack:
        network = stack.enter_context(Network())
        line = stack.enter_context(
            open_line(directory / "line", network, nodes=nodes, program=program, clocks=clocks, further=line_settings)
        )
        broker = Broker(directory / "broker")
        stack.enter_context(ended(broker))
        broker.start()
        tools = [Tool(broker.port, "wrench", FIT, remembers=True), Tool(broker.port, "press", PRESS, remembers=False)]
        port = network.listen("broker", broker.port)
        settings = _settings(line, port, tools, redis)
        source = build_shim(Path(__file__).with_name("source_shim.c"), directory)
        gateways = [
            Station(directory / name, settings, {"LD_PRELOAD": str(source), "SOURCE_SHIM": network.add(name)})
            for name in ("first", "second")
        ]
        mes = Mes(broker.port, RECIPE)
        plant = Plant(network, line, broker, gateways, mes, tools, clocks, random.Random(1))
        for gateway in gateways:
            stack.callback(gateway.close)
            gateway.open()
        for tool in tools:
            stack.callback(tool.close)
            tool.open()
        stack.callback(mes.close)
        mes.open()
        wait_for(lambda: all("ready" in station.log.read_text() for station in gateways), "the gateways are ready", 90)
        yield plant

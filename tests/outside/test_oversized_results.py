"""A result that is too large is skipped at devices of another vendor; the next ones are collected."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest

from tests.outside.opcua_device import OpcuaDevice
from tests.outside.plant import Mes
from tests.outside.servers import PREFIX, Broker, Gateway, Store, ended, wait_for
from tests.outside.test_opcua_devices import recipe

# Three servers of node-opcua read their node sets first.
pytestmark = [pytest.mark.timeout(240), pytest.mark.slow]

DEADLINE = 60.0
LIMIT = 100_000
POINTS = 20_000
TYPES = {name: f"com.example.{name}.v1" for name in ("wrench", "plain", "eye")}
"""The type of each piece of equipment: `plain` has no list of its results, and the setting lock = "off"."""


@dataclass(frozen=True)
class Line:
    """A station with two controllers and a camera."""

    gateway: Gateway
    mes: Mes
    devices: dict[str, OpcuaDevice]

    def work(self, name: str, job: str) -> str:
        """Run a job with one command for a device, and return its response as text."""
        order = {"JobOrder": {"JobOrderID": job, "WorkMasterID": [{"ID": name}]}}
        assert self.mes.call("StoreAndStart", order).status == 1
        self.mes.wait_for_state(job, "Ended", DEADLINE)
        self.mes.client.wait(lambda: self.mes.result(job), f"the result of {job}", DEADLINE)
        return json.dumps(self.mes.result(job))

    def shown(self, name: str) -> dict[str, Any]:
        """Return what the gateway reports of a device."""
        (found,) = json.loads(self.gateway.cli("equipment", "show", name, "--json"))
        return dict(found)

    def connections(self, name: str) -> int:
        """Return how often the gateway has connected to a device."""
        lines = self.gateway.log.read_text().splitlines()
        return sum('"equipment connected"' in line and f'"equipment": "{name}"' in line for line in lines)

    def late(self, name: str) -> int:
        """Return how many results of a device no command waited for."""
        letters = json.loads(self.gateway.cli("dead-letters", "list", "--json"))
        return sum(f"equipment:{name}" in json.dumps(letter) for letter in letters if letter["kind"] == "late")

    def skipped(self, name: str) -> list[dict[str, Any]]:
        """Return the results of a device that were skipped, newest first."""
        refused = json.loads(self.gateway.cli("refused", "--last", "100", "--json"))
        return [message for message in refused if message["way"].endswith(f"equipment:{name}")]

    def wait_until_connected(self) -> None:
        """Wait until each device is connected."""
        wait_for(lambda: all(self.shown(name)["connected"] for name in TYPES), "all devices are connected", DEADLINE)


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Line]:
    directory = tmp_path_factory.mktemp("large")
    broker, store = Broker(directory / "broker"), Store(directory / "store")
    devices = {
        "wrench": OpcuaDevice(directory / "wrench", "controller", 300, "lists"),
        "plain": OpcuaDevice(directory / "plain", "controller", 300),
        "eye": OpcuaDevice(directory / "eye", "camera", 300),
    }
    broker.start()
    settings = (
        f'[redis]\nurl = "unix://{store.socket}"\n[mqtt]\nurl = "mqtt://127.0.0.1:{broker.port}"\n'
        f'[northbound]\ntopic_prefix = "{PREFIX}"\n[opcua]\nendpoint = ""\n'
    )
    for name, device in devices.items():
        settings += (
            f'[southbound.{name}]\nkind = "{"vision" if name == "eye" else "ijt"}"\ntype_ids = ["{TYPES[name]}"]\n'
            f'url = "{device.url}"\nsecurity = "none"\nmax_message_bytes = {LIMIT}\n'
        )
        settings += 'lock = "off"\n' if name == "plain" else ""
    gateway, mes = Gateway(directory / "gateway", "edge", settings), Mes(broker.port)
    with ended(gateway, broker, store, *devices.values()):
        with ThreadPoolExecutor() as pool:
            for started in [pool.submit(store.start), *(pool.submit(device.start) for device in devices.values())]:
                started.result()
        gateway.start()
        mes.open()
        for name in ("wrench", "plain"):
            mes.configure(name, recipe(TYPES[name], joining_process_id="axle 85Nm"))
        mes.configure("eye", recipe(TYPES["eye"], recipe_id="P1", part_id="4711"))
        found = Line(gateway, mes, devices)
        found.wait_until_connected()
        yield found
        mes.client.close()


@pytest.mark.parametrize("name", ["wrench", "plain"])
def test_command_with_a_result_over_the_limit_is_unknown(line: Line, name: str) -> None:
    """Its tool is disabled where the lock is on; the next command works on the same connection."""
    device, before = line.devices[name], line.connections(name)
    device.order(f"points {POINTS}")
    assert "max_message_bytes" in line.work(name, f"large {name}")
    device.order("points 0")
    large = device.values("result")[-1] if name == "wrench" else None
    assert [(message["kind"], message["id"]) for message in line.skipped(name)] == [("too_large", large)]
    wait_for(lambda: "gateway.results_skipped" in line.gateway.cli("alarms", "list", "--json"), "an alarm names it")
    assert "85.2" in line.work(name, f"small {name}")
    assert line.connections(name) == before
    assert device.values("defect") == []


def test_bolts_around_one_over_the_limit_are_reported_after_a_cut(line: Line) -> None:
    device, late, skipped = line.devices["wrench"], line.late("wrench"), len(line.skipped("wrench"))
    device.trigger()
    wait_for(lambda: line.late("wrench") == late + 1, "the bolt before the cut is a late result")
    device.cut(2000)
    for points in (0, POINTS, 0):
        device.order(f"points {points}")
        device.trigger()
    wait_for(lambda: line.late("wrench") == late + 3, "both small bolts are late results", DEADLINE)
    wait_for(lambda: len(line.skipped("wrench")) == skipped + 1, "the large one is named", DEADLINE)
    line.wait_until_connected()


def test_controller_whose_latest_result_is_over_the_limit_is_connected(line: Line) -> None:
    """The gateway starts again: it asks for the latest result on each connection."""
    device = line.devices["wrench"]
    device.order(f"points {POINTS}")
    device.trigger()
    device.order("points 0")
    line.gateway.stop()
    line.gateway.start()
    line.wait_until_connected()
    assert "85.2" in line.work("wrench", "after the start")


def test_tool_is_disabled_by_default_and_not_with_the_lock_off(line: Line) -> None:
    for name in ("plain", "wrench"):
        line.work(name, f"lock {name}")
    wait_for(lambda: line.devices["wrench"].values("enabled")[-1] is False, "the tool is disabled")
    assert line.devices["plain"].values("enabled")[-1] is True


def test_error_of_the_controller_aborts_the_joining_at_work(line: Line) -> None:
    device = line.devices["wrench"]
    device.order("hold")
    order = {"JobOrder": {"JobOrderID": "hot", "WorkMasterID": [{"ID": "wrench"}]}}
    started = device.count("started")
    assert line.mes.call("StoreAndStart", order).status == 1
    device.wait_for("started", started + 1)
    device.order("error")
    device.wait_for("aborted")
    wait_for(lambda: device.values("enabled")[-1] is False, "the tool is disabled")
    wait_for(lambda: "the spindle is hot" in line.gateway.cli("jobs", "why", "hot"), "the job says why")
    line.mes.wait_for_state("hot", "Aborted", DEADLINE)


def test_picture_over_the_limit_is_unknown_and_the_next_one_counts(line: Line) -> None:
    camera, before = line.devices["eye"], line.connections("eye")
    camera.order("content 200000")
    assert "max_message_bytes" in line.work("eye", "large picture")
    assert [message["kind"] for message in line.skipped("eye")] == ["too_large"]
    line.work("eye", "small picture")
    assert line.connections("eye") == before
    assert len(camera.values("finished")) == 2


def test_complete_result_behind_a_page_of_partial_ones_is_found(line: Line) -> None:
    """Its event was lost: the list of its job begins with twelve partial results."""
    camera = line.devices["eye"]
    for order in ("quiet", "partials 12"):
        camera.order(order)
    response = line.work("eye", "partial")
    assert "4711" in response
    assert '"unknown"' not in response

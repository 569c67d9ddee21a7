"""Controller and camera on another vendor's OPC UA stack do the work of a job; their own logs show it once."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest

from tests.outside.opcua_device import OpcuaDevice
from tests.outside.plant import Mes
from tests.outside.servers import PREFIX, Broker, Gateway, Store, ended

# Two servers of node-opcua read their node sets first.
pytestmark = pytest.mark.timeout(240)

DEADLINE = 60.0
TIGHTEN, INSPECT = "com.example.tighten.v1", "com.example.inspect.v1"


def recipe(type_id: str, **parameters: str) -> dict[str, Any]:
    """Return a recipe with one command, which may come to any end."""
    action = {"name": "work", "step": "Work", "qualifier": "N", "interaction": "push_command", "type_id": type_id}
    return {
        "steps": [{"name": "Work", "initial": True}, {"name": "Done"}],
        "transitions": [{"source": "Work", "target": "Done", "condition": "actions.work.done or actions.work.unknown"}],
        "actions": [action | {"timeout_seconds": 60, "parameters": parameters}],
    }


@dataclass(frozen=True)
class Line:
    """A station with two devices."""

    gateway: Gateway
    mes: Mes
    controller: OpcuaDevice
    camera: OpcuaDevice

    def start(self, job: str, work_master: str) -> None:
        """Start a job of a Work Master."""
        order = {"JobOrder": {"JobOrderID": job, "WorkMasterID": [{"ID": work_master}]}}
        assert self.mes.call("StoreAndStart", order).status == 1

    def response(self, job: str) -> Any:
        """Wait until a job has ended; return its response."""
        self.mes.wait_for_state(job, "Ended", DEADLINE)
        self.mes.client.wait(lambda: self.mes.result(job), f"the result of {job}", DEADLINE)
        return self.mes.result(job)


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Line]:
    directory = tmp_path_factory.mktemp("line")
    broker, store = Broker(directory / "broker"), Store(directory / "store")
    controller = OpcuaDevice(directory / "controller", "controller", 800)
    camera = OpcuaDevice(directory / "camera", "camera", 800)
    broker.start()
    settings = (
        f'[redis]\nurl = "unix://{store.socket}"\n[mqtt]\nurl = "mqtt://127.0.0.1:{broker.port}"\n'
        f'[northbound]\ntopic_prefix = "{PREFIX}"\n[opcua]\nendpoint = ""\n'
        f'[southbound.wrench]\nkind = "ijt"\ntype_ids = ["{TIGHTEN}"]\nurl = "{controller.url}"\nsecurity = "none"\n'
        f'[southbound.eye]\nkind = "vision"\ntype_ids = ["{INSPECT}"]\nurl = "{camera.url}"\nsecurity = "none"\n'
    )
    gateway, mes = Gateway(directory / "gateway", "edge", settings), Mes(broker.port)
    with ended(gateway, broker, store, controller, camera):
        with ThreadPoolExecutor() as pool:
            for started in [pool.submit(each.start) for each in (store, controller, camera)]:
                started.result()
        gateway.start()
        mes.open()
        mes.configure("WM-1", recipe(TIGHTEN, joining_process_id="rear axle 85Nm"))
        mes.configure("WM-2", recipe(INSPECT, recipe_id="P1", part_id="4711"))
        yield Line(gateway, mes, controller, camera)
        mes.client.close()


def test_a_controller_of_another_vendor_tightens_a_bolt(line: Line) -> None:
    """The structure walk ends at i=22, the command travels with the bolt, the result is acknowledged once kept."""
    line.start("bolt", "WM-1")
    assert "85.2" in str(line.response("bolt"))
    assert line.controller.values("started") == ["rear axle 85Nm"]
    assert any("JobOrderID=bolt" in each for each in line.controller.values("identifiers"))
    line.controller.wait_for("acknowledged")
    assert line.controller.values("defect") == []


def test_a_bolt_that_ends_while_the_controller_is_cut_off_counts(line: Line) -> None:
    """The result is found at the new connection; the spindle turned once."""
    before = line.controller.count("started")
    line.start("cut off", "WM-1")
    line.controller.wait_for("started", before + 1)
    line.controller.cut(1500)
    assert "85.2" in str(line.response("cut off"))
    assert line.controller.count("started") == before + 1


@pytest.mark.long
def test_a_power_cut_at_the_controller_leaves_the_outcome_unknown(line: Line) -> None:
    """The controller has lost the joining: it is not started again, the job gets the answer unknown."""
    before = line.controller.count("started")
    line.start("power cut", "WM-1")
    line.controller.wait_for("started", before + 1)
    line.controller.kill()
    line.controller.start()
    assert "OutcomeUnknown" in str(line.response("power cut"))
    assert line.controller.count("started") == before + 1


def test_a_gateway_that_is_killed_finds_the_result_of_the_bolt(line: Line) -> None:
    before = line.controller.count("started")
    line.start("killed", "WM-1")
    line.controller.wait_for("started", before + 1)
    line.gateway.kill()
    line.gateway.start()
    assert "85.2" in str(line.response("killed"))
    assert line.controller.count("started") == before + 1
    assert line.controller.values("defect") == []


def test_a_camera_of_another_vendor_takes_a_picture_with_its_recipe(line: Line) -> None:
    """PrepareRecipe is answered before the recipe is prepared; the picture waits for RecipePrepared."""
    line.start("picture", "WM-2")
    assert "P1" in str(line.response("picture"))
    line.camera.wait_for("finished")
    assert line.camera.values("recipe") == ["P1", "P1"], "taken with another recipe"
    assert line.camera.values("defect") == []


def test_a_picture_that_is_taken_while_the_camera_is_cut_off_counts(line: Line) -> None:
    before = line.camera.count("started")
    line.start("picture cut off", "WM-2")
    line.camera.wait_for("started", before + 1)
    line.camera.cut(1500)
    assert "P1" in str(line.response("picture cut off"))
    assert line.camera.count("started") == before + 1

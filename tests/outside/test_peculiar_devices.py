"""OPC UA devices of another vendor that omit optional parts of their standard are supported."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest

from tests.outside.opcua_device import OpcuaDevice
from tests.outside.plant import Mes
from tests.outside.servers import PREFIX, Broker, Gateway, Store, ended, wait_for

# Two servers of node-opcua read their node sets first.
pytestmark = [pytest.mark.timeout(240), pytest.mark.slow]

DEADLINE = 60.0
TIGHTEN, INSPECT = "com.example.tighten.v1", "com.example.inspect.v1"


def recipe(type_id: str, **parameters: object) -> dict[str, Any]:
    """Return a recipe with one command, which may succeed or fail."""
    action = {"name": "work", "step": "Work", "qualifier": "N", "interaction": "push_command", "type_id": type_id}
    return {
        "steps": [{"name": "Work", "initial": True}, {"name": "Done"}],
        "transitions": [
            {"source": "Work", "target": "Done", "condition": "actions.work.done or actions.work.failed"},
        ],
        "actions": [action | {"timeout_seconds": 60, "parameters": parameters}],
    }


@dataclass(frozen=True)
class Line:
    """A controller that returns no identifiers, and a camera whose states have German names."""

    gateway: Gateway
    mes: Mes
    controller: OpcuaDevice
    camera: OpcuaDevice

    def start(self, job: str, work_master: str) -> None:
        """Start a job of a Work Master."""
        order = {"JobOrder": {"JobOrderID": job, "WorkMasterID": [{"ID": work_master}]}}
        assert self.mes.call("StoreAndStart", order).status == 1

    def response(self, job: str) -> str:
        """Wait until a job has ended; return its response as text."""
        self.mes.wait_for_state(job, "Ended", DEADLINE)
        self.mes.client.wait(lambda: self.mes.result(job), f"the result of {job}", DEADLINE)
        return str(self.mes.result(job))

    def unsolicited(self) -> str:
        """Return the log lines about results of no command."""
        return "\n".join(text for text in self.gateway.log.read_text().splitlines() if "unsolicited result" in text)


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
        'correlation = "next"\n'
        f'[southbound.eye]\nkind = "vision"\ntype_ids = ["{INSPECT}"]\nurl = "{camera.url}"\nsecurity = "none"\n'
    )
    gateway, mes = Gateway(directory / "gateway", "edge", settings), Mes(broker.port)
    with ended(gateway, broker, store, controller, camera):
        with ThreadPoolExecutor() as pool:
            for started in [pool.submit(item.start) for item in (store, controller, camera)]:
                started.result()
        controller.order("anonymous")
        camera.order("german")
        gateway.start()
        mes.open()
        mes.configure("WM-1", recipe(TIGHTEN, joining_process_id="rear axle 85Nm"))
        mes.configure("WM-2", recipe(INSPECT, recipe_id="P1", part_id="4711"))
        yield Line(gateway, mes, controller, camera)
        mes.client.close()


def test_result_without_a_command_id_belongs_to_the_started_command(line: Line) -> None:
    line.start("anonymous", "WM-1")
    assert "85.2" in line.response("anonymous")
    assert line.controller.count("started") == 1
    assert "result without command id" in line.gateway.log.read_text()


def test_result_without_id_and_event_is_polled(line: Line) -> None:
    before = line.controller.count("started")
    line.controller.order("quiet")
    line.start("polled", "WM-1")
    assert "85.2" in line.response("polled")
    assert line.controller.count("started") == before + 1


def test_bolt_of_another_process_is_not_taken_for_the_command(line: Line) -> None:
    """The operator tightens a bolt of his own while the joining of the command runs."""
    before, finished = line.controller.count("started"), line.controller.count("finished")
    line.controller.order("hold")
    line.start("other process", "WM-1")
    line.controller.wait_for("started", before + 1)
    results = line.controller.count("result")
    line.controller.trigger()
    line.controller.wait_for("result", results + 1)
    number = line.controller.values("result")[-1]
    wait_for(lambda: f'"{number}"' in line.unsolicited(), "the other bolt is kept")
    line.controller.order("end")
    response = line.response("other process")
    assert f"'{line.controller.values('result')[-1]}'" in response
    assert f"'{number}'" not in response
    assert (line.controller.count("started"), line.controller.count("finished")) == (before + 1, finished + 2)


def test_a_camera_with_states_in_german_takes_a_picture(line: Line) -> None:
    line.start("german", "WM-2")
    assert "P1" in line.response("german")
    assert line.camera.values("defect") == []


def test_camera_in_error_during_a_job_fails_it_and_recovers(line: Line) -> None:
    """In Error, the mode keeps its last state, SingleExecution: the next job does not wait for its end."""
    before = line.camera.count("started")
    line.start("error at work", "WM-2")
    line.camera.wait_for("started", before + 1)
    line.camera.order("fail")
    assert "state Error" in line.response("error at work")
    line.start("after the error", "WM-2")
    assert "P1" in line.response("after the error")
    assert (line.camera.count("reset"), line.camera.count("started")) == (1, before + 2)


@pytest.mark.long
def test_camera_remaining_in_error_fails_the_job_after_30_s(line: Line) -> None:
    """Last here: the camera stays so."""
    line.camera.order("fail")
    line.camera.order("stuck")
    line.start("stuck", "WM-2")
    assert "does not leave its error" in line.response("stuck")

"""Controller and camera on another vendor's OPC UA stack do the work of a job; their own logs show it once."""

import json
import re
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest

from tests.free_ports import free_port
from tests.outside.opcua_device import OpcuaDevice
from tests.outside.plant import Mes
from tests.outside.servers import PREFIX, Broker, Gateway, Store, ended, wait_for

# Two servers of node-opcua read their node sets first.
pytestmark = [pytest.mark.timeout(240), pytest.mark.slow]

DEADLINE = 60.0
TIGHTEN, INSPECT = "com.example.tighten.v1", "com.example.inspect.v1"


def recipe(type_id: str, timeout_s: int = 60, **parameters: object) -> dict[str, Any]:
    """Return a recipe with one command, which may come to any end."""
    action = {"name": "work", "step": "Work", "qualifier": "N", "interaction": "push_command", "type_id": type_id}
    condition = "actions.work.done or actions.work.unknown or actions.work.timed_out"
    return {
        "steps": [{"name": "Work", "initial": True}, {"name": "Done"}],
        "transitions": [{"source": "Work", "target": "Done", "condition": condition}],
        "actions": [action | {"timeout_seconds": timeout_s, "parameters": parameters}],
    }


def set_recipe(type_id: str, **parameters: object) -> dict[str, Any]:
    """Return a recipe that sets an action and waits for an event before it resets the action."""
    push = {"name": "work", "interaction": "push_command", "type_id": type_id, "parameters": parameters}
    scan = {"name": "scan", "step": "Wait", "qualifier": "N", "interaction": "pull_event", "type_id": "scan.v1"}
    return {
        "steps": [{"name": "Work", "initial": True}, {"name": "Wait"}, {"name": "Release"}],
        "transitions": [
            {"source": "Work", "target": "Wait", "condition": "actions.work.done"},
            {"source": "Wait", "target": "Release", "condition": "actions.scan.done"},
        ],
        "actions": [push | {"step": "Work", "qualifier": "S"}, scan, push | {"step": "Release", "qualifier": "R"}],
    }


@dataclass(frozen=True)
class Line:
    """A station with two devices."""

    gateway: Gateway
    mes: Mes
    controller: OpcuaDevice
    camera: OpcuaDevice
    metrics_port: int

    def metric(self, name: str, **labels: str) -> float:
        """Return a metric of the wrench."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=60) as page:
            lines = page.read().decode().splitlines()
        wanted = {f'{key}="{value}"' for key, value in (labels | {"equipment": "wrench"}).items()}
        for line in lines:
            if line.startswith(f"microdcs_edge_{name}{{") and all(text in line for text in wanted):
                return float(line.rpartition(" ")[2])
        raise AssertionError(f"there is no metric {name} {labels}")

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
    metrics_port = free_port()
    settings = (
        f'[redis]\nurl = "unix://{store.socket}"\n[mqtt]\nurl = "mqtt://127.0.0.1:{broker.port}"\n'
        f'[northbound]\ntopic_prefix = "{PREFIX}"\n[opcua]\nendpoint = ""\n'
        f'[flows]\nrun = "on"\n[metrics]\nlisten = "127.0.0.1:{metrics_port}"\n'
        f'[southbound.wrench]\nkind = "ijt"\ntype_ids = ["{TIGHTEN}"]\nurl = "{controller.url}"\nsecurity = "none"\n'
        f'lock = "on"\n'
        f'[southbound.eye]\nkind = "vision"\ntype_ids = ["{INSPECT}"]\nurl = "{camera.url}"\nsecurity = "none"\n'
    )
    gateway, mes = Gateway(directory / "gateway", "edge", settings), Mes(broker.port)
    with ended(gateway, broker, store, controller, camera):
        with ThreadPoolExecutor() as pool:
            for started in [pool.submit(item.start) for item in (store, controller, camera)]:
                started.result()
        gateway.start()
        mes.open()
        mes.configure("WM-1", recipe(TIGHTEN, joining_process_id="rear axle 85Nm"))
        mes.configure("WM-2", recipe(INSPECT, recipe_id="P1", part_id="4711"))
        mes.configure("WM-3", recipe(TIGHTEN, 10, start=False))
        mes.configure("WM-4", set_recipe(TIGHTEN, joining_process_id="rear axle 85Nm"))
        yield Line(gateway, mes, controller, camera, metrics_port)
        mes.client.close()


def test_a_controller_of_another_vendor_tightens_a_bolt(line: Line) -> None:
    """The structure walk ends at i=22, the command travels with the bolt, the result is acknowledged once kept."""
    line.start("bolt", "WM-1")
    assert "85.2" in str(line.response("bolt"))
    assert line.controller.values("started") == ["rear axle 85Nm"]
    assert any("JobOrderID=bolt" in value for value in line.controller.values("identifiers"))
    line.controller.wait_for("acknowledged")
    assert line.controller.values("defect") == []
    wait_for(lambda: line.metric("results_total", evaluation="OK") == 1, "the result is counted")


def test_reset_of_an_aborted_job_stops_the_tool_without_a_new_start(line: Line) -> None:
    before = line.controller.count("started")
    line.start("set", "WM-4")
    line.controller.wait_for("finished", line.controller.count("finished") + 1)
    line.controller.wait_for("acknowledged", line.controller.count("finished"))
    assert line.mes.call("Abort", {"JobOrderID": "set"}).status == 1
    line.mes.wait_for_state("set", "Aborted", DEADLINE)
    wait_for(lambda: line.controller.values("enabled")[-1] is False, "the tool is locked")
    line.start("after the reset", "WM-1")
    line.response("after the reset")
    assert line.controller.count("started") == before + 2


def test_tool_of_an_operator_is_locked_after_the_time_limit(line: Line) -> None:
    """Its operator never pulled the trigger: nothing ran, and the tool must not stay enabled."""
    before = line.controller.count("started")
    line.start("by trigger", "WM-3")
    wait_for(lambda: line.controller.values("enabled")[-1:] == [True], "the tool is enabled")
    assert "timed out after 10 s" in str(line.response("by trigger"))
    wait_for(lambda: line.controller.values("enabled")[-1] is False, "the tool is locked")
    assert line.controller.count("started") == before


def test_bolt_of_an_operator_is_kept_and_assigned_to_no_job(line: Line) -> None:
    late, acknowledged = line.metric("results_late_total"), line.controller.count("acknowledged")
    line.controller.trigger()
    wait_for(lambda: line.metric("results_late_total") == late + 1, "the result is counted as late")
    letters = json.loads(line.gateway.cli("dead-letters", "list", "--json"))
    assert [letter["job_order_id"] for letter in letters if letter["kind"] == "late"][-1] is None
    assert line.controller.count("acknowledged") == acknowledged


def late_job(line: Line) -> str | None:
    """Return the job of the newest late result."""
    letters = json.loads(line.gateway.cli("dead-letters", "list", "--json"))
    job: str | None = [letter["job_order_id"] for letter in letters if letter["kind"] == "late"][-1]
    return job


def test_result_of_another_process_is_kept_and_its_action_waits(line: Line) -> None:
    late, before = line.metric("results_late_total"), line.controller.count("started")
    line.controller.order("other")
    line.start("other process", "WM-1")
    response = str(line.response("other process"))
    assert "85.2" in response
    assert "102" not in response
    wait_for(lambda: line.metric("results_late_total") == late + 1, "the result is counted as late")
    assert (late_job(line), line.controller.count("started")) == ("other process", before + 1)


def test_second_result_of_a_joining_is_a_late_result_of_its_job(line: Line) -> None:
    late = line.metric("results_late_total")
    line.controller.order("twice")
    line.start("joined twice", "WM-1")
    assert "85.2" in str(line.response("joined twice"))
    wait_for(lambda: line.metric("results_late_total") == late + 1, "the result is counted as late")
    assert late_job(line) == "joined twice"


def test_result_with_the_id_of_an_earlier_one_counts(line: Line) -> None:
    line.start("used id", "WM-1")
    assert "85.2" in str(line.response("used id"))
    finished = line.controller.count("finished")
    line.controller.order("reuse")
    line.start("reused id", "WM-1")
    assert "85.2" in str(line.response("reused id"))
    assert line.controller.count("finished") == finished + 1


def test_bolt_of_an_operator_in_between_does_not_repeat_a_joining(line: Line) -> None:
    """The latest result is that of the operator; that of the command is found behind it."""
    before, finished = line.controller.count("started"), line.controller.count("finished")
    line.start("in between", "WM-1")
    line.controller.wait_for("started", before + 1)
    line.gateway.kill()
    line.controller.wait_for("finished", finished + 1)
    line.controller.trigger()
    line.gateway.start()
    assert "85.2" in str(line.response("in between"))
    assert line.controller.count("started") == before + 1


def test_bolt_completed_during_a_connection_loss_counts(line: Line) -> None:
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
    wait_for(lambda: line.metric("outcomes_unknown_total") == 1, "the unknown outcome is counted")
    assert line.controller.count("started") == before + 1


def test_restarted_gateway_finds_the_result_of_the_bolt(line: Line) -> None:
    before = line.controller.count("started")
    line.start("killed", "WM-1")
    line.controller.wait_for("started", before + 1)
    line.gateway.kill()
    line.gateway.start()
    assert "85.2" in str(line.response("killed"))
    assert line.controller.count("started") == before + 1
    assert line.controller.values("defect") == []


@pytest.mark.parametrize("quiet", [False, True], ids=["with its event", "without its event"])
@pytest.mark.parametrize("killed", [False, True], ids=["cut off", "gateway killed"])
def test_bolt_completed_during_the_result_search_is_not_repeated(line: Line, *, killed: bool, quiet: bool) -> None:
    """The bolt ends after the missed results were collected, before the controller is asked for its identifiers."""
    before = line.controller.count("started")
    line.controller.order("endAtSearch")
    job = f"search {killed} {quiet}"
    line.start(job, "WM-1")
    line.controller.wait_for("started", before + 1)
    if quiet:
        line.controller.order("quiet")
    if killed:
        line.gateway.kill()
        line.gateway.start()
    else:
        line.controller.cut(200)
    assert "85.2" in str(line.response(job))
    assert line.controller.count("started") == before + 1


def test_start_with_a_connection_loss_before_its_answer_is_not_repeated(line: Line) -> None:
    before = line.controller.count("started")
    line.controller.order("unanswered")
    line.start("answer cut off", "WM-1")
    line.controller.wait_for("started", before + 1)
    line.controller.cut(200)
    assert "85.2" in str(line.response("answer cut off"))
    assert line.controller.count("started") == before + 1


@pytest.mark.long
def test_a_start_that_is_never_answered_is_not_repeated(line: Line) -> None:
    """The call ends by its time limit of 30 s; the result came meanwhile."""
    before = line.controller.count("started")
    line.controller.order("unanswered")
    line.start("no answer", "WM-1")
    assert "85.2" in str(line.response("no answer"))
    assert line.controller.count("started") == before + 1


def test_a_camera_of_another_vendor_takes_a_picture_with_its_recipe(line: Line) -> None:
    """PrepareRecipe is answered before the recipe is prepared; the picture waits for RecipePrepared."""
    line.start("picture", "WM-2")
    assert "P1" in str(line.response("picture"))
    line.camera.wait_for("finished")
    assert line.camera.values("recipe") == ["P1", "P1"], "taken with another recipe"
    assert line.camera.values("defect") == []


def test_picture_taken_during_a_connection_loss_counts(line: Line) -> None:
    before = line.camera.count("started")
    line.start("picture cut off", "WM-2")
    line.camera.wait_for("started", before + 1)
    line.camera.cut(1500)
    assert "P1" in str(line.response("picture cut off"))
    assert line.camera.count("started") == before + 1


def test_picture_whose_event_is_lost_is_polled(line: Line) -> None:
    before = line.camera.count("started")
    line.camera.order("quiet")
    line.start("quiet picture", "WM-2")
    assert "Completed" in str(line.response("quiet picture"))
    assert line.camera.count("started") == before + 1


def test_job_with_the_meas_id_of_an_earlier_one_takes_its_own_picture(line: Line) -> None:
    """Before, the camera was asked for a result of this MeasId first, and the picture of the first job was taken."""
    line.mes.configure("WM-5", recipe(INSPECT, recipe_id="P1", meas_id="serial 1"))
    for job in ("first of a part", "second of a part"):
        line.start(job, "WM-5")
        assert "Completed" in str(line.response(job))
    assert line.camera.values("started")[-2:] == ["serial 1"] * 2
    ids = [re.findall(r"R-[0-9]+", str(line.mes.result(job))) for job in ("first of a part", "second of a part")]
    assert ids[0] != ids[1]


@pytest.mark.parametrize("work_master", ["WM-2", "WM-6"])
def test_job_that_a_camera_starts_without_a_job_id_takes_its_picture(line: Line, work_master: str) -> None:
    """Before, the command failed while the camera worked, and its picture was only a late result."""
    line.mes.configure("WM-6", recipe(INSPECT, recipe_id="P1", meas_id="serial 6"))
    before = line.camera.count("started")
    line.camera.order("nameless")
    line.start(f"nameless {work_master}", work_master)
    assert re.findall(r"R-[0-9]+", str(line.response(f"nameless {work_master}")))
    assert line.camera.count("started") == before + 1


def test_result_without_ids_does_not_end_the_job_at_work(line: Line) -> None:
    """Before, the outcome of the job was unknown at once, while the camera still worked for it."""
    before = line.camera.count("started")
    line.start("with a stray result", "WM-2")
    wait_for(lambda: line.camera.count("started") > before, "the job works")
    line.camera.order("stray")
    assert re.findall(r"R-[0-9]+", str(line.response("with a stray result")))
    assert line.camera.count("started") == before + 1


def test_a_tool_that_another_system_disabled_while_idle_stays_disabled(line: Line) -> None:
    """The gateway is killed in between; the next job fails, says why, and leaves the tool disabled."""
    reason, tool, gateway = "another system has disabled the tool", line.controller, line.gateway
    wait_for(lambda: tool.values("enabled")[-1:] == [False], "the gateway has disabled the idle tool")
    started = tool.count("started")
    # At once: both changes are reported.
    tool.order("enable")
    wait_for(lambda: "tool enabled without a command" in gateway.log.read_text(), "the change is seen")
    # The gateway takes it for another system when it lasts for two seconds.
    time.sleep(2.5)
    tool.order("disable")

    def problem() -> str:
        return str(json.loads(gateway.cli("equipment", "show", "wrench", "--json"))[0]["problem"])

    wait_for(lambda: reason in problem(), "the tool has a problem")
    gateway.kill()
    gateway.start()
    wait_for(lambda: reason in problem(), "the problem is known after the restart")
    calls = tool.count("enabled")
    line.start("locked", "WM-1")
    line.mes.wait_for_state("locked", "Aborted", DEADLINE)
    assert reason in gateway.cli("jobs", "why", "locked")
    assert (tool.count("started"), True in tool.values("enabled")[calls:]) == (started, False)
    tool.order("enable")
    wait_for(lambda: reason not in problem(), "the problem is gone")
    line.start("unlocked", "WM-1")
    line.response("unlocked")
    assert tool.count("started") == started + 1
    wait_for(lambda: tool.values("enabled")[-1] is False, "the tool is disabled after the command")

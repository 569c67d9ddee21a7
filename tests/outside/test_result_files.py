"""Traces, images and batches of devices on another vendor's stack; the command line and the MES fetch the files."""

import base64
import hashlib
import json
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.outside.opcua_device import OpcuaDevice
from tests.outside.plant import Mes
from tests.outside.servers import PREFIX, Broker, Gateway, Store, ended, wait_for
from tests.outside.test_opcua_devices import DEADLINE, INSPECT, TIGHTEN, recipe

pytestmark = [pytest.mark.timeout(240), pytest.mark.slow]

READ = "com.github.aschamberger.microdcs.traces.Read.v1"
LATE = "com.github.aschamberger.microdcs.result.late.v1"
WHEEL: dict[str, Any] = {"joining_process_id": "WHEEL-120"}


def failing(**parameters: Any) -> dict[str, Any]:
    """Return a recipe whose command has to fail."""
    made = recipe(TIGHTEN, **parameters)
    return made | {"transitions": [made["transitions"][0] | {"condition": "actions.work.failed"}]}


RECIPES: dict[str, dict[str, Any]] = {
    "single": recipe(TIGHTEN, **WHEEL),
    "batch": recipe(TIGHTEN, **WHEEL, batch_size=4, reset_process=True, classification="batch", vin="VIN-1"),
    "counted": recipe(
        TIGHTEN, **WHEEL, batch_size=5, counter=2, increment_counter=2, decrement_counter=1, classification="batch"
    ),
    "joint": recipe(TIGHTEN, joint_id="B2", select="joint"),
    "no joint": failing(joint_id="B9", select="joint"),
    "no process": failing(joining_process_id="DOOR-8"),
    "spindles": recipe(TIGHTEN, **WHEEL, classification="sync"),
    "late joining": recipe(TIGHTEN, 2, **WHEEL),
    "late picture": recipe(INSPECT, 6, recipe_id="P1"),
    "picture": recipe(INSPECT, recipe_id="P1", part_id="4711"),
}


@dataclass(frozen=True)
class Line:
    """A station whose devices offer traces, batches and images."""

    gateway: Gateway
    mes: Mes
    controller: OpcuaDevice
    camera: OpcuaDevice
    traces: Path

    def begin(self, job: str, work_master: str) -> None:
        """Start a job."""
        order = {"JobOrder": {"JobOrderID": job, "WorkMasterID": [{"ID": work_master}]}}
        assert self.mes.call("StoreAndStart", order).status == 1

    def late(self) -> dict[str, Any]:
        """Return the late results that the MES has, by their jobs."""
        found = [
            received.data for received in list(self.mes.client.received) if received.attributes.get("type") == LATE
        ]
        return {value["JobOrderID"]: value["Data"] for value in found}

    def run(self, job: str, work_master: str) -> dict[str, Any]:
        """Run a job; return the result of its last attempt as `edge jobs results` has it, {} for one without."""
        self.begin(job, work_master)
        self.mes.wait_for_state(job, "Ended", DEADLINE)
        found = json.loads(self.gateway.cli("jobs", "results", job, "--json"))["results"]
        return found[-1]["result"] or {} if found else {}

    def read_by_mes(self, file: str) -> bytes:
        """Return a file as the MES reads it, part by part."""
        content = b""
        while True:
            answer = self.mes.ask(READ, {"File": file, "Offset": len(content)})
            assert "mdcserrorkind" not in answer.attributes, answer
            content += base64.b64decode(answer.data["Data"])
            if len(content) >= answer.data["Size"]:
                return content


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Line]:
    directory = tmp_path_factory.mktemp("line")
    broker, store = Broker(directory / "broker"), Store(directory / "store")
    controller = OpcuaDevice(directory / "controller", "controller", 50, "batch")
    camera, traces = OpcuaDevice(directory / "camera", "camera", 400), directory / "traces"
    broker.start()
    settings = (
        f'[redis]\nurl = "unix://{store.socket}"\n[mqtt]\nurl = "mqtt://127.0.0.1:{broker.port}"\n'
        f'[northbound]\ntopic_prefix = "{PREFIX}"\n[opcua]\nendpoint = ""\n'
        f'[traces]\ndirectory = "{traces}"\nmax_file_bytes = 1000000\n'
        f'[southbound.wrench]\nkind = "ijt"\ntype_ids = ["{TIGHTEN}"]\nurl = "{controller.url}"\nsecurity = "none"\n'
        'files = "on"\n'
        f'[southbound.eye]\nkind = "vision"\ntype_ids = ["{INSPECT}"]\nurl = "{camera.url}"\nsecurity = "none"\n'
        'files = "on"\n'
    )
    gateway, mes = Gateway(directory / "gateway", "edge", settings), Mes(broker.port)
    with ended(gateway, broker, store, controller, camera):
        with ThreadPoolExecutor() as pool:
            for started in [pool.submit(item.start) for item in (store, controller, camera)]:
                started.result()
        gateway.start()
        mes.open()
        for name, entry in RECIPES.items():
            mes.configure(name, entry)
        yield Line(gateway, mes, controller, camera, traces)
        mes.client.close()


def test_batch_of_four_holds_the_bad_bolt_and_its_rework(line: Line) -> None:
    line.controller.order("nok 2")
    found = line.run("batch", "batch")
    assert [result["evaluation"] for result in found["results"].values()] == ["OK", "NotOK", "OK", "OK", "OK"]
    assert found["results"]["2"]["violations"]["Torque"]["violation"] == "High"
    assert found["counters"] == {"batch_size": 4, "batch_count": 4}
    assert (found["vin"], found["process"], found["operator"]) == ("VIN-1", "WHEEL-120", "Ann")
    assert line.controller.values("classification")[-6:] == [1, 1, 1, 1, 1, 3]


@pytest.mark.parametrize("shape", ["held", "flat"])
def test_each_joining_of_a_batch_has_its_file(line: Line, tmp_path: Path, shape: str) -> None:
    """A batch of four with a rework: five joinings and the batch itself, also where it holds no joinings."""
    before = line.controller.count("sha256")
    for order in ("image 5000", "nok 2", *(["flat"] if shape == "flat" else [])):
        line.controller.order(order)
    found = line.run(f"files {shape}", "batch")
    line.controller.order("image 0")
    references = [found, *found["results"].values()]
    assert [one["evaluation"] for one in references] == ["OK", "OK", "NotOK", "OK", "OK", "OK"]
    assert [one["file"]["sha256"] for one in references] == line.controller.values("sha256")[before:]
    assert line.controller.values("generated")[-6:] == [one["result_id"] for one in references]
    assert line.controller.count("closed") >= 6
    hashes = {hashlib.sha256(line.read_by_mes(one["file"]["file"])).hexdigest() for one in references}
    assert hashes == {one["file"]["sha256"] for one in references}
    line.gateway.cli("jobs", "results", f"files {shape}", "--traces", str(tmp_path))
    assert {hashlib.sha256(one.read_bytes()).hexdigest() for one in tmp_path.iterdir()} == hashes


def test_files_of_late_results_are_stored_with_their_job(line: Line) -> None:
    """The camera is cut off until its job has timed out; the controller reports a joining only with the next one."""
    for device in (line.camera, line.controller):
        device.order("image 5000")
    before = {device: device.count("sha256") for device in (line.camera, line.controller)}
    pictures = line.camera.count("started")
    line.begin("late picture", "late picture")
    line.camera.wait_for("started", pictures + 1)
    line.camera.cut(9000)
    line.controller.order("quiet")
    assert line.run("late joining", "late joining") == {}
    line.run("next joining", "single")
    line.mes.client.wait(lambda: len(line.late()) == 2, "the late results", DEADLINE)
    for device in (line.camera, line.controller):
        device.order("image 0")
    for job, device in (("late picture", line.camera), ("late joining", line.controller)):
        file = line.late()[job]["file"]
        assert file["sha256"] == device.values("sha256")[before[device]]
        assert hashlib.sha256(line.read_by_mes(file["file"])).hexdigest() == file["sha256"]
        assert file["sha256"] in line.gateway.cli("jobs", "results", job, "--json")


def test_counters_of_a_batch_are_set_in_their_order(line: Line) -> None:
    found = line.run("counted", "counted")
    assert line.controller.values("counter")[-3:] == [2, 4, 3]
    assert (len(found["results"]), found["counters"]["batch_count"]) == (2, 5)


def test_joint_selects_its_process(line: Line) -> None:
    found = line.run("joint", "joint")
    assert (found["process"], found["joint_id"], line.controller.values("joint")[-1]) == ("AXLE-85", "B2", "B2")


def test_missing_joint_and_process_are_refused_before_the_start(line: Line) -> None:
    before = line.controller.count("started")
    assert line.run("no joint", "no joint") == line.run("no process", "no process") == {}
    refusal = "the controller has no joining process DOOR-8; it has AXLE-85, WHEEL-120"
    shown = ("equipment", "show", "wrench")
    # The report about equipment is written at intervals.
    wait_for(lambda: refusal in line.gateway.cli(*shown), "the refusal is reported", DEADLINE)
    assert "WHEEL-120, AXLE-85, joint B1, joint B2" in line.gateway.cli(*shown)
    assert line.controller.count("started") == before


def test_result_of_several_spindles_holds_each(line: Line) -> None:
    line.controller.order("spindles 2")
    found = line.run("spindles", "spindles")
    line.controller.order("spindles 1")
    assert [result["torque"]["value"] for result in found["results"].values()] == [85.2, 85.2]


def test_trace_of_4000_points_is_stored_fetched_and_expired(line: Line, tmp_path: Path) -> None:
    """2 × 2,000 points; the MES and the command line read the same bytes, until the file is too old."""
    line.controller.order("points 2000")
    trace = line.run("trace", "single")["trace"]
    line.controller.order("points 0")
    assert (trace["points"], trace["channels"]) == (4000, ["Torque", "Angle"])
    content = line.read_by_mes(trace["file"])
    assert (hashlib.sha256(content).hexdigest(), len(content)) == (trace["sha256"], trace["size"])
    copied = json.loads(line.gateway.cli("jobs", "results", "trace", "--traces", str(tmp_path), "--json"))["copies"]
    assert Path(copied[0]["copied"]).read_bytes() == content
    line.mes.client.wait(lambda: line.mes.result("trace"), "the response", DEADLINE)
    assert trace["sha256"] in json.dumps(line.mes.result("trace"))
    long_ago = time.time() - 2_592_000 - 60
    os.utime(line.traces / trace["file"], (long_ago, long_ago))
    line.gateway.stop()
    line.gateway.start()
    wait_for(lambda: not (line.traces / trace["file"]).exists(), "the file is too old")
    answer = line.mes.ask(READ, {"File": trace["file"]})
    assert answer.attributes["mdcserrorkind"] == "unknown_trace"
    assert "not stored any more" in line.gateway.cli("jobs", "results", "trace", "--traces", str(tmp_path))


@pytest.mark.parametrize(("fault", "size"), [("none", 700_000), ("late", 5000), ("unclosed", 5000)])
def test_image_of_a_camera_is_stored_and_fetched(line: Line, tmp_path: Path, fault: str, size: int) -> None:
    line.camera.order(f"image {size}")
    line.camera.order(f"filefault {fault}")
    job = f"image {fault}"
    file = line.run(job, "picture")["file"]
    assert (file["media_type"], file["size"]) == ("image/png", size)
    assert (
        file["sha256"] == line.camera.values("sha256")[-1] == hashlib.sha256(line.read_by_mes(file["file"])).hexdigest()
    )
    copied = json.loads(line.gateway.cli("jobs", "results", job, "--traces", str(tmp_path), "--json"))["copies"]
    assert hashlib.sha256(Path(copied[0]["copied"]).read_bytes()).hexdigest() == file["sha256"]
    assert line.camera.count("closed") == line.camera.count("sha256")


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("endless", "more than 1000000 bytes"),
        ("short", "the file should have 6000 bytes, and has 5000"),
        ("fat", "not what OPC 10000-20 says"),
        ("away", "BadNotFound"),
        ("broken", "reports an error"),
        ("cut", "the connection was lost at each transfer"),
        pytest.param("slow", "took more than 20 s", marks=pytest.mark.long),
    ],
)
def test_unusable_camera_file_loses_only_the_file(line: Line, fault: str, error: str) -> None:
    line.camera.order("image 300000" if fault in {"endless", "fat"} else "image 5000")
    line.camera.order(f"filefault {fault}")
    found = line.run(f"fault {fault}", "picture")
    line.camera.order("filefault none")
    assert found["result_state"] == "Completed"
    assert error in found["file"]["error"]
    assert list(line.traces.glob(".*")) == []
    # The report about equipment is written at intervals.
    shown = ("equipment", "show", "eye", "--json")
    wait_for(lambda: json.loads(line.gateway.cli(*shown))[0]["lost_traces"] >= 1, "the loss is counted", DEADLINE)

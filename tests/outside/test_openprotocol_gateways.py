"""Two gateways of one store at one controller with Open Protocol that serves one client: each bolt counts once."""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.outside.devices.openprotocol_controller import StrictController
from tests.outside.devices.openprotocol_quirks import Quirks
from tests.outside.devices.openprotocol_tool import Habits
from tests.outside.openprotocol_device import running_controller
from tests.outside.plant import Mes
from tests.outside.servers import PREFIX, Broker, Gateway, Store, ended, wait_for

pytestmark = [pytest.mark.timeout(240), pytest.mark.slow]

TIGHTEN = "com.example.tighten.v1"
JOBS = 6
DEADLINE = 60.0


def recipe(**parameters: object) -> dict[str, Any]:
    """Return a recipe with one command, which may come to any end."""
    action = {"name": "work", "step": "Work", "qualifier": "N", "interaction": "push_command", "type_id": TIGHTEN}
    condition = "actions.work.done or actions.work.unknown or actions.work.timed_out"
    return {
        "steps": [{"name": "Work", "initial": True}, {"name": "Done"}],
        "transitions": [{"source": "Work", "target": "Done", "condition": condition}],
        "actions": [action | {"timeout_seconds": 60, "parameters": {"parameter_set": 3} | parameters}],
    }


@dataclass(frozen=True)
class Line:
    """Two gateways of one scope, and their controller."""

    gateways: dict[str, Gateway]
    mes: Mes
    controller: StrictController

    def views(self) -> dict[str, dict[str, Any]]:
        """Return what each gateway reports of the tool."""
        found = json.loads(self.gateways["first"].cli("equipment", "list", "--json"))
        return {value["gateway"]: value for value in found}

    def connected(self) -> str:
        """Return the gateway that connects, when the other one names it."""
        views = self.views()
        for name, other in (("first", "second"), ("second", "first")):
            is_named = views.get(other, {}).get("connection", {}).get("holder") == name
            if is_named and views.get(name, {}).get("connected"):
                return name
        return ""

    def wait_until_shared(self) -> str:
        """Wait until one gateway connects and the other one knows it; return its name."""
        wait_for(self.connected, "one gateway is connected", DEADLINE)
        return self.connected()

    def begin(self, job: str, work_master: str = "TIGHTEN") -> None:
        """Start a job."""
        order = {"JobOrder": {"JobOrderID": job, "WorkMasterID": [{"ID": work_master}]}}
        assert self.mes.call("StoreAndStart", order).status == 1

    def wait_until_ended(self, job: str) -> None:
        """Wait until a job has ended, with the tool disabled."""
        self.mes.wait_for_state(job, "Ended", DEADLINE)
        wait_for(lambda: not self.controller.tool.enabled, "the tool is disabled")

    def result(self, job: str) -> Any:
        """Wait for the result of a job at the MES, and return it."""
        self.mes.client.wait(lambda: self.mes.result(job), "the MES has the result")
        return self.mes.result(job)

    def answered(self, job: str) -> list[str]:
        """Return the ids of the bolts in the answer of a job; its attempts may hold late ones meanwhile."""
        data = {value["ID"]: value.get("Subparameters", ()) for value in self.result(job)["JobResponseData"]}
        answer = {value["ID"]: value.get("Subparameters") for value in data["work"]}
        bolts = ({value["ID"]: value.get("Value") for value in bolt["Subparameters"]} for bolt in answer["results"])
        return [bolt["result_id"] for bolt in bolts]

    def letters(self) -> list[str]:
        """Return the numbers of the bolts that are late results, in the order of the dead letters."""
        letters = json.loads(self.gateways["second"].cli("dead-letters", "list", "--json"))
        return [letter["details"]["key"].split()[0] for letter in letters]

    def counts(self, name: str) -> int:
        """Return a count of both gateways."""
        return sum(view[name] for view in self.views().values())


@contextlib.contextmanager
def running(directory: Path, correlation: str, habits: Habits, clients: int = 1, **quirks: Any) -> Iterator[Line]:
    """Run a broker, a store, a controller that serves so many clients and has `quirks`, and two gateways."""
    broker, store = Broker(directory / "broker"), Store(directory / "store")
    broker.start()
    store.start()
    with running_controller(Quirks(clients=clients, **quirks), habits) as controller:
        settings = (
            f'[redis]\nurl = "unix://{store.socket}"\n[mqtt]\nurl = "mqtt://127.0.0.1:{broker.port}"\n'
            f'[northbound]\ntopic_prefix = "{PREFIX}"\n[opcua]\nendpoint = ""\n'
            f'[southbound.nut]\nkind = "openprotocol"\ntype_ids = ["{TIGHTEN}"]\ncorrelation = "{correlation}"\n'
            f'url = "tcp://127.0.0.1:{controller.port}"\n'
        )
        gateways = {name: Gateway(directory / name, name, settings) for name in ("first", "second")}
        mes = Mes(broker.port)
        with ended(*gateways.values(), broker, store), contextlib.closing(mes.client):
            for gateway in gateways.values():
                gateway.start()
            mes.open()
            mes.configure("TIGHTEN", recipe())
            mes.configure("BATCH", recipe(batch_size=3, classification="batch"))
            yield Line(gateways, mes, controller)


@pytest.mark.parametrize("correlation", ["mark", "next"])
def test_each_bolt_counts_once_whichever_gateway_has_the_job(tmp_path: Path, correlation: str) -> None:
    with running(tmp_path, correlation, Habits()) as line:
        line.wait_until_shared()
        for number in range(JOBS):
            line.begin(f"J{number}")
        for number in range(JOBS):
            line.wait_until_ended(f"J{number}")
        assert len(line.controller.tool.results) == JOBS
        assert len(line.controller.tool.entries("enabled")) == JOBS
        assert line.controller.connections == 1
        wait_for(lambda: line.counts("ok") == JOBS, "the results are counted")
        assert [line.counts(text) for text in ("late", "unknown", "failed", "unsolicited")] == [0, 0, 0, 0]
        assert line.controller.violations == []


def test_killed_gateway_is_replaced_in_the_middle_of_a_batch(tmp_path: Path) -> None:
    with running(tmp_path, "mark", Habits(absent=True)) as line:
        tool = line.controller.tool
        for number in range(2):
            holder = line.wait_until_shared()
            line.begin(f"J{number}", "BATCH")
            wait_for(lambda: tool.enabled, "the tool is enabled")
            tool.tighten()
            wait_for(lambda: len(tool.results) in line.controller.acknowledged, "the bolt is confirmed")
            line.gateways[holder].kill()
            for _ in range(2):
                tool.tighten()
            line.wait_until_ended(f"J{number}")
            assert str(line.result(f"J{number}")).count("torque_status") == 3
            line.gateways[holder].start()
        assert len(tool.results) == 6
        assert line.counts("late") == 0


def test_command_of_a_killed_gateway_is_unknown_and_the_tool_disabled(tmp_path: Path) -> None:
    with running(tmp_path, "next", Habits(absent=True)) as line:
        holder = line.wait_until_shared()
        line.begin("J1")
        wait_for(lambda: line.controller.tool.enabled, "the tool is enabled")
        line.gateways[holder].kill()
        line.wait_until_ended("J1")
        line.gateways[holder].start()
        line.wait_until_shared()
        assert line.counts("unknown") == 1
        line.begin("J2")
        wait_for(lambda: line.controller.tool.enabled, "the tool is enabled again")
        line.controller.tool.tighten()
        line.wait_until_ended("J2")


def test_frozen_gateway_leaves_the_controller_to_the_other(tmp_path: Path) -> None:
    """It has the only connection until the controller has heard nothing for 15 s; thawed, it does not take it back."""
    with running(tmp_path, "mark", Habits()) as line:
        holder = line.wait_until_shared()
        line.gateways[holder].freeze()
        other = {"first": "second", "second": "first"}[holder]
        wait_for(lambda: "equipment connected" in line.gateways[other].log.read_text(), "the other connects", DEADLINE)
        line.begin("J1")
        line.wait_until_ended("J1")
        line.gateways[holder].thaw()
        wait_for(lambda: line.connected() == other, "the thawed gateway names the other", DEADLINE)
        connections = line.controller.connections
        for number in range(2, 2 + JOBS):
            line.begin(f"J{number}")
            line.wait_until_ended(f"J{number}")
        assert line.controller.connections == connections
        assert len(line.controller.tool.results) == JOBS + 1
        assert line.counts("late") == 0


def test_thawed_gateway_leaves_the_tool_to_the_other(tmp_path: Path) -> None:
    """It has its connection still, with a result on it, and a command in memory that the other one has begun."""
    with running(tmp_path, "mark", Habits(absent=True), clients=2) as line:
        tool = line.controller.tool
        holder = line.wait_until_shared()
        line.begin("J1")
        wait_for(lambda: tool.enabled, "the tool is enabled")
        line.begin("J2")
        line.mes.wait_for_state("J2", "Running", DEADLINE)
        line.gateways[holder].freeze()
        other = {"first": "second", "second": "first"}[holder]
        wait_for(lambda: "equipment connected" in line.gateways[other].log.read_text(), "the other connects", DEADLINE)
        tool.tighten()
        wait_for(lambda: tool.enabled and len(tool.entries("enabled")) == 2, "the next command has the tool", DEADLINE)
        line.gateways[holder].thaw()
        wait_for(lambda: line.connected() == other, "the thawed gateway names the other", DEADLINE)
        assert tool.enabled
        tool.tighten()
        for job in ("J1", "J2"):
            line.wait_until_ended(job)
        assert [len(tool.entries(text)) for text in ("enabled", "tightened")] == [2, 2]
        assert len({entry.vin for entry in tool.entries("tightened")}) == 2
        wait_for(lambda: line.counts("ok") == 2, "the results are counted")
        assert [line.counts(text) for text in ("late", "unknown")] == [0, 0]
        assert line.controller.violations == []


def test_bolts_beyond_a_batch_while_the_holder_is_frozen_are_late(tmp_path: Path) -> None:
    """The tool stays enabled after the last bolt, and the operator pulls on."""
    with running(tmp_path, "mark", Habits(absent=True)) as line:
        tool = line.controller.tool
        holder = line.wait_until_shared()
        line.begin("J1", "BATCH")
        wait_for(lambda: tool.enabled, "the tool is enabled")
        tool.tighten()
        wait_for(lambda: line.controller.acknowledged == [1], "the bolt is confirmed")
        line.gateways[holder].freeze()
        for _ in range(5):
            tool.tighten()
        line.wait_until_ended("J1")
        line.gateways[holder].thaw()
        wait_for(lambda: line.counts("late") == 3, "the others are late")
        wait_for(lambda: str(line.result("J1")).count("'ID': 'late'") == 3, "the MES knows the late ones")
        assert line.answered("J1") == ["1", "2", "3"]
        assert line.counts("unknown") == 0


@pytest.mark.parametrize("link", [False, True])
def test_thawed_gateway_does_not_report_bolts_of_the_other_again(tmp_path: Path, *, link: bool) -> None:
    """The controller keeps both connections: the bolts on that of the thawed gateway were kept, and reported later."""
    with running(tmp_path, "mark", Habits(absent=True), clients=2, silence=DEADLINE, link=link) as line:
        tool = line.controller.tool
        holder = line.wait_until_shared()
        other = {"first": "second", "second": "first"}[holder]
        line.begin("J1", "BATCH")
        wait_for(lambda: tool.enabled, "the tool is enabled")
        tool.tighten()
        wait_for(lambda: line.controller.acknowledged == [1], "the bolt is confirmed")
        line.gateways[holder].freeze()
        for _ in range(4):
            tool.tighten()
        line.wait_until_ended("J1")
        wait_for(lambda: line.counts("late") == 2, "the others are late")
        line.gateways[holder].thaw()
        wait_for(lambda: line.connected() == other, "the thawed gateway names the other", DEADLINE)
        line.gateways[other].kill()
        log = line.gateways[holder].log
        wait_for(lambda: log.read_text().count('"equipment connected"') == 2, "it connects again", DEADLINE)
        own = str(tool.tighten(vin="OWN"))
        wait_for(lambda: own in line.letters(), "a bolt of the operator's own is reported")
        assert sorted(line.letters()) == ["4", "5", own]
        assert line.answered("J1") == ["1", "2", "3"]

"""Two gateways on one store share one controller of another vendor without blocking each other."""

import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.outside.opcua_device import OpcuaDevice
from tests.outside.plant import Mes
from tests.outside.servers import PREFIX, Broker, Gateway, Store, ended, wait_for
from tests.outside.test_opcua_devices import TIGHTEN, recipe

# The controller reads its node sets first; a gateway may need 20 s until it leaves a command.
pytestmark = [pytest.mark.timeout(240), pytest.mark.long]

DEADLINE = 60.0
JOBS = 5


@dataclass(frozen=True)
class Line:
    """A station with two gateways at one tool."""

    first: Gateway
    second: Gateway
    mes: Mes
    controller: OpcuaDevice

    def begin(self, job: str) -> None:
        """Start a job and wait until its joining has begun."""
        before = self.controller.count("started")
        order = {"JobOrder": {"JobOrderID": job, "WorkMasterID": [{"ID": "WM-1"}]}}
        assert self.mes.call("StoreAndStart", order).status == 1
        self.controller.wait_for("started", before + 1)

    def end(self, job: str) -> None:
        """Wait for the good result of a job."""
        self.mes.wait_for_state(job, "Ended", DEADLINE)
        self.mes.client.wait(lambda: self.mes.result(job), f"the result of {job}", DEADLINE)
        assert "85.2" in str(self.mes.result(job))


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Line]:
    broker, store = Broker(tmp_path / "broker"), Store(tmp_path / "store")
    controller = OpcuaDevice(tmp_path / "controller", "controller", 3000)
    broker.start()
    settings = (
        f'[redis]\nurl = "unix://{store.socket}"\n[mqtt]\nurl = "mqtt://127.0.0.1:{broker.port}"\n'
        f'[northbound]\ntopic_prefix = "{PREFIX}"\n[opcua]\nendpoint = ""\n'
        f'[southbound.wrench]\nkind = "ijt"\ntype_ids = ["{TIGHTEN}"]\nurl = "{controller.url}"\nsecurity = "none"\n'
        f'lock = "on"\n'
    )
    gateways = [Gateway(tmp_path / name, name, settings) for name in ("first", "second")]
    mes = Mes(broker.port)
    with ended(*gateways, broker, store, controller), contextlib.closing(mes.client):
        with ThreadPoolExecutor() as pool:
            for started in [pool.submit(item.start) for item in (store, controller)]:
                started.result()
        gateways[0].start()
        mes.open()
        mes.configure("WM-1", recipe(TIGHTEN, joining_process_id="rear axle 85Nm"))
        yield Line(gateways[0], gateways[1], mes, controller)


def _wait_until_connected(gateway: Gateway) -> None:
    wait_for(lambda: "equipment connected" in gateway.log.read_text(), "the tool is connected", DEADLINE)


def test_gateway_connecting_during_a_command_does_not_block_jobs(line: Line) -> None:
    """The next jobs run on either gateway; the tool is disabled at the end, by none of them for another system."""
    line.begin("middle")
    line.second.start()
    _wait_until_connected(line.second)
    line.end("middle")
    for number in range(JOBS):
        line.begin(f"next {number}")
        line.end(f"next {number}")
    assert line.controller.count("started") == JOBS + 1
    wait_for(lambda: line.controller.values("enabled")[-1] is False, "the tool is disabled")
    logs = line.first.log.read_text() + line.second.log.read_text()
    assert "tool disabled by another system" not in logs


def test_abort_of_a_job_stops_the_tool_of_the_other_gateway(line: Line) -> None:
    """Whichever gateway decides the abort: the joining ends at once, and the next job runs."""
    line.second.start()
    _wait_until_connected(line.second)
    for number in range(JOBS):
        line.begin(f"aborted {number}")
        assert line.mes.call("Abort", {"JobOrderID": f"aborted {number}"}).status == 1
        line.controller.wait_for("aborted", number + 1)
        line.mes.wait_for_state(f"aborted {number}", "Aborted", DEADLINE)
        # The next job may run on the other gateway, which does not wait for the end of the stop.
        wait_for(lambda: line.controller.values("enabled")[-1] is False, "the tool is disabled")
    assert line.controller.count("finished") == 0

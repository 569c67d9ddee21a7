"""Each bolt of a controller is reported once, also when its batch or its subscription ends early."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.outside.opcua_device import OpcuaDevice
from tests.outside.plant import Mes
from tests.outside.servers import PREFIX, Broker, Gateway, Store, ended, wait_for
from tests.outside.test_opcua_devices import TIGHTEN, recipe

# node-opcua reads its node sets first.
pytestmark = [pytest.mark.timeout(240), pytest.mark.slow]

DEADLINE = 60.0
LIMIT_S = 6


@dataclass(frozen=True)
class Line:
    """A station with a controller that joins batches."""

    gateway: Gateway
    mes: Mes
    controller: OpcuaDevice


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Line]:
    directory: Path = tmp_path_factory.mktemp("disturbed")
    broker, store = Broker(directory / "broker"), Store(directory / "store")
    controller = OpcuaDevice(directory / "controller", "controller", 1500, "batch")
    with ended(controller, store, broker):
        for item in (broker, store, controller):
            item.start()
        gateway = Gateway(
            directory / "gateway",
            "edge",
            f'[redis]\nurl = "unix://{store.socket}"\n[mqtt]\nurl = "mqtt://127.0.0.1:{broker.port}"\n'
            f'[northbound]\ntopic_prefix = "{PREFIX}"\n[opcua]\nendpoint = ""\n'
            f'[southbound.wrench]\nkind = "ijt"\ntype_ids = ["{TIGHTEN}"]\nurl = "{controller.url}"\n'
            f'security = "none"\n',
        )
        mes = Mes(broker.port)
        with ended(gateway):
            gateway.start()
            mes.open()
            batch = {"classification": "batch", "batch_size": 20, "joining_process_id": "AXLE-85"}
            mes.configure("WM-1", recipe(TIGHTEN, LIMIT_S, **batch))
            wait_for(lambda: "connected      yes" in gateway.cli("equipment", "show", "wrench"), "it is connected")
            yield Line(gateway, mes, controller)
        mes.client.close()


def test_bolts_of_a_batch_that_timed_out_are_late_results_of_its_job(line: Line) -> None:
    """Before, they were in the memory of the gateway only, and the MES never heard of them."""
    order = {"JobOrder": {"JobOrderID": "batch", "WorkMasterID": [{"ID": "WM-1"}]}}
    assert line.mes.call("StoreAndStart", order).status == 1
    line.controller.wait_for("aborted")
    records = line.controller.records()
    before = records[: next(n for n, record in enumerate(records) if "aborted" in record)]
    bolts = [entry["result"] for entry in before if "finished" in entry]
    assert len(bolts) >= 2
    line.mes.wait_for_state("batch", "Ended", DEADLINE)
    # The bolt that was at work when the controller aborted, and the batch, follow.
    wait_for(lambda: line.gateway.cli("jobs", "results", "batch").count("late") >= len(bolts), "all bolts are kept")
    line.controller.wait_for("acknowledged", len(bolts))
    log = line.gateway.log.read_text()
    assert [log.count(f'"result": "{bolt}"') for bolt in bolts] == [1] * len(bolts)
    assert [line.controller.values("acknowledged").count(bolt) for bolt in bolts] == [1] * len(bolts)
    wait_for(lambda: line.controller.values("enabled")[-1] is False, "the tool is disabled")


def test_bolt_after_a_dropped_subscription_is_reported(line: Line) -> None:
    """The session stays and its requests are answered: only the Publish request is declined."""

    def letters() -> str:
        return str(line.gateway.cli("dead-letters", "list", "--json"))

    before = letters().count('"late"')
    line.controller.order("unsubscribe")
    line.controller.trigger()
    bolt = line.controller.values("result")[-1]
    wait_for(lambda: f'"result": "{bolt}"' in line.gateway.log.read_text(), bolt)
    wait_for(lambda: letters().count('"late"') == before + 1, "the station keeps it as a late result")

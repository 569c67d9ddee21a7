"""A controller over an encrypted session on another vendor's stack (node-opcua), set up as its page describes."""

import shutil
from pathlib import Path

import pytest

from tests.outside.opcua_device import OpcuaDevice
from tests.outside.plant import Mes
from tests.outside.servers import PREFIX, Broker, Gateway, Store, ended, wait_for
from tests.outside.test_encrypted_source import make_certificate
from tests.outside.test_opcua_devices import TIGHTEN, recipe

# node-opcua reads its node sets first.
pytestmark = [pytest.mark.timeout(240), pytest.mark.slow]


def test_bolt_of_an_encrypted_controller_counts_after_mutual_trust(tmp_path: Path) -> None:
    broker, store = Broker(tmp_path / "broker"), Store(tmp_path / "store")
    controller = OpcuaDevice(tmp_path / "controller", "controller", 300, "encrypted")
    make_certificate(tmp_path)
    path = tmp_path / "controller" / "pki" / "trusted" / "certs"
    path.mkdir(parents=True)
    shutil.copy(tmp_path / "opcua-client.pem", path)
    trusted = tmp_path / "opcua-devices"
    trusted.mkdir()
    with ended(controller, store, broker):
        broker.start()
        store.start()
        controller.start()
        gateway = Gateway(
            tmp_path / "gateway",
            "edge",
            f'[redis]\nurl = "unix://{store.socket}"\n[mqtt]\nurl = "mqtt://127.0.0.1:{broker.port}"\n'
            f'[northbound]\ntopic_prefix = "{PREFIX}"\n[opcua]\nendpoint = ""\n'
            f'[southbound.wrench]\nkind = "ijt"\ntype_ids = ["{TIGHTEN}"]\nurl = "{controller.url}"\n'
            f'cert_file = "{tmp_path}/opcua-client.pem"\nkey_file = "{tmp_path}/opcua-client.key"\n'
            f'trusted = "{trusted}"\n',
        )
        mes = Mes(broker.port)
        with ended(gateway):
            gateway.start()
            mes.open()
            mes.configure("WM-1", recipe(TIGHTEN, joining_process_id="rear axle 85Nm"))
            wait_for(lambda: "certificate" in gateway.cli("equipment", "show", "wrench"), "the reason is shown")
            shutil.copy(tmp_path / "controller" / "pki" / "own" / "certs" / "certificate.pem", trusted)
            order = {"JobOrder": {"JobOrderID": "J1", "WorkMasterID": [{"ID": "WM-1"}]}}
            assert mes.call("StoreAndStart", order).status == 1
            mes.wait_for_state("J1", "Ended", 60)
            mes.client.wait(lambda: mes.result("J1"), "the result", 60)
            assert "85.2" in str(mes.result("J1"))
            assert controller.values("started") == ["rear axle 85Nm"]
            controller.wait_for("acknowledged")
        mes.client.close()

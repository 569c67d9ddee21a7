"""A gateway whose subscriptions are refused by the broker serves and reports the refusal."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.outside.plant import Mes, Wrench
from tests.outside.servers import PREFIX, SCOPE, Broker, Gateway, Store, ended

CONTROL = "$CONTROL/dynamic-security/v1"
ACCESS = {"publishClientSend": True, "publishClientReceive": True, "subscribe": False, "unsubscribe": True}
RULES = {
    "defaultACLAccess": ACCESS,
    "clients": [],
    "groups": [{"groupname": "all", "roles": [{"rolename": "all"}]}],
    "anonymousGroup": "all",
    # Everything but the topics that the gateway subscribes to.
    "roles": [
        {
            "rolename": "all",
            "acls": [{"acltype": "publishClientSend", "topic": CONTROL, "allow": True}]
            + [
                {"acltype": "subscribePattern", "topic": f"{PREFIX}/{word}", "allow": True}
                for word in ("answers/#", f"{SCOPE}/events", f"{SCOPE}/result/+", "equipment/wrench/commands")
            ],
        }
    ],
}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    """A mosquitto with its plugin for access rules."""
    broker = Broker(tmp_path / "broker")
    rules = broker.directory / "rules.json"
    rules.write_text(json.dumps(RULES))
    plugin = next(Path("/usr/lib").rglob("mosquitto_dynamic_security.so"))
    broker.further = f"plugin {plugin}\nplugin_opt_config_file {rules}\n"
    with ended(broker):
        broker.start()
        yield broker


def allow_everything(mes: Mes) -> None:
    """Permit every subscription; no connection is lost by this."""
    command = {"commands": [{"command": "setDefaultACLAccess", "acls": [{"acltype": "subscribe", "allow": True}]}]}
    mes.client.publish(CONTROL, json.dumps(command), {})


@pytest.mark.slow
def test_gateway_starts_although_its_subscriptions_are_refused(tmp_path: Path, broker: Broker) -> None:
    store = Store(tmp_path / "store")
    settings = (
        f'[redis]\nurl = "unix://{store.socket}"\n[mqtt]\nurl = "mqtt://127.0.0.1:{broker.port}"\n'
        f'[northbound]\ntopic_prefix = "{PREFIX}"\n[opcua]\nendpoint = ""\n'
        f'[southbound.wrench]\ntype_ids = ["com.example.station.tighten.v1"]\ntopic_prefix = "{PREFIX}/equipment"\n'
    )
    gateway = Gateway(tmp_path / "gateway", "edge", settings)
    mes, wrench = Mes(broker.port), Wrench(broker.port)
    with ended(store, gateway):
        store.start()
        gateway.start()
        try:
            status = gateway.wait_for_status(lambda text: "refuses" in text, "the status names the refusals")
            assert status.startswith("serving, degraded: ")
            assert f"broker refuses subscriptions of MES: {PREFIX}/{SCOPE}/commands" in status
            assert f"broker refuses subscriptions of wrench: {PREFIX}/equipment/wrench/answers" in status
            mes.open()
            wrench.open()
            allow_everything(mes)
            gateway.wait_for_status(lambda text: "refuses" not in text, "the subscriptions are granted")
            mes.configure()
            assert mes.start_job("J1").status == 1
            mes.wait_for_state("J1", "Ended")
            # The same rules again, as after a mistake of an administrator while the gateway runs.
            broker.kill()
            (broker.directory / "rules.json").write_text(json.dumps(RULES))
            broker.start()
            gateway.wait_for_status(lambda text: "refuses subscriptions of MES" in text, "the status names them again")
        finally:
            mes.client.close()
            wrench.client.close()

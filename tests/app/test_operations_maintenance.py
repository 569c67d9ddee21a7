"""The gateway shows its maintenance mode to OPC UA clients, who may switch it."""

import re
from pathlib import Path

import msgspec
from asyncua import ua

from edge.app.wiring import open_gateway
from edge.config import MqttSettings, OpcuaSettings, RedisSettings, Settings
from edge.model.plant import UPGRADE, Maintenance
from edge.store import audit, mode
from edge.store.client import Store
from edge.uaserver.namespaces import TYPES_URI
from tests.app.running import opcua_in
from tests.opcua_client import patient_client


async def test_start_after_an_upgrade_ends_its_maintenance_mode(redis: RedisSettings, store: Store) -> None:
    settings = Settings(redis=redis, mqtt=MqttSettings(url=""), opcua=OpcuaSettings(endpoint=""))
    for by, is_over in ((UPGRADE, True), ("anna", False)):
        before = await mode.load(store, "edge")
        await store.commit(mode.save(store.keys, before, "edge", Maintenance(by=by)))
        async with open_gateway(settings):
            assert ((await mode.load(store, "edge")).gateway is None) is is_over


async def test_client_switches_the_maintenance_mode_of_this_gateway(
    redis: RedisSettings, store: Store, tmp_path: Path
) -> None:
    opcua = msgspec.structs.replace(opcua_in(tmp_path), anonymous="engineer")
    async with open_gateway(Settings(redis=redis, mqtt=MqttSettings(url=""), opcua=opcua)) as opened:
        match = re.search(r"opc\.tcp://\S+", opened.serving)
        assert match
        async with patient_client(match[0].rstrip(";")) as client:
            index = await client.get_namespace_index(TYPES_URI)
            gateway = await client.nodes.objects.get_child(f"{index}:Gateway")
            place = await gateway.get_child(f"{index}:Maintenance")
            arguments = (True, "fire", ua.Variant())
            assert await place.call_method(f"{index}:SwitchOn", *arguments) == 1
            on = await mode.load(store, "edge")
            assert on.store is None
            assert on.gateway
            assert (on.gateway.message, on.gateway.kind) == ("fire", "now")
            assert await place.call_method(f"{index}:SwitchOff") == 1
            assert (await mode.load(store, "edge")).gateway is None
    texts = [msgspec.json.decode(sealed_record.text) async for sealed_record in audit.read_all(store)]
    kinds = [(text["kind"], text["action"]) for text in texts if text["kind"] == "opcua.call"]
    assert kinds == [("opcua.call", "maintenance on"), ("opcua.call", "maintenance off")]

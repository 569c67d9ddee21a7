"""A job switches a stack light, configured by settings alone, with a complete gateway."""

from typing import Any

from edge.app.wiring import open_gateway
from edge.config import MqttSettings, NorthboundSettings, RedisSettings, Settings
from edge.features.lamps.settings import StackLightSettings
from edge.features.simulator.mes import open_mes
from edge.links.mqtt import open_session
from edge.model.isa95 import ReturnStatus, WorkMaster
from edge.model.recipe import RECIPE_DATASCHEMA
from tests.app.running import NO_OPCUA
from tests.conftest import WaitUntil
from tests.integration.plant import SCOPE, Heard, order

LIGHT = "com.example.station.light.v1"
SIGNALLING: dict[str, Any] = {
    "steps": [{"name": "Signal", "initial": True}, {"name": "Done"}],
    "transitions": [{"source": "Signal", "target": "Done", "condition": "green"}],
    "actions": [
        {
            "name": "light",
            "step": "Signal",
            "qualifier": "N",
            "interaction": "push_command",
            "type_id": LIGHT,
            "parameters": {"green": True, "red": False},
        }
    ],
}


async def test_recipe_switches_the_lamps_of_a_fake_chip(
    redis: RedisSettings, mqtt: MqttSettings, unique: str, wait_until: WaitUntil
) -> None:
    heard = Heard()
    settings = Settings(
        redis=redis,
        mqtt=MqttSettings(url=mqtt.url, client_id=unique),
        northbound=NorthboundSettings(topic_prefix=unique),
        southbound={
            "light": StackLightSettings(
                kind="stacklight", type_ids=(LIGHT,), chip="fake", lamps={"red": 17, "green": 22}
            )
        },
        opcua=NO_OPCUA,
    )
    async with (
        open_session(mqtt, f"{unique}-listener") as listener,
        open_mes(mqtt, f"{unique}-mes", topic_prefix=unique) as mes,
        open_gateway(settings),
    ):
        await listener.subscribe(f"{unique}/{SCOPE}/events", heard.take)
        await mes.configure(SCOPE, "workmaster", WorkMaster(id="WM-1", data=SIGNALLING, dataschema=RECIPE_DATASCHEMA))
        assert (await mes.call(SCOPE, "StoreAndStart", order("J1"))).status is ReturnStatus.NO_ERROR
        await wait_until(lambda: "Ended/Completed" in heard.states())

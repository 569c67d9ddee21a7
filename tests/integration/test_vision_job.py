"""A job uses a Machine Vision camera, configured by settings alone, with a complete gateway."""

from typing import Any

import pytest

from edge.app.wiring import open_gateway
from edge.config import MqttSettings, NorthboundSettings, RedisSettings, Settings
from edge.features.simulator.mes import open_mes
from edge.features.vision.settings import VisionSettings
from edge.features.vision.simulated.camera import open_vision
from edge.links.mqtt import open_session
from edge.model.isa95 import ReturnStatus, WorkMaster
from edge.model.recipe import RECIPE_DATASCHEMA
from tests.app.running import NO_OPCUA
from tests.conftest import WaitUntil
from tests.integration.plant import SCOPE, Heard, order

pytestmark = pytest.mark.slow

INSPECTION: dict[str, Any] = {
    "steps": [{"name": "Inspect", "initial": True}, {"name": "Done"}],
    "transitions": [{"source": "Inspect", "target": "Done", "condition": "always"}],
    "actions": [
        {
            "name": "inspect",
            "step": "Inspect",
            "qualifier": "N",
            "interaction": "push_command",
            "type_id": "com.example.station.inspect.v1",
            "parameters": {"recipe_id": "rear-axle"},
        }
    ],
}


async def test_job_completes_although_the_camera_is_unplugged_during_an_action(
    redis: RedisSettings, mqtt: MqttSettings, unique: str, wait_until: WaitUntil
) -> None:
    heard = Heard()
    async with (
        open_vision(delay=None, content=(True,)) as camera,
        open_session(mqtt, f"{unique}-listener") as listener,
        open_mes(mqtt, f"{unique}-mes", topic_prefix=unique) as mes,
    ):
        eye = VisionSettings(
            kind="vision", type_ids=("com.example.station.inspect.v1",), url=camera.device.url, security="none"
        )
        settings = Settings(
            redis=redis,
            mqtt=MqttSettings(url=mqtt.url, client_id=unique),
            northbound=NorthboundSettings(topic_prefix=unique),
            southbound={"eye": eye},
            opcua=NO_OPCUA,
        )
        await heard.listen(listener, unique)
        async with open_gateway(settings):
            await mes.configure(
                SCOPE, "workmaster", WorkMaster(id="WM-1", data=INSPECTION, dataschema=RECIPE_DATASCHEMA)
            )
            assert (await mes.call(SCOPE, "StoreAndStart", order("J1"))).status is ReturnStatus.NO_ERROR
            await wait_until(lambda: camera.begun)
            async with camera.device.unplugged():
                await camera.end_job()
            await wait_until(heard.ended)
    assert len(camera.begun) == 1

"""A job tightens bolts over OPC UA, configured by settings alone, with a complete gateway."""

from typing import Any

import pytest

from edge.app.wiring import open_gateway
from edge.config import MqttSettings, NorthboundSettings, RedisSettings, Settings
from edge.features.joining.settings import IjtSettings
from edge.features.joining.simulated.controller import open_ijt
from edge.features.joining.simulated.results import NOT_OK
from edge.features.simulator.mes import open_mes
from edge.links.mqtt import open_session
from edge.model.isa95 import ReturnStatus, WorkMaster
from edge.model.recipe import RECIPE_DATASCHEMA
from tests.app.running import NO_OPCUA
from tests.conftest import WaitUntil
from tests.integration.plant import SCOPE, Heard, order

pytestmark = pytest.mark.slow

TIGHTEN = "com.example.station.tighten.v1"


def tighten(name: str, step: str) -> dict[str, Any]:
    return {
        "name": name,
        "step": step,
        "qualifier": "N",
        "interaction": "push_command",
        "type_id": TIGHTEN,
        "parameters": {"joining_process_id": "rear axle 85Nm"},
    }


RECIPE: dict[str, Any] = {
    "steps": [{"name": "Tighten", "initial": True}, {"name": "Rework"}, {"name": "Done"}],
    "transitions": [
        {"source": "Tighten", "target": "Done", "condition": 'actions.first.result.evaluation == "OK"'},
        {"source": "Tighten", "target": "Rework", "condition": 'actions.first.result.evaluation == "NotOK"'},
        {"source": "Rework", "target": "Done", "condition": 'actions.second.result.evaluation == "OK"'},
    ],
    "actions": [tighten("first", "Tighten"), tighten("second", "Rework")],
}


def measured(parameters: list[dict[str, Any]], *names: str) -> tuple[Any, str]:
    """Return a value of a job response by its path, with the symbol of its unit."""
    (found,) = (parameter for parameter in parameters if parameter["ID"] == names[0])
    if names[1:]:
        return measured(found["Subparameters"], *names[1:])
    return found["Value"], found["EngineeringUnits"]["DisplayName"]["Text"]


async def test_bolt_not_ok_is_repeated_after_a_controller_outage(
    redis: RedisSettings, mqtt: MqttSettings, unique: str, wait_until: WaitUntil
) -> None:
    heard = Heard()
    async with (
        open_ijt(delay=None) as controller,
        open_session(mqtt, f"{unique}-listener") as listener,
        open_mes(mqtt, f"{unique}-mes", topic_prefix=unique) as mes,
    ):
        settings = Settings(
            redis=redis,
            mqtt=MqttSettings(url=mqtt.url, client_id=unique),
            northbound=NorthboundSettings(topic_prefix=unique),
            southbound={
                "wrench": IjtSettings(kind="ijt", type_ids=(TIGHTEN,), url=controller.device.url, security="none")
            },
            opcua=NO_OPCUA,
        )
        await heard.listen(listener, unique)
        async with open_gateway(settings):
            await mes.configure(SCOPE, "workmaster", WorkMaster(id="WM-1", data=RECIPE, dataschema=RECIPE_DATASCHEMA))
            assert (await mes.call(SCOPE, "StoreAndStart", order("J1"))).status is ReturnStatus.NO_ERROR
            await wait_until(lambda: len(controller.begun) == 1)
            await controller.end_joining(NOT_OK)
            await wait_until(lambda: len(controller.begun) == 2)
            async with controller.device.unplugged():
                await controller.end_joining()
            await wait_until(heard.ended)
            await wait_until(lambda: len(controller.acknowledged) == 2)
    assert len(controller.begun) == 2
    data = heard.retained["result/J1"]["JobResponseData"]
    assert measured(data, "first", "violations", "Torque", "measured") == (102.0, "N·m")
    assert measured(data, "second", "torque") == (85.2, "N·m")
    assert measured(data, "second", "steps", "Rundown", "angle") == (720.0, "°")

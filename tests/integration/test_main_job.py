"""The main job, from the call of the MES to its response, on a real broker, store and OPC UA server."""

import asyncio
import re
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from asyncua import Client

from edge.app.wiring import open_gateway
from edge.config import MqttSettings, RedisSettings
from edge.foundation.errors import Refused
from edge.model.isa95 import IdCall, OrderCall, ReturnStatus, WorkMaster
from edge.model.recipe import RECIPE_DATASCHEMA
from tests.app.running import NO_OPCUA, edge_run, opcua_in, settings_of, written
from tests.conftest import WaitUntil
from tests.integration.plant import PUSHING, RECIPE, SCOPE, STEPS, Plant, opened_plant, order
from tests.opcua_client import patient_client
from tests.uaserver.running import Space

pytestmark = pytest.mark.slow

ENDED = ["Running", "Ended/Completed"]


@pytest.fixture
async def plant(mqtt: MqttSettings, unique: str) -> AsyncIterator[Plant]:
    async with opened_plant(mqtt, unique) as plant:
        yield plant


async def shown(client: Client) -> tuple[list[str], list[str]]:
    """Return the OPC UA lists: each job order with its state, each response with the end of its job."""
    space = Space(client, await client.get_namespace_array())
    orders = await (await space.job_order_list()).read_value()
    responses = await (await space.response_list()).read_value()
    return (
        [f"{entry.JobOrder.JobOrderID} {entry.State[0].StateText.Text}" for entry in orders or ()],
        [f"{entry.JobOrderID} {entry.JobState[0].StateText.Text}" for entry in responses or ()],
    )


async def until_shown(client: Client, orders: list[str], responses: list[str]) -> None:
    async with asyncio.timeout(60):
        while await shown(client) != (orders, responses):
            pass


async def test_a_job_runs_from_its_order_to_its_response_and_leaves_no_trace(
    plant: Plant, redis: RedisSettings, mqtt: MqttSettings, unique: str, tmp_path: Path, wait_until: WaitUntil
) -> None:
    heard = plant.heard
    async with open_gateway(settings_of(redis, mqtt, unique, opcua_in(tmp_path))) as gateway:
        endpoint = re.search(r"opc\.tcp://\S+:[1-9]\d+", gateway.serving)
        assert endpoint
        async with patient_client(endpoint[0]) as client:
            await client.load_data_type_definitions()
            await plant.configure()
            await plant.wrench.release()
            answer = await plant.mes.call(SCOPE, "StoreAndStart", order("J1"))
            assert answer.status is ReturnStatus.NO_ERROR
            await wait_until(heard.ended)
            assert heard.states() == ENDED
            response = heard.retained["result/J1"]
            results = {value["ID"]: value for value in response["JobResponseData"]}
            assert results.keys() == {
                "position_axle",
                "tighten",
                "camera_qa",
                "verify",
                "Attempts",
                "Recipe",
                "Verdict",
            }
            assert results["tighten"]["Subparameters"] == [{"ID": "torque", "Value": 85.2}]
            assert response["StartTime"] <= response["EndTime"]
            await wait_until(lambda: heard.activations() == dict.fromkeys(STEPS, 1))
            await until_shown(client, ["J1 Ended"], ["J1 Ended"])
            answer = await plant.mes.call(SCOPE, "Clear", IdCall(job_order_id="J1"))
            assert answer.status is ReturnStatus.NO_ERROR
            await wait_until(lambda: set(heard.emptied) == {"order/J1", "result/J1"})
            await until_shown(client, [], [])
    assert heard.retained == {}
    assert plant.wrench.ids().keys() == {"position_axle", "tighten"}


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["stopped in order", "killed"])
async def test_job_continues_at_its_last_action_after_a_gateway_restart(
    plant: Plant,
    redis: RedisSettings,
    mqtt: MqttSettings,
    unique: str,
    tmp_path: Path,
    wait_until: WaitUntil,
    how: signal.Signals,
) -> None:
    file = written(settings_of(redis, mqtt, unique, NO_OPCUA), tmp_path)
    wrench, heard = plant.wrench, plant.heard
    async with edge_run("--settings", file) as gateway:
        await gateway.until("ready")
        await plant.configure(PUSHING)
        await plant.mes.call(SCOPE, "StoreAndStart", order("J1"))
        await wait_until(lambda: wrench.commands)
        gateway.send(how)
        assert await gateway.ended() == (0 if how is signal.SIGTERM else -how)
    async with edge_run("--settings", file) as gateway:
        await gateway.until("ready")
        # The broker may have lost the command: it is sent again, under the id that the wrench recognises.
        await wait_until(lambda: len(wrench.commands) == 2)
        await wrench.release()
        await wait_until(heard.ended)
        await gateway.stop()
    assert heard.states() == ENDED
    assert {action: len(ids) for action, ids in wrench.ids().items()} == {"position": 1, "tighten": 1}
    assert max(heard.activations().values()) == 1


async def test_answer_received_while_the_gateway_was_stopped_is_processed(
    plant: Plant, redis: RedisSettings, mqtt: MqttSettings, unique: str, tmp_path: Path, wait_until: WaitUntil
) -> None:
    file = written(settings_of(redis, mqtt, unique, NO_OPCUA), tmp_path)
    async with edge_run("--settings", file) as gateway:
        await gateway.until("ready")
        await plant.configure(PUSHING)
        await plant.mes.call(SCOPE, "StoreAndStart", order("J1"))
        await wait_until(lambda: plant.wrench.commands)
        await gateway.stop()
    await plant.wrench.release()
    async with edge_run("--settings", file) as gateway:
        await wait_until(lambda: plant.heard.states() == ENDED)
        await gateway.stop()
    assert {action: len(ids) for action, ids in plant.wrench.ids().items()} == {"position": 1, "tighten": 1}
    assert max(plant.heard.activations().values()) == 1


async def test_impossible_job_is_declined_and_the_next_one_runs(
    plant: Plant, redis: RedisSettings, mqtt: MqttSettings, unique: str, wait_until: WaitUntil
) -> None:
    async with open_gateway(settings_of(redis, mqtt, unique, NO_OPCUA)):
        await plant.wrench.release()
        answer = await plant.mes.call(SCOPE, "StoreAndStart", order("J0"))
        assert answer.status is ReturnStatus.UNABLE_TO_ACCEPT_JOB_ORDER
        assert "Work Master 'WM-1' is not known to this station" in answer.reasons
        unfit = {**RECIPE, "transitions": [{"source": "Nowhere", "target": "Init", "condition": "((("}]}
        with pytest.raises(Refused, match="Nowhere") as refusal:
            await plant.mes.configure(
                SCOPE, "workmaster", WorkMaster(id="WM-2", data=unfit, dataschema=RECIPE_DATASCHEMA)
            )
        assert refusal.value.kind == "recipe"
        assert refusal.value.message.count("WM-2: ") > 1
        await plant.configure()
        await plant.mes.call(SCOPE, "StoreAndStart", order("J1"))
        await wait_until(lambda: plant.heard.states() == ENDED)


async def test_an_order_without_equipment_for_its_commands_is_refused(
    plant: Plant, redis: RedisSettings, mqtt: MqttSettings, unique: str
) -> None:
    homeless = {
        "steps": [{"name": "Weld", "initial": True}, {"name": "Done"}],
        "transitions": [{"source": "Weld", "target": "Done", "condition": "always"}],
        "actions": [
            {"name": "weld", "step": "Weld", "qualifier": "N", "interaction": "push_command", "type_id": "weld.v1"}
        ],
    }
    async with open_gateway(settings_of(redis, mqtt, unique, NO_OPCUA)):
        master = WorkMaster(id="WM-1", data=homeless, dataschema=RECIPE_DATASCHEMA)
        await plant.mes.configure(SCOPE, "workmaster", master)
        answer = await plant.mes.call(SCOPE, "StoreAndStart", order("J1"))
    assert answer.status is ReturnStatus.UNABLE_TO_ACCEPT_JOB_ORDER
    assert "no equipment takes commands of type weld.v1" in answer.reasons
    assert plant.heard.states() == []


async def test_extreme_numbers_and_nesting_keep_the_gateway_alive(
    plant: Plant, redis: RedisSettings, mqtt: MqttSettings, unique: str, tmp_path: Path, wait_until: WaitUntil
) -> None:
    hard: list[dict[str, Any]] = [
        {"Priority": -(2**15)},
        {"StartTime": "0001-01-01T00:00:00Z", "EndTime": "9999-12-31T23:59:59Z"},
        {"JobOrderParameters": [{"ID": "p", "Value": 2**1000}, {"ID": "q", "Value": [1, "a", None, [2], {"b": []}]}]},
        {"EquipmentRequirements": []},
    ]
    deep: dict[str, object] = {"ID": "p"}
    for _ in range(13):
        deep = {"ID": "p", "Subparameters": [deep]}
    hard.append({"JobOrderParameters": [deep]})
    async with open_gateway(settings_of(redis, mqtt, unique, opcua_in(tmp_path))) as gateway:
        await plant.configure()
        for number, fields in enumerate(hard):
            call = {"JobOrder": {"JobOrderID": f"J{number}", "WorkMasterID": [{"ID": "WM-1"}], **fields}}
            answer = await plant.mes.call(SCOPE, "Store", msgspec.convert(call, OrderCall))
            assert answer.status is ReturnStatus.NO_ERROR, fields
        await wait_until(lambda: len(plant.heard.retained) == len(hard))
        endpoint = re.search(r"opc\.tcp://\S+:[1-9]\d+", gateway.serving)
        assert endpoint
        async with patient_client(endpoint[0]) as client:
            await client.load_data_type_definitions()
            await until_shown(client, [f"J{number} NotAllowedToStart" for number in range(len(hard))], [])

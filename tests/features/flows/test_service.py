"""A gateway runs flows when its settings enable them, and imports no flow module otherwise."""

import asyncio
from pathlib import Path

import pytest

from edge.app.wiring import open_gateway
from edge.config import MqttSettings, RedisSettings, Settings
from edge.features.flows.cycle import CycleStatus
from edge.features.flows.redis_state import RedisFlowState
from edge.features.flows.settings import FlowsSettings
from edge.store.client import Store
from tests.app.running import NO_OPCUA
from tests.features.flows.documents import flow, node
from tests.features.flows.gateways import Plant
from tests.features.imports import imported_with

pytestmark = pytest.mark.slow

LOG = flow(
    [
        node("a", "constant", value=[1, 2, 6]),
        node("mean", "aggregate", of="mean"),
        node("log", "file.append", file="m.csv"),
    ],
    "a>mean mean>log",
    interval_seconds=0,
)


async def test_flow_runs_on_a_gateway(store: Store, redis: RedisSettings, tmp_path: Path) -> None:
    flows = FlowsSettings(run="on", directory=str(tmp_path))
    plant = Plant(RedisFlowState(store))
    async with open_gateway(
        Settings(redis=redis, mqtt=MqttSettings(url=""), opcua=NO_OPCUA, sections={"flows": flows})
    ):
        await plant.run(LOG)
        record = await plant.ended()
    assert record.cycle.status is CycleStatus.COMPLETED, record
    assert (tmp_path / "m.csv").read_text().endswith(",3.0\n")


async def test_disabled_flows_do_not_run(store: Store, redis: RedisSettings) -> None:
    plant = Plant(RedisFlowState(store))
    async with open_gateway(Settings(redis=redis, mqtt=MqttSettings(url=""), opcua=NO_OPCUA)):
        await plant.run(LOG)
        names = {task.get_name() for task in asyncio.all_tasks()}
    assert not [name for name in names if "flow" in name]
    assert (await plant.service.load("flow")).last_cycle == -1


def test_gateway_without_flows_imports_no_flow_module() -> None:
    assert imported_with("edge.app.wiring", "flows") == set()


def test_opcua_server_without_flows_imports_only_their_types() -> None:
    names = {f"edge.features.flows.{name}" for name in ("flow_view", "opcua")}
    assert imported_with("edge.features.flows.opcua", "flows") == names


def test_default_settings_have_no_flows() -> None:
    assert Settings().section(FlowsSettings).run == "off"

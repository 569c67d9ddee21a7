"""OPC UA clients see the flows of the store if the settings enable both; otherwise the folder is absent."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from asyncua import ua

from edge.app.wiring import open_gateway
from edge.config import MqttSettings, RedisSettings, Settings
from edge.features.flows.cycle_service import FlowService
from edge.features.flows.opcua import FLOW_STATE
from edge.features.flows.plan import Plans
from edge.features.flows.redis_state import RedisFlowState
from edge.features.flows.settings import FlowsSettings
from edge.store.client import Store
from tests.app.running import opcua_in
from tests.features.flows.gateways import CHAIN
from tests.free_ports import free_port
from tests.opcua_client import patient_client

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("run", ["on", "off"])
async def test_flow_of_the_store_is_shown(redis: RedisSettings, store: Store, tmp_path: Path, run: Any) -> None:
    await FlowService(RedisFlowState(store), Plans(), lambda: 5).put(CHAIN)
    endpoint = f"opc.tcp://127.0.0.1:{free_port()}"
    served = msgspec.structs.replace(opcua_in(tmp_path), endpoint=endpoint, security="none", anonymous="observer")
    flows = FlowsSettings(run=run, directory=str(tmp_path))
    async with (
        open_gateway(Settings(redis=redis, mqtt=MqttSettings(url=""), opcua=served, sections={"flows": flows})),
        patient_client(endpoint) as client,
    ):
        state = client.get_node("ns=1;s=Gateway/Flows/flow/State")
        if run == "off":
            with pytest.raises(ua.UaStatusCodeError):
                await state.read_value()
            return
        async with asyncio.timeout(60):
            while not await _is_registered(state):  # noqa: ASYNC110 - a client can only look
                await asyncio.sleep(0.02)


async def _is_registered(state: Any) -> bool:
    try:
        return bool(await state.read_value() == FLOW_STATE.values.index("registered"))
    except ua.UaStatusCodeError:
        return False

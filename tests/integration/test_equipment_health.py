"""Connection changes of equipment are shown in the service status, OPC UA, the metrics and the store."""

import asyncio
import re
import urllib.request
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from edge.app.wiring import open_gateway
from edge.config import MetricsSettings, MqttSettings, RedisSettings
from edge.links.mqtt import open_session
from edge.store import equipment_memory
from edge.store.client import Store
from tests.app.running import opcua_in, settings_of
from tests.integration.plant import SCOPE
from tests.opcua_client import patient_client
from tests.station.plant import until

pytestmark = pytest.mark.slow


async def test_switched_off_wrench_is_reported_disconnected_on_every_interface(
    redis: RedisSettings,
    mqtt: MqttSettings,
    store: Store,
    unique: str,
    tmp_path: Path,
) -> None:
    settings = settings_of(redis, mqtt, unique, opcua_in(tmp_path))
    settings = msgspec.structs.replace(settings, metrics=MetricsSettings(listen="127.0.0.1:0"))
    reported: list[str] = []
    async with open_gateway(settings, reported.append) as gateway, open_session(mqtt, f"{unique}-wrench") as wrench:
        endpoint = re.search(r"OPC UA (opc\.tcp://\S+);", gateway.serving)
        url = re.search(r"metrics (http://127\.0\.0\.1:\d+/metrics)", gateway.serving)
        assert endpoint
        assert url

        async def measured(sample: str) -> bool:
            answer = await asyncio.to_thread(urllib.request.urlopen, url[1], timeout=60)
            with answer:
                return sample in answer.read().decode().splitlines()

        await wrench.publish(f"{unique}/wrench/presence", b"online")
        await until(lambda: measured('microdcs_edge_equipment_connected{equipment="wrench",kind="mqtt"} 1.0'))
        await wrench.publish(f"{unique}/wrench/presence", b"offline")
        await until(lambda: measured('microdcs_edge_equipment_connected{equipment="wrench",kind="mqtt"} 0.0'))
        assert await measured('microdcs_edge_equipment_disconnected{equipment="wrench",fault="offline"} 1.0')
        assert await measured('microdcs_edge_broker_connected{session="MES"} 1.0')
        async with patient_client(endpoint[1]) as client:
            shown = client.get_node("ns=1;s=Gateway/Equipment/wrench/Connected")
            status = client.get_node("ns=1;s=Gateway/Status")
            await until(lambda: is_so(shown.read_value, lambda value: value is False))
            away = "equipment disconnected: wrench (offline); "
            await until(lambda: is_so(status.read_value, lambda value: value.startswith(away)))
            fault = client.get_node("ns=1;s=Gateway/Equipment/wrench/ConnectionFault")
            await until(lambda: is_so(fault.read_value, lambda value: value == "offline"))
            assert await measured("microdcs_edge_opcua_sessions 1.0")

        async def written() -> bool:
            report = (await equipment_memory.load_registered_reports(store, (SCOPE,)))["edge"]
            return report is not None and report.equipment[0].connected is False

        await until(written)
    assert any(line.startswith("STATUS=equipment disconnected: wrench (offline); ") for line in reported)


async def is_so(read: Callable[[], Awaitable[object]], condition: Callable[..., bool]) -> bool:
    return condition(await read())

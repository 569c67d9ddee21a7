"""Sources of the settings are opened with the gateway."""

import asyncio
import json
import subprocess
import sys
from typing import Any

import pytest

from edge.app.wiring import open_gateway
from edge.config import MqttSettings, RedisSettings, Settings
from edge.equipment.value_payload import ValueDecoder
from edge.features.telemetry.settings import MqttSourceSettings, RedisSourceSettings, TelemetrySettings
from edge.store import stream_of_samples as telemetry
from edge.store.client import Store
from tests.app.running import NO_OPCUA
from tests.features.sparkplug.peers import DEADLINE_S, running
from tests.local_broker import OwnBroker
from tests.waiting import until_async

pytestmark = pytest.mark.slow


async def test_key_of_a_foreign_redis_is_recorded(redis: RedisSettings, store: Store) -> None:
    await store.execute("SET", "foreign:load", "7")
    source = RedisSourceSettings(kind="redis", url=redis.url, keys=("foreign:load",), interval=0.05)
    settings = Settings(
        redis=redis,
        mqtt=MqttSettings(url=""),
        opcua=NO_OPCUA,
        sections={"telemetry": TelemetrySettings(record="all"), "source.line": source},
    )

    async def is_recorded() -> bool:
        found = await store.execute("XRANGE", store.keys.telemetry(), "-", "+")
        return "foreign.load" in str(found)

    async with open_gateway(settings) as gateway:
        assert "1 sources of samples" in gateway.serving
        await until_async(is_recorded)
        await until_async(lambda: _is_evaluated(store))


async def test_defect_of_a_redis_source_restarts_only_the_source(
    redis: RedisSettings, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ended the gateway, and systemd would start it into the same defect."""
    await store.execute("SET", "foreign:load", "7")
    source = RedisSourceSettings(kind="redis", url=redis.url, keys=("foreign:load",), interval=0.05)
    settings = Settings(redis=redis, mqtt=MqttSettings(url=""), opcua=NO_OPCUA, sections={"source.line": source})
    decoded: list[bytes] = []

    def fail_once(_decoder: ValueDecoder, _name: str, payload: bytes) -> int:
        decoded.append(payload)
        if len(decoded) == 1:
            raise ValueError("year 10000 is out of range")
        return 7

    monkeypatch.setattr(ValueDecoder, "decode", fail_once)
    async with open_gateway(settings) as gateway:
        await until_async(lambda: _are_decoded(decoded, 2))
        assert gateway.store.defects.counts["source line"] == 1
        assert gateway.store.defects.failing == 1


async def _are_decoded(decoded: list[bytes], count: int) -> bool:
    return len(decoded) >= count


async def _is_evaluated(store: Store) -> bool:
    return (await telemetry.read_lengths(store)).lag == 0


async def test_edge_node_receives_a_rebirth_request_and_its_samples_are_read(
    redis: RedisSettings, mqtt: MqttSettings, broker: OwnBroker, store: Store
) -> None:
    """The edge node is sparkplug-client; its births came before the gateway."""
    group = redis.prefix
    source = MqttSourceSettings(topic=f"spBv1.0/{group}/#", payload="sparkplug", tag="{device}.{metric}")
    settings = Settings(
        redis=redis,
        mqtt=MqttSettings(url=mqtt.url, client_id=group),
        opcua=NO_OPCUA,
        sections={"telemetry": TelemetrySettings(record="all"), "source.line": source},
    )
    oil = {"name": "Hydraulics/Oil", "alias": 7, "type": "Double", "value": 41.5}
    count = {"name": "count", "alias": 8, "type": "Int16", "value": -3}

    async def is_last(tag: str, value: Any, quality: str | None) -> bool:
        entries: Any = await store.execute("XRANGE", store.keys.telemetry(), "-", "+")
        lines = [json.loads(field) for _, fields in entries for field in fields.values() if field.startswith("{")]
        found = [(line["value"], line.get("quality")) for line in lines if line["tag"] == tag]
        return found[-1:] == [(value, quality)]

    async def until(tag: str, value: Any, quality: str | None = None) -> None:
        await until_async(lambda: is_last(tag, value, quality))

    async with running("edge_node.js", str(broker.port), group, "plc") as node:

        def send(**command: Any) -> None:
            assert node.stdin
            node.stdin.write(json.dumps(command).encode() + b"\n")

        async def printed(member: str) -> None:
            assert node.stdout
            async with asyncio.timeout(DEADLINE_S):
                while f'"{member}"'.encode() not in await node.stdout.readline():
                    pass

        send(birth={"": [], "press": [oil, count]})
        await printed("born")
        async with open_gateway(settings):
            send(data=[{"alias": 99, "value": 42.5, "type": "Double"}], device="press")
            await printed("rebirth")
            await until("press.Hydraulics.Oil", 41.5)
            send(data=[{"alias": 8, "value": -70, "type": "Int16"}], device="press")
            await until("press.count", -70)
            send(death="press")
            await until("press.count", None, "bad")
            send(birth={"": [], "press": [oil, count]})
            await until("press.count", -3)
            send(stop=True)
            await until("press.Hydraulics.Oil", None, "bad")


def test_gateway_imports_sparkplug_only_for_a_sparkplug_source() -> None:
    code = "import sys, edge.features.telemetry.sources.open_sources, edge.app.wiring"
    code += "; print([m for m in sys.modules if 'sparkplug.' in m and 'settings' not in m])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_gateway_imports_redis_py_only_for_another_redis() -> None:
    code = "import sys, edge.features.telemetry.service, edge.app.wiring; print('redis' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"

"""Sources of the settings are opened with the gateway."""

import subprocess
import sys

import pytest

from edge.app.wiring import open_gateway
from edge.config import MqttSettings, RedisSettings, Settings
from edge.equipment.value_payload import ValueDecoder
from edge.features.telemetry.settings import RedisSourceSettings, TelemetrySettings
from edge.store import stream_of_samples as telemetry
from edge.store.client import Store
from tests.app.running import NO_OPCUA
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


def test_gateway_imports_redis_py_only_for_another_redis() -> None:
    code = "import sys, edge.features.telemetry.service, edge.app.wiring; print('redis' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"

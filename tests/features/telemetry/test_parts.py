"""Telemetry of a gateway: opened with its rules, absent without."""

import asyncio
import json
from pathlib import Path

import msgspec
import pytest

from edge.app.wiring import open_gateway
from edge.config import MetricsSettings, MqttSettings, RedisSettings, Settings
from edge.features.telemetry.definitions import read_rules
from edge.features.telemetry.settings import TelemetrySettings
from edge.foundation.errors import SettingsError
from edge.store.client import Store
from tests.app.running import NO_OPCUA
from tests.features.imports import imported_with
from tests.features.telemetry.plant import HOT, append, until_drained
from tests.features.telemetry.test_processor import temp, until_kinds

pytestmark = pytest.mark.slow


def test_faults_of_rules_are_reported_together(tmp_path: Path) -> None:
    file = tmp_path / "rules.json"
    file.write_text(json.dumps([{"id": "a"}, HOT | {"x": 1}]))
    with pytest.raises(SettingsError) as caught:
        read_rules(str(file))
    assert len(caught.value.problems) == 2
    file.write_text("{")
    with pytest.raises(SettingsError):
        read_rules(str(file))
    assert read_rules("") == ()


async def test_gateway_with_rules_serves_alarms_and_metrics(redis: RedisSettings, store: Store, tmp_path: Path) -> None:
    file = tmp_path / "rules.json"
    file.write_text(json.dumps([HOT]))
    settings = Settings(
        redis=redis,
        mqtt=MqttSettings(url=""),
        opcua=NO_OPCUA,
        metrics=MetricsSettings(listen="127.0.0.1:0"),
        sections={"telemetry": TelemetrySettings(rules=str(file))},
    )
    async with open_gateway(msgspec.structs.replace(settings)) as gateway:
        assert "1 rules, 0 sources of samples" in gateway.serving
        await append(store, temp(0, 90))
        await until_kinds(store, ["raised"])
        port = int(gateway.serving.partition("metrics http://127.0.0.1:")[2].partition("/")[0])
        async with asyncio.timeout(60):
            # The gateway itself appends samples at any time.
            while "microdcs_edge_telemetry_consumer_lag 0.0" not in (page := await metrics_page(port)):
                await until_drained(store)
    assert 'microdcs_edge_rule_triggered_total{rule="hot"} 1.0' in page
    assert "microdcs_edge_alarms_standing 1.0" in page


async def metrics_page(port: int) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /metrics HTTP/1.0\r\n\r\n")
    page = (await reader.read()).decode()
    writer.close()
    return page


def test_gateway_imports_telemetry_only_when_enabled() -> None:
    assert imported_with("edge.app.wiring", "telemetry") == set()

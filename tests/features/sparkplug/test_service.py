"""The gateway as an edge node of Sparkplug, and without it."""

import pytest

from edge.app.wiring import open_gateway
from edge.config import MqttSettings, RedisSettings, Settings
from edge.features.sparkplug.settings import SparkplugSettings
from edge.features.telemetry.settings import MqttSourceSettings, TelemetrySettings
from tests.app.running import NO_OPCUA
from tests.features.imports import imported_with
from tests.features.sparkplug.peers import metrics_of, open_host
from tests.local_broker import OwnBroker

pytestmark = pytest.mark.slow


async def test_samples_of_a_source_reach_a_sparkplug_host(
    redis: RedisSettings, mqtt: MqttSettings, broker: OwnBroker
) -> None:
    group = redis.prefix
    settings = Settings(
        redis=redis,
        mqtt=MqttSettings(url=mqtt.url, client_id=group),
        opcua=NO_OPCUA,
        sections={
            "telemetry": TelemetrySettings(),
            "source.line": MqttSourceSettings(topic=f"{group}/oil", tag="press.oil"),
            "sparkplug": SparkplugSettings(group=group, tags=("press.*",)),
        },
    )
    async with open_host(broker.port, group) as host:
        async with open_gateway(settings) as gateway:
            assert f"Sparkplug group {group}" in gateway.serving
            await host.until(lambda: host.of("NBIRTH"))
            host.send(f"{group}/oil", body="41.5", qos=1)
            (birth,) = await host.until(lambda: host.of("DBIRTH"))
        await host.until(lambda: host.of("NDEATH"))
    assert birth["topic"] == f"spBv1.0/{group}/DBIRTH/station-1/press"
    assert metrics_of(birth)["oil"]["value"] == 41.5


def test_gateway_imports_the_edge_node_only_when_enabled() -> None:
    assert imported_with("edge.app.wiring", "sparkplug") == set()

"""Sources of the settings whose payload is Sparkplug B."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from edge.app.features import declared_sections
from edge.app.wiring import open_gateway
from edge.config import MqttSettings, RedisSettings, Settings, load_settings
from edge.features.telemetry.settings import MqttSourceSettings, TelemetrySettings
from edge.foundation.errors import SettingsError
from edge.store.client import Store
from tests.app.running import NO_OPCUA
from tests.features.sparkplug.peers import DEADLINE_S, running
from tests.local_broker import OwnBroker
from tests.waiting import until_async

SOURCE = "[source.plc]\npayload = 'sparkplug'\n"


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ("topic = 'spBv1.0/line/DDATA/plc/#'", "source.plc.topic: for Sparkplug B all messages"),
        ("topic = 'spBv1.0/line/+/plc/press'", "source.plc.topic: for Sparkplug B all messages"),
        ("topic = 'spBv1.0/#'\npointer = '/v'", "source.plc.pointer: leave it out"),
        ("topic = 'spBv1.0/#'\ntag = '{device}'", "source.plc.tag: needs {metric} or {topic}"),
    ],
)
def test_source_that_does_not_suit_sparkplug_is_reported(keys: str, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "edge.toml"
    file.write_text(SOURCE + keys)
    with pytest.raises(SettingsError) as caught:
        load_settings(file, {}, declared_sections())
    assert problem in str(caught.value)


@pytest.mark.slow
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

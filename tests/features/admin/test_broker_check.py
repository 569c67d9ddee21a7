"""Brokers are examined by a guest connection, equipment by its presence."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from edge.config import MqttEquipmentSettings, MqttSettings, NorthboundSettings, Settings
from edge.features.admin.broker_check import brokers, examine_broker
from edge.foundation.errors import Unavailable
from edge.links.mqtt import open_session
from edge.model.finding import Level, PublicHealthFinding, public_form
from tests.free_ports import free_port
from tests.local_broker import open_broker
from tests.northbound.access_rules import refusing_subscriptions


def settings_with(mqtt: MqttSettings, prefix: str, **urls: str) -> Settings:
    return Settings(
        mqtt=mqtt,
        northbound=NorthboundSettings(topic_prefix=prefix),
        southbound={
            name: MqttEquipmentSettings(type_ids=(name,), topic_prefix=prefix, url=url) for name, url in urls.items()
        },
    )


async def examined(settings: Settings) -> dict[str, PublicHealthFinding]:
    return {
        str(finding.subject): public_form(finding)
        for mqtt, listeners in brokers(settings)
        async for finding in examine_broker(mqtt, listeners)
    }


def named(settings: Settings) -> Sequence[tuple[str, list[str]]]:
    return [(mqtt.url, [str(listener.subject) for listener in listeners]) for mqtt, listeners in brokers(settings)]


def test_broker_of_several_users_is_examined_once() -> None:
    main = "mqtt://user:secret@main"
    settings = settings_with(MqttSettings(url=main), "p", wrench="", camera="mqtt://other", light=main)
    assert named(settings) == [
        (main, ["MES", "equipment wrench", "equipment light"]),
        ("mqtt://other", ["equipment camera"]),
    ]


def test_settings_without_a_broker_have_no_broker_to_examine() -> None:
    assert named(settings_with(MqttSettings(url=""), "p")) == []


async def test_equipment_finding_follows_its_presence(mqtt: MqttSettings, unique: str) -> None:
    async with open_session(mqtt, unique) as session:
        await session.publish(f"{unique}/wrench/presence", b"online", retain=True)
        await session.publish(f"{unique}/camera/presence", b"offline", retain=True)
        findings = await examined(settings_with(mqtt, unique, wrench="", camera="", light=""))
    assert {name: finding.level for name, finding in findings.items() if "equipment" in name} == {
        "equipment wrench": Level.OK,
        "equipment camera": Level.FAILING,
        "equipment light": Level.OK,
    }
    assert "presence unknown" in findings["equipment light"].found
    assert findings["MES"].level is Level.OK


async def test_unavailable_broker_is_reported_without_its_password(unique: str) -> None:
    port = free_port()
    settings = settings_with(MqttSettings(url=f"mqtt://user:canary-42@127.0.0.1:{port}"), unique)
    with pytest.raises(Unavailable, match=f"127.0.0.1:{port}") as caught:
        await examined(settings)
    assert "canary" not in caught.value.message


async def test_refused_login_at_a_broker_is_reported(unique: str) -> None:
    async with open_broker("allow_anonymous false") as broker:
        with pytest.raises(Unavailable, match="Not authorized"):
            await examined(settings_with(MqttSettings(url=broker.url), unique))


@pytest.mark.parametrize("topic", ["commands", "metadata", "state-index"])
async def test_forbidden_topic_of_the_mes_is_reported(unique: str, tmp_path: Path, topic: str) -> None:
    async with open_broker(*refusing_subscriptions(tmp_path, f"+/+/{topic}")) as broker:
        finding = (await examined(settings_with(MqttSettings(url=broker.url), unique)))["MES"]
    assert finding.level is Level.FAILING
    assert f"/{topic}: Not authorized" in finding.found

"""Equipment is pinged over its own protocol while the gateway uses it."""

import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from edge.config import EquipmentSettings, MqttEquipmentSettings, MqttSettings, OpcuaEquipmentSettings, Settings
from edge.equipment.kinds import CORE_KINDS
from edge.equipment.ping import PingResult, ping, with_clients
from edge.links.mqtt import open_session
from edge.model.equipment_connection import ConnectionFault
from tests.uaserver.running import served

NOBODY = "127.0.0.1:1"
OVER_MQTT = CORE_KINDS["mqtt"].ping
OVER_OPCUA = "edge.equipment.opcua:ping"


@pytest.mark.parametrize(
    ("presence", "answers", "detail"),
    [
        (b"online", True, "online at"),
        (b"offline", False, "offline at"),
        (b"", None, "presence of the equipment unknown"),
    ],
)
async def test_mqtt_equipment_is_pinged_by_its_presence(
    mqtt: MqttSettings, unique: str, presence: bytes, detail: str, *, answers: bool | None
) -> None:
    wrench = MqttEquipmentSettings(type_ids=("tighten.v1",), topic_prefix=unique)
    async with open_session(mqtt, unique) as session:
        await session.publish(f"{unique}/wrench/presence", presence, retain=True)
        began = time.perf_counter()
        pong = await ping(OVER_MQTT, "wrench", wrench, Settings(mqtt=mqtt))
        lasted = time.perf_counter() - began
    assert pong.answers is answers
    assert detail in pong.detail
    assert pong.seconds is not None
    assert 0 < pong.seconds <= lasted


async def test_an_opcua_server_reports_its_time() -> None:
    async with served() as server:
        eye = OpcuaEquipmentSettings(kind="vision", type_ids=("inspect.v1",), url=server.endpoint, security="none")
        pong = await ping(OVER_OPCUA, "eye", eye, Settings())
    assert pong.answers is True
    assert pong.detail.startswith("its clock reads 20")


async def test_unreachable_equipment_does_not_answer() -> None:
    wrench = MqttEquipmentSettings(type_ids=("a",), url=f"mqtt://{NOBODY}")
    eye = OpcuaEquipmentSettings(kind="vision", type_ids=("b",), url=f"opc.tcp://{NOBODY}", security="none")
    for location, section in ((OVER_MQTT, wrench), (OVER_OPCUA, eye)):
        pong = await ping(location, "wrench", section, Settings())
        assert (pong.answers, pong.seconds) == (False, None)
        assert NOBODY in pong.detail


async def test_unreadable_own_certificate_is_reported(tmp_path: Path) -> None:
    broken = tmp_path / "own.pem"
    broken.write_text("nothing")
    eye = OpcuaEquipmentSettings(
        kind="vision",
        type_ids=("b",),
        url=f"opc.tcp://{NOBODY}",
        cert_file=str(broken),
        key_file=str(broken),
        trusted=str(tmp_path),
    )
    pong = await ping(OVER_OPCUA, "eye", eye, Settings())
    assert pong.answers is False
    assert "own.pem" in pong.detail


async def test_equipment_behind_its_gateway_is_not_pinged() -> None:
    light = EquipmentSettings(kind="light", type_ids=("show.v1",))
    pong = await ping("", "light", light, Settings())
    assert (pong.answers, pong.detail) == (None, "equipment of kind light can be reached by its gateway only")


DECLINED = PingResult(answers=False, detail="MID 0001 declined", fault=ConnectionFault.DECLINED)


@pytest.mark.parametrize(
    ("result", "clients", "answers"),
    [
        (DECLINED, ["gateway a"], True),
        (DECLINED, [], False),
        (replace(DECLINED, fault=ConnectionFault.NO_HOST), ["gateway a"], False),
        (replace(DECLINED, fault=None), ["gateway a"], False),
        (PingResult(answers=None, detail="unknown"), ["gateway a"], None),
    ],
)
def test_equipment_of_one_client_works_while_a_gateway_is_connected(
    result: PingResult, clients: list[str], *, answers: bool | None
) -> None:
    ping_result = with_clients(result, clients)
    assert ping_result.answers is answers
    assert ("gateway a is its client" in ping_result.detail) == (answers is True)

"""Equipment is pinged over its own protocol while the gateway uses it."""

import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from edge.config import MqttEquipmentSettings, MqttSettings, OpcuaEquipmentSettings, Settings
from edge.features.admin.ping import PingResult, ping, with_clients
from edge.features.lamps.stacklight import StackLightSettings
from edge.features.openprotocol.settings import OpenProtocolSettings
from edge.features.simulator.openprotocol import open_openprotocol_controller
from edge.links.mqtt import open_session
from edge.model.equipment_connection import ConnectionFault
from tests.uaserver.running import served

NOBODY = "127.0.0.1:1"


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
        pong = await ping("wrench", wrench, Settings(mqtt=mqtt))
        lasted = time.perf_counter() - began
    assert pong.answers is answers
    assert detail in pong.detail
    assert pong.seconds is not None
    assert 0 < pong.seconds <= lasted


async def test_an_opcua_server_reports_its_time() -> None:
    async with served() as server:
        eye = OpcuaEquipmentSettings(kind="vision", type_ids=("inspect.v1",), url=server.endpoint, security="none")
        pong = await ping("eye", eye, Settings())
    assert pong.answers is True
    assert pong.detail.startswith("its clock reads 20")


async def test_open_protocol_controller_is_pinged_by_its_identification() -> None:
    async with open_openprotocol_controller("station 7") as controller:
        url = f"tcp://127.0.0.1:{controller.server.port}"
        section = OpenProtocolSettings(kind="openprotocol", type_ids=("a",), url=url)
        pong = await ping("wrench", section, Settings())
    assert (pong.answers, pong.detail) == (True, "'station 7' has started")


async def test_unreachable_equipment_does_not_answer() -> None:
    wrench = MqttEquipmentSettings(type_ids=("a",), url=f"mqtt://{NOBODY}")
    eye = OpcuaEquipmentSettings(kind="vision", type_ids=("b",), url=f"opc.tcp://{NOBODY}", security="none")
    screw = OpenProtocolSettings(kind="openprotocol", type_ids=("c",), url=f"tcp://{NOBODY}")
    for name, section in (("wrench", wrench), ("eye", eye), ("screw", screw)):
        pong = await ping(name, section, Settings())
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
    pong = await ping("eye", eye, Settings())
    assert pong.answers is False
    assert "own.pem" in pong.detail


async def test_equipment_behind_its_gateway_is_not_pinged() -> None:
    light = StackLightSettings(kind="stacklight", type_ids=("show.v1",), chip="gpiochip0", lamps={"red": 1})
    pong = await ping("light", light, Settings())
    assert (pong.answers, pong.detail) == (None, "equipment of kind stacklight can be reached by its gateway only")


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
    found = with_clients(result, clients)
    assert found.answers is answers
    assert ("gateway a is its client" in found.detail) == (answers is True)

"""The gateway is opened part by part, and all parts are closed with it."""

import asyncio
import errno
import re
import socket
from pathlib import Path

import msgspec
import pytest
from structlog.testing import capture_logs

from edge.app.parts import GatewayMemory
from edge.app.wiring import open_gateway
from edge.config import MqttEquipmentSettings, MqttSettings, RedisSettings, RpcSettings, Settings
from edge.foundation.errors import SettingsError
from edge.foundation.instant import now_ms
from edge.links.rpc import open_client
from edge.model.isa95 import OrderCall, ReturnStatus
from edge.model.job_state import Cause
from edge.station.job_call import CallAnswer, JobCall
from edge.store.client import Store
from tests.app.running import NO_OPCUA, opcua_in, settings_of
from tests.conftest import WaitUntil
from tests.local_broker import open_broker
from tests.station.plant import order

pytestmark = pytest.mark.slow


async def test_gateway_reports_its_services_and_closes_all_of_them(
    redis: RedisSettings, mqtt: MqttSettings, unique: str, tmp_path: Path
) -> None:
    before = asyncio.all_tasks()
    async with open_gateway(settings_of(redis, mqtt, unique, opcua_in(tmp_path))) as gateway:
        assert gateway.serving.startswith("scopes station-1; 2 pieces of equipment; OPC UA opc.tcp://127.0.0.1:")
        address = re.search(r"127\.0\.0\.1:(\d+)", gateway.serving)
        assert address
        assert not is_refused(int(address[1]))
    assert is_refused(int(address[1]))
    # What asyncua lets end by itself ends in the next turns of the loop.
    async with asyncio.timeout(60):
        while left := asyncio.all_tasks() - before:
            await asyncio.wait(left)


async def test_opcua_server_closes_before_the_sender_stops(redis: RedisSettings, tmp_path: Path) -> None:
    refused: list[bool] = []
    async with open_gateway(Settings(redis=redis, mqtt=MqttSettings(url=""), opcua=opcua_in(tmp_path))) as gateway:
        port = int(gateway.serving.rpartition(":")[2])
        assert not is_refused(port)
        sender = next(task for task in asyncio.all_tasks() if task.get_name() == "sender")
        sender.add_done_callback(lambda _: refused.append(is_refused(port)))
    assert refused == [True]


def is_refused(port: int) -> bool:
    """Return whether no server listens on a port of this host."""
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == errno.ECONNREFUSED


async def test_gateway_looks_for_the_jobs_that_its_process_accepted(redis: RedisSettings) -> None:
    memory, call = GatewayMemory(), OrderCall(job_order=order("J1"))
    accepted = JobCall("station-1", Cause.STORE, call, "/mes", "call-1")
    memory.accepted_jobs.note(redis.prefix, accepted, CallAnswer(ReturnStatus.NO_ERROR), now_ms())
    settings = Settings(redis=redis, mqtt=MqttSettings(url=""), opcua=NO_OPCUA)
    with capture_logs() as logs:
        async with open_gateway(settings, memory=memory):
            pass
    assert [entry["count"] for entry in logs if entry["event"] == "accepted jobs lost in a failover"] == [1]


async def test_disabled_interfaces_are_not_opened(redis: RedisSettings) -> None:
    async with open_gateway(Settings(redis=redis, mqtt=MqttSettings(url=""), opcua=NO_OPCUA)) as gateway:
        assert gateway.serving == "scopes station-1; 0 pieces of equipment"


async def test_local_programs_call_the_gateway_without_a_broker(redis: RedisSettings, tmp_path: Path) -> None:
    rpc = RpcSettings(listen=f"unix://{tmp_path}/rpc.sock")
    settings = Settings(redis=redis, mqtt=MqttSettings(url=""), opcua=NO_OPCUA, rpc=rpc)
    async with open_gateway(settings) as gateway, open_client(rpc.listen) as client:
        assert gateway.serving.endswith(f"; MessagePack-RPC {rpc.listen}")
        assert await client.call("heartbeat") is None


async def test_equipment_uses_its_own_broker(redis: RedisSettings, mqtt: MqttSettings, unique: str) -> None:
    async with open_broker("log_type all") as cell:
        wrench = MqttEquipmentSettings(type_ids=("tighten.v1",), topic_prefix=unique, url=cell.url)
        settings = settings_of(redis, mqtt, unique, NO_OPCUA)
        async with open_gateway(msgspec.structs.replace(settings, southbound={"wrench": wrench})):
            log = (cell.directory / "mosquitto.log").read_text()
    assert f"{unique}/wrench/answers" in log
    assert f"{unique}/station-1/commands" not in log


async def test_equipment_with_its_own_broker_uses_its_own_credentials(
    redis: RedisSettings, mqtt: MqttSettings, unique: str, tmp_path: Path
) -> None:
    passwords = tmp_path / "passwords"
    passwords.write_text("cell:open sesame\n")
    passwords.chmod(0o600)
    await (await asyncio.create_subprocess_exec("mosquitto_passwd", "-U", str(passwords))).wait()
    async with open_broker("allow_anonymous false", f"password_file {passwords}") as cell:
        wrench = MqttEquipmentSettings(
            type_ids=("tighten.v1",), topic_prefix=unique, url=cell.url, username="cell", password="open sesame"
        )
        settings = settings_of(redis, mqtt, unique, NO_OPCUA)
        async with open_gateway(msgspec.structs.replace(settings, southbound={"wrench": wrench})) as gateway:
            assert "1 piece of equipment" in gateway.serving


async def test_gateway_serves_without_the_mes_broker_and_connects_later(
    redis: RedisSettings, unique: str, tmp_path: Path, wait_until: WaitUntil
) -> None:
    async with open_broker("log_type all") as broker:
        await broker.stop()
        settings = settings_of(redis, MqttSettings(url=broker.url), unique, opcua_in(tmp_path))
        async with asyncio.timeout(60), open_gateway(settings) as gateway:
            assert gateway.serving.startswith(
                "serving, degraded: broker unavailable: wrench, camera, MES; scopes station-1;"
            )
            address = re.search(r"OPC UA opc.tcp://127\.0\.0\.1:(\d+)", gateway.serving)
            assert address
            assert not is_refused(int(address[1]))
            await broker.start()
            log = broker.directory / "mosquitto.log"
            for topic in (f"{unique}/station-1/commands", f"{unique}/wrench/answers"):
                await wait_until(lambda topic=topic: topic in log.read_text())


async def test_gateway_serves_without_the_broker_of_one_tool(
    redis: RedisSettings, mqtt: MqttSettings, unique: str
) -> None:
    async with open_broker() as cell:
        await cell.stop()
        wrench = MqttEquipmentSettings(type_ids=("tighten.v1",), topic_prefix=unique, url=cell.url)
        settings = msgspec.structs.replace(settings_of(redis, mqtt, unique, NO_OPCUA), southbound={"wrench": wrench})
        async with open_gateway(settings) as gateway:
            assert gateway.serving.startswith("serving, degraded: broker unavailable: wrench; scopes station-1;")


async def test_equipment_without_a_broker_is_reported(redis: RedisSettings) -> None:
    southbound = {"wrench": MqttEquipmentSettings(type_ids=("a.v1",))}
    settings = Settings(redis=redis, mqtt=MqttSettings(url=""), opcua=NO_OPCUA, southbound=southbound)
    with pytest.raises(SettingsError, match=r"southbound\.wrench: has no broker"):
        async with open_gateway(settings):
            pytest.fail("it was opened")


async def test_task_at_a_key_of_another_type_does_not_end_the_gateway(
    redis: RedisSettings, store: Store, wait_until: WaitUntil
) -> None:
    """It ended the gateway, and systemd started it into the same defect."""
    await store.execute("SET", store.keys.sfc_timers(), "not a sorted set")
    async with open_gateway(Settings(redis=redis, mqtt=MqttSettings(url=""), opcua=NO_OPCUA)) as gateway:
        await wait_until(lambda: gateway.store.defects.counts["timers"] >= 1)
        assert "background task fails: timers (Defect)" in map(str, gateway.store.defects.problems())

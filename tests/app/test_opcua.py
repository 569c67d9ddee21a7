"""The OPC UA server opens with the gateway, or later when its address becomes available."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from edge.app.wiring import open_gateway
from edge.config import MqttSettings, RedisSettings, Settings
from edge.features.telemetry.settings import TelemetrySettings
from edge.foundation.errors import SettingsError, unwrap_group
from edge.foundation.task_group import background_task
from edge.store.client import Store
from edge.uaserver.namespaces import Namespace
from tests.app.running import opcua_in
from tests.conftest import WaitUntil
from tests.features.telemetry.opcua.alarm_plant import HOT, alarm_client, change, condition
from tests.free_ports import free_port
from tests.opcua_client import patient_client
from tests.uaserver.other_stack import node, other_stack

pytestmark = pytest.mark.slow


def accepts(port: int) -> bool:
    """Return whether a server listens on a port of this host."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextlib.asynccontextmanager
async def gateway_at(redis: RedisSettings, directory: Path, endpoint: str) -> AsyncIterator[str]:
    served = msgspec.structs.replace(opcua_in(directory), endpoint=endpoint)
    async with open_gateway(Settings(redis=redis, mqtt=MqttSettings(url=""), opcua=served)) as gateway:
        yield gateway.serving


async def test_endpoint_in_use_is_served_once_it_is_free(
    redis: RedisSettings, tmp_path: Path, wait_until: WaitUntil
) -> None:
    taken = socket.create_server(("127.0.0.1", free_port()))
    endpoint = f"opc.tcp://127.0.0.1:{taken.getsockname()[1]}"
    async with gateway_at(redis, tmp_path, endpoint) as serving:
        assert serving.startswith(f"serving, degraded: opcua.endpoint: cannot listen on {endpoint}")
        port = taken.getsockname()[1]
        taken.close()
        await wait_until(lambda: accepts(port))
        async with patient_client(endpoint) as client:
            assert len(await client.get_namespace_array()) > Namespace.ALARMS, "telemetry has not added its part again"


async def test_gateway_serves_while_no_interface_has_the_opcua_address(redis: RedisSettings, tmp_path: Path) -> None:
    async with gateway_at(redis, tmp_path, "opc.tcp://192.0.2.1:4840") as serving:
        assert "degraded: opcua.endpoint: cannot listen on opc.tcp://192.0.2.1:4840" in serving


async def test_gateway_connects_to_a_listening_client(redis: RedisSettings, tmp_path: Path) -> None:
    greeted: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not greeted.done():
            greeted.set_result(await reader.readexactly(8))
        writer.close()

    async with await asyncio.start_server(accept, "127.0.0.1", 0) as listener:
        url = f"opc.tcp://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
        served = msgspec.structs.replace(opcua_in(tmp_path), reverse_connect=(url,))
        async with open_gateway(Settings(redis=redis, mqtt=MqttSettings(url=""), opcua=served)):
            async with asyncio.timeout(60):
                assert (await greeted).startswith(b"RHEF")


async def test_unusable_certificate_directory_is_a_settings_error(redis: RedisSettings, tmp_path: Path) -> None:
    (tmp_path / "pki").write_text("a file, not a directory")
    with pytest.raises(SettingsError, match=r"opcua\.pki"), unwrap_group():
        async with gateway_at(redis, tmp_path, "opc.tcp://127.0.0.1:0"):
            pytest.fail("it was opened")


async def test_client_receives_alarm_condition_and_reads_history(
    redis: RedisSettings, store: Store, tmp_path: Path, wait_until: WaitUntil
) -> None:
    endpoint = f"opc.tcp://127.0.0.1:{free_port()}"
    telemetry = TelemetrySettings(history_days=1, history_directory=str(tmp_path / "history"), record="all")
    served = msgspec.structs.replace(opcua_in(tmp_path), endpoint=endpoint)
    settings = Settings(redis=redis, mqtt=MqttSettings(url=""), opcua=served, sections={"telemetry": telemetry})
    async with open_gateway(settings), alarm_client(endpoint) as client, other_stack(endpoint) as other:
        await client.ask("monitor")
        alarm = await change(store, "gateway.memory_mib", HOT, rule="memory")
        shown = await client.event(ConditionId=condition(alarm))
        assert (shown["SourceName"], shown["AckedState.Id"]) == ("Gateway", False)
        details = {"$": "ReadRawModifiedDetails", "isReadModified": False, "numValuesPerNode": 1, "returnBounds": False}
        request = {
            "historyReadDetails": details | {"startTime": {"$": "Date", "at": alarm.changed_at - 600_000}},
            "timestampsToReturn": 0,
            "releaseContinuationPoints": False,
            "nodesToRead": [{"nodeId": node(f"ns={int(Namespace.ALARMS)};s=Tags/gateway.memory_mib")}],
        }
        # The tags are read every five seconds, and a sample is evaluated before it is history.
        statuses: list[str] = []

        async def read() -> None:
            while "Good" not in statuses:
                statuses.append((await other.send("HistoryRead", **request))["results"][0]["statusCode"])

        async with background_task(read(), "reading"):
            await wait_until(lambda: "Good" in statuses, 30)

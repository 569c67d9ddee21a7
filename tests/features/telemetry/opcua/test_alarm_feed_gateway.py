"""A client of an open gateway receives its alarms and reads their history."""

from pathlib import Path

import msgspec
import pytest

from edge.app.wiring import open_gateway
from edge.config import MqttSettings, RedisSettings, Settings
from edge.features.telemetry.settings import TelemetrySettings
from edge.foundation.task_group import background_task
from edge.store.client import Store
from edge.uaserver.namespaces import Namespace
from tests.app.running import opcua_in
from tests.conftest import WaitUntil
from tests.features.telemetry.opcua.alarm_plant import HOT, alarm_client, change, condition
from tests.free_ports import free_port
from tests.uaserver.other_stack import node, other_stack

pytestmark = pytest.mark.slow


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

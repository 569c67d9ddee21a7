"""The guarantees for a MES with a complete gateway: start times, priorities, index and retained topics."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from edge.app.wiring import open_gateway
from edge.config import MqttSettings, RedisSettings
from edge.links.mqtt import Message, open_session, to_event
from edge.model.isa95 import OrderCall, ReturnStatus
from edge.model.job_message import StateIndex
from tests.app.running import NO_OPCUA, settings_of
from tests.conftest import WaitUntil
from tests.integration.plant import PUSHING, SCOPE, opened_plant, order


def order_with(job_order_id: str, **fields: Any) -> OrderCall:
    call = order(job_order_id)
    return msgspec.structs.replace(call, job_order=msgspec.structs.replace(call.job_order, **fields))


async def test_job_waits_for_its_start_time_and_is_in_the_index(
    redis: RedisSettings, mqtt: MqttSettings, unique: str, wait_until: WaitUntil
) -> None:
    indexes: list[StateIndex] = []

    async def note(message: Message) -> None:
        indexes.append(msgspec.convert(to_event(message).data, StateIndex))

    def states() -> dict[str, str]:
        return {job.job_order_id: job.state[0].state_text.text for job in indexes[-1].jobs} if indexes else {}

    async with (
        opened_plant(mqtt, unique) as plant,
        open_session(mqtt, f"{unique}-index") as listener,
        open_gateway(settings_of(redis, mqtt, unique, NO_OPCUA)),
    ):
        await listener.subscribe(f"{unique}/{SCOPE}/state-index", note)
        await plant.configure(PUSHING)
        await plant.wrench.release()
        began = time.monotonic()
        assert (await plant.mes.call(SCOPE, "StoreAndStart", order("first"))).status is ReturnStatus.NO_ERROR
        await wait_until(lambda: states() == {"first": "Ended"})
        # Another job has to end before this instant.
        start = datetime.now(UTC) + timedelta(seconds=1.5 + 5 * (time.monotonic() - began))
        for call in (order_with("later", start_time=start), order_with("now")):
            assert (await plant.mes.call(SCOPE, "StoreAndStart", call)).status is ReturnStatus.NO_ERROR
        await wait_until(lambda: states() == {"first": "Ended", "now": "Ended", "later": "AllowedToStart"})
        assert datetime.now(UTC) < start
        await wait_until(lambda: states() == {"first": "Ended", "now": "Ended", "later": "Ended"})
        started = datetime.fromisoformat(plant.heard.retained["result/later"]["StartTime"])
        assert timedelta(0) <= started - start < timedelta(seconds=60)
    assert [index.seq for index in indexes] == sorted({index.seq for index in indexes})


async def test_backlog_of_a_stopped_gateway_starts_by_priority(
    redis: RedisSettings, mqtt: MqttSettings, unique: str, wait_until: WaitUntil
) -> None:
    settings = settings_of(redis, mqtt, unique, NO_OPCUA)
    async with opened_plant(mqtt, unique) as plant:
        began = time.monotonic()
        async with open_gateway(settings):
            await plant.configure(PUSHING)
            # The gateway has to be stopped before this instant.
            start = datetime.now(UTC) + timedelta(seconds=2 + 3 * (time.monotonic() - began))
            for priority in (1, 3, 2):
                call = order_with(f"P{priority}", start_time=start, priority=priority)
                assert (await plant.mes.call(SCOPE, "StoreAndStart", call)).status is ReturnStatus.NO_ERROR
        await asyncio.sleep(max(0.0, start.timestamp() - time.time()))
        async with open_gateway(settings):
            await wait_until(lambda: len(plant.wrench.commands) == 3)
    assert [command.data["job_id"] for command in plant.wrench.commands] == ["P3", "P2", "P1"]

"""How the tests of this room open an inbox, and call it as a MES does, message by message."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import msgspec

from edge.app.features import settings_kinds
from edge.config import MqttSettings
from edge.foundation.instant import now_ms
from edge.foundation.task_group import background_task
from edge.links.mqtt import Message, MqttSession, open_session
from edge.model.event_types import METHOD_TYPE
from edge.model.isa95 import WorkMaster
from edge.model.recipe import RECIPE_DATASCHEMA
from edge.northbound.calls import CallHandler, CallServices
from edge.northbound.inbox import Inbox
from edge.northbound.topics import Topics
from edge.station.jobs import JobService
from edge.station.runs import Runs
from edge.station.sender import Dispatch
from edge.station.settings import SettingsMethod, StationSettings
from edge.station.start import Starter
from edge.station.worker import Worker
from edge.store.client import Store

SCOPE = "station-1"

WAITING = {
    "steps": [{"name": "Wait", "initial": True}, {"name": "Done"}],
    "transitions": [{"source": "Wait", "target": "Done", "condition": "always"}],
    "actions": [
        {"name": "see", "step": "Wait", "qualifier": "N", "interaction": "pull_event", "type_id": "never-seen.v1"}
    ],
}
"""A recipe that runs until it is stopped: it waits for an event that nobody sends."""

WORK_MASTER = WorkMaster(id="WM-1", data=WAITING, dataschema=RECIPE_DATASCHEMA)


class Caller:
    """Calls the inbox, and matches answers to calls by their correlation data."""

    def __init__(self, session: MqttSession, prefix: str) -> None:
        self.session = session
        self.topics = Topics(prefix, SCOPE)
        self.answers_topic = f"{prefix}/answers"
        self.unasked: list[Message] = []
        self._open: dict[bytes, asyncio.Future[Message]] = {}

    async def take(self, message: Message) -> None:
        waiting = self._open.get(message.correlation_data or b"")
        if waiting is None or waiting.done():
            self.unasked.append(message)
        else:
            waiting.set_result(message)

    async def ask(
        self,
        payload: bytes,
        attributes: dict[str, str],
        *,
        content_type: str | None = "application/json",
        topic: str = "",
        correlation_data: bytes = b"",
        deadline: float = 60.0,
    ) -> Message:
        """Send one message and return its answer."""
        correlation_data = correlation_data or uuid.uuid4().bytes
        self._open[correlation_data] = asyncio.get_running_loop().create_future()
        message = Message(
            topic=topic or self.topics.commands,
            payload=payload,
            content_type=content_type,
            user_properties=attributes,
            response_topic=self.answers_topic,
            correlation_data=correlation_data,
        )
        try:
            async with asyncio.timeout(deadline):
                await self.session.send(message)
                return await self._open[correlation_data]
        finally:
            del self._open[correlation_data]

    async def call(self, method: str, data: object) -> Message:
        """Call a job method with that payload."""
        return await self.ask(msgspec.json.encode(data), binary_attributes(METHOD_TYPE.format(method)))


def binary_attributes(event_type: str, **further: str) -> dict[str, str]:
    """Return the attributes of a call that lacks nothing, under an id of its own."""
    return {"specversion": "1.0", "id": str(uuid.uuid4()), "source": "/mes", "type": event_type} | further


def status_of(answer: Message) -> int:
    """Return the ReturnStatus of an answer."""
    status: int = msgspec.json.decode(answer.payload)["ReturnStatus"]
    return status


def order(job_order_id: str, work_master: str = WORK_MASTER.id, **further: Any) -> dict[str, Any]:
    """Return the payload of Store, StoreAndStart and Update."""
    return {"JobOrder": {"JobOrderID": job_order_id, "WorkMasterID": [{"ID": work_master}], **further}}


@asynccontextmanager
async def called(mqtt: MqttSettings, prefix: str) -> AsyncIterator[Caller]:
    """Hold the line of a MES open."""
    async with open_session(mqtt, f"{prefix}-mes", session_expiry=0) as session:
        caller = Caller(session, prefix)
        await session.subscribe(caller.answers_topic, caller.take)
        yield caller


@dataclass(frozen=True, slots=True)
class Station:
    """What serves SCOPE: no equipment, and no worker until `at_work`."""

    store: Store
    settings: StationSettings
    runs: Runs

    def at_work(self) -> AbstractAsyncContextManager[None]:
        """Start jobs that are allowed to start."""
        dispatch = Dispatch(self.runs, {})
        worker = Worker(self.store, (SCOPE,), self.runs, Starter(self.store, self.runs, dispatch))
        return background_task(worker.run(), "worker")


async def opened_station(store: Store) -> Station:
    """Return a station where WORK_MASTER may run."""
    station = Station(store, StationSettings(store, settings_kinds()), Runs(store, now_ms, keep_ended_ms=60_000))
    await station.settings.apply(SCOPE, "workmaster", SettingsMethod.PUT, msgspec.to_builtins(WORK_MASTER))
    return station


@asynccontextmanager
async def opened_inbox(store: Store, mqtt: MqttSettings, prefix: str) -> AsyncIterator[Station]:
    """Open a station that takes calls."""
    station = await opened_station(store)
    async with open_session(mqtt, f"{prefix}-edge", session_expiry=0) as session:
        jobs = JobService(store, station.runs, max_job_orders=1000, dedupe_ms=60_000)
        calls = CallHandler("urn:edge", (SCOPE,), store, CallServices(jobs, station.settings), now_ms)
        await Inbox(session, calls, prefix).open({SCOPE: Topics(prefix, SCOPE)})
        yield station

"""A simulated inspection camera: offers its results to the station repeatedly, until a job takes them."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import structlog

from edge.features.simulator.presence import announce_presence
from edge.foundation.errors import Refused, Unavailable
from edge.foundation.task_group import TaskGroup, background_task
from edge.links.mqtt import Message, MqttSession, to_event, to_message
from edge.model.cloudevent import CloudEvent, new_id

TOPIC_PREFIX = "app/equipment"
INTERVAL_SECONDS = 0.5
ANSWER_SECONDS = 5.0
MEMORY = 10_000
# The event data that the example recipe expects.
RESULTS: Mapping[str, Mapping[str, Any]] = {
    "com.example.station.qa_result.v1": {"pass": True},
    "com.example.station.torque_result.v1": {"torque": 85.2, "torque_ok": True},
}

_log = structlog.get_logger(__name__)


@asynccontextmanager
async def open_camera(
    session: MqttSession,
    name: str,
    scope: str,
    *,
    topic_prefix: str = TOPIC_PREFIX,
    interval: float = INTERVAL_SECONDS,
    results: Mapping[str, Mapping[str, Any]] = RESULTS,
    patience: float = ANSWER_SECONDS,
) -> AsyncIterator["SimulatedCamera"]:
    """Start a camera that offers each of `results` (data by event type) every `interval` seconds.

    The camera publishes events to `{topic_prefix}/{name}/events`, each with a unique id, and receives the answers on
    `…/tasks`. A request without an answer ends after `patience` seconds.
    """
    camera = SimulatedCamera(session, f"{topic_prefix}/{name}", scope, interval, patience)
    await session.subscribe(f"{camera.topic}/tasks", camera.take)
    async with announce_presence(session, camera.topic), background_task(camera.run(results), f"camera {name}"):
        yield camera


class SimulatedCamera:
    """A simulated camera; `tasks` lists the answers that accepted its results, in order."""

    def __init__(self, session: MqttSession, topic: str, scope: str, interval: float, patience: float) -> None:
        self.topic = topic
        self.tasks: deque[CloudEvent] = deque(maxlen=MEMORY)
        self._session = session
        self._scope = scope
        self._interval = interval
        self._patience = patience
        self._asked: dict[str, asyncio.Future[CloudEvent]] = {}

    async def run(self, results: Mapping[str, Mapping[str, Any]]) -> None:
        """Offer all results concurrently until cancelled."""
        async with TaskGroup() as tasks:
            for type_id, data in results.items():
                tasks.create_task(self._offer(type_id, data), name=f"offer {type_id}")

    async def take(self, message: Message) -> None:
        """Handle the answer to a request of this camera."""
        try:
            answer = to_event(message)
        except Refused as refusal:
            _log.warning("answer unreadable", reason=refusal.message)
            return
        asked = self._asked.get(answer.causationid or "")
        if asked is not None and not asked.done():
            asked.set_result(answer)

    async def _offer(self, type_id: str, data: Mapping[str, Any]) -> None:
        while True:
            answer = await self._ask(type_id, data)
            if answer is not None and answer.mdcserrorkind is None:
                self.tasks.append(answer)
                _log.info("result taken", type=type_id, task=answer.data)
            await asyncio.sleep(self._interval)

    async def _ask(self, type_id: str, data: Mapping[str, Any]) -> CloudEvent | None:
        """Offer a result once; return the answer, or None when the station does not answer."""
        question = CloudEvent(id=new_id(), source=f"/{self.topic}", type=type_id, subject=self._scope, data=data)
        asked: asyncio.Future[CloudEvent] = asyncio.get_running_loop().create_future()
        self._asked[question.id] = asked
        try:
            async with asyncio.timeout(self._patience):
                await self._session.send(
                    to_message(question, f"{self.topic}/events", response_topic=f"{self.topic}/tasks")
                )
                return await asked
        except (TimeoutError, Unavailable):
            return None
        finally:
            del self._asked[question.id]

"""Publish the progress of running recipes while it has a reader."""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Literal

import structlog
from msgspec import Struct
from msgspec.structs import replace

from edge.foundation.errors import Refused, Unavailable
from edge.links.mqtt import MqttSession, to_message
from edge.northbound.events import progress_event
from edge.northbound.topics import Topics
from edge.station.runs import Progress

logger = structlog.get_logger(__name__)

ProgressMode = Literal["readers", "always", "off"]


class ProgressLimits(Struct, frozen=True):
    """How much progress is published: one event of a job per `interval_s`, `queue_size` jobs waiting.

    `probe_s` is how long a topic without reader stays silent before it is retried.
    """

    interval_s: float = 0.1
    probe_s: float = 60.0
    queue_size: int = 1000


class ProgressPublisher:
    """Publishes the progress of the runs of this instance; events may be lost, the store holds everything.

    The progress of a job within an interval is one event. One event per `probe_s` has QoS 1: its PUBACK shows whether
    the topic has a subscriber. Without a reader nothing else is published.
    """

    def __init__(
        self,
        session: MqttSession,
        source: str,
        topics: Topics,
        mode: ProgressMode = "readers",
        limits: ProgressLimits | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._session = session
        self._source = source
        self._topics = topics
        self._mode = mode
        self._limits = limits or ProgressLimits()
        self._clock = clock
        self._waiting: dict[str, Progress] = {}
        self._order: deque[str] = deque()
        self._awake = asyncio.Event()
        self._has_reader = False
        self._probe_at = 0.0

    def watch(self, progress: Progress) -> None:
        """Queue the progress of a run; it is dropped while the topic has no reader, or too many jobs wait."""
        job = progress.loaded.job
        if job.scope != self._topics.scope or not self._is_wanted():
            return
        earlier = self._waiting.get(job.job_id)
        if earlier:
            self._waiting[job.job_id] = replace(
                progress, steps=earlier.steps + progress.steps, requests=earlier.requests + progress.requests
            )
        elif len(self._waiting) < self._limits.queue_size:
            self._waiting[job.job_id] = progress
            self._order.append(job.job_id)
            self._awake.set()

    def _is_wanted(self) -> bool:
        match self._mode:
            case "always":
                return True
            case "off":
                return False
            case "readers":
                return self._has_reader or self._clock() >= self._probe_at

    async def run(self) -> None:
        """Publish queued progress until cancelled."""
        while True:
            await self._awake.wait()
            self._awake.clear()
            for _ in range(len(self._order)):
                await self._publish(self._waiting.pop(self._order.popleft()))
            # Progress of the same jobs meanwhile is added to their next event.
            await asyncio.sleep(self._limits.interval_s)

    async def _publish(self, progress: Progress) -> None:
        message = to_message(progress_event(self._source, progress), self._topics.data)
        try:
            if self._mode == "always" or self._clock() < self._probe_at:
                if self._mode == "always" or self._has_reader:
                    await self._session.send(message, qos=0)
                return
            self._probe_at = self._clock() + self._limits.probe_s
            # Until the PUBACK arrives, progress is queued, not dropped.
            self._has_reader = True
            self._has_reader = await self._session.send(message, qos=1)
        except (Unavailable, Refused) as error:
            self._has_reader = False
            logger.debug("progress dropped", job=progress.loaded.job.job_id, reason=error.message)

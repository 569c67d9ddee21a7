"""Publish changes in their order, several in flight: the position advances over what the broker has confirmed.

To wait for each PUBACK before the next message would bound the rate by the time of a round trip, or of a broker that
is busy.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from edge.foundation.errors import Unavailable
from edge.links.mqtt import Message, MqttSession
from edge.model.isa95 import JobResponse
from edge.model.job_state import has_ended
from edge.northbound.events import load_changed_job
from edge.northbound.retained_topics import RetainedTopics, StartedTopics
from edge.northbound.status_events import StatusEventPublisher
from edge.northbound.topic_writer import StartedWrite
from edge.station.retention import Deliveries
from edge.store import changes
from edge.store.changes import Change
from edge.store.client import Store
from edge.store.commit import Commit, join
from edge.store.jobs import Job

MOST_CHANGES: Final = 16
"""Changes in flight: with up to three messages each they fill the Receive Maximum of a broker."""
MOST_BYTES: Final = 262_144
"""Payload in flight, by the size of the last changes."""


class _ComposedChange(Struct, frozen=True):
    """A change with its job and its events; `is_readable` is False for a job that cannot be read."""

    change: Change
    job: Job | None = None
    response: JobResponse | None = None
    events: Sequence[Message] = ()
    is_readable: bool = False


class _StartedChange(Struct, frozen=True):
    """A change whose messages are on their way; `topics` is None for a job that cannot be read."""

    change: Change
    job: Job | None
    events: Sequence[StartedWrite]
    topics: StartedTopics | None

    @property
    def size(self) -> int:
        """The bytes of payload in flight."""
        return sum(len(event.message.payload) for event in (*self.events, *(self.topics.writes if self.topics else ())))


class ChangeWindow:
    """Publishes the next changes of a scope side by side, and saves how far the broker has confirmed them."""

    def __init__(
        self,
        store: Store,
        session: MqttSession,
        events: StatusEventPublisher,
        retained: RetainedTopics,
        deliveries: Deliveries,
    ) -> None:
        self._store = store
        self._session = session
        self._events = events
        self._retained = retained
        self._deliveries = deliveries
        self._mean_size = 1

    async def publish(self, waiting: Sequence[Change], connection: int, on_published: Callable[[Change], None]) -> int:
        """Publish the first of the waiting changes on a connection; return how many.

        `on_published` is called with each in its order, before its position is saved: if the reply to that is lost, the
        change is not followed again. Raises Unavailable when the broker or the store is unavailable; what the broker
        had confirmed in order is saved before.
        """
        finished: list[tuple[_StartedChange, str | None, Commit]] = []
        most = max(1, min(MOST_CHANGES, MOST_BYTES // self._mean_size))
        composed = await asyncio.gather(*map(self._compose, waiting[:most]))
        try:
            # One after the other: the order of the messages is that of the changes.
            started = [await self._start(composed_change, connection) for composed_change in composed]
            for started_change in started:
                finished.append((started_change, *await self._finish(started_change)))
                on_published(started_change.change)
        except Unavailable:
            await self._save(finished)
            raise
        await self._save(finished)
        self._mean_size = max(1, sum(change.size for change in started) // len(started))
        return len(finished)

    async def _compose(self, change: Change) -> _ComposedChange:
        found = await load_changed_job(self._store, change)
        if found is None:
            return _ComposedChange(change)
        return _ComposedChange(change, *found, await self._events.compose(change, *found), is_readable=True)

    async def _start(self, composed: _ComposedChange, connection: int) -> _StartedChange:
        # On another connection the broker may have lost messages that come before this one.
        self._session.require_connection(connection)
        change, job = composed.change, composed.job
        if not composed.is_readable:
            return _StartedChange(change, None, (), None)
        events = await self._events.start(composed.events)
        self._session.require_connection(connection)
        return _StartedChange(
            change, job, events, await self._retained.start(change.job_order_id, job, composed.response)
        )

    async def _finish(self, started: _StartedChange) -> tuple[str | None, Commit]:
        """Wait for the broker; return the position of a published event, and the commit about the topics."""
        change, job = started.change, started.job
        if started.topics is None:
            return self._events.skip(change), Commit()
        event = await self._events.finish(change, started.events)
        topics = await self._retained.finish(started.topics)
        if job and has_ended(change.status) and (event.is_read or topics.is_result_read):
            await self._deliveries.confirm(job)
        return event.position, topics.noted

    async def _save(self, finished: Sequence[tuple[_StartedChange, str | None, Commit]]) -> None:
        if not finished:
            return
        events = next((position for _, position, _ in reversed(finished) if position), None)
        saved = changes.save_cursor(self._store.keys, finished[-1][0].change, events)
        await self._store.commit(join((saved, *(noted for _, _, noted in finished))))

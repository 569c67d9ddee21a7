"""Publish the status events of a scope in order, and again those that a broker has lost."""

import msgspec
from msgspec import Struct

from edge.links.mqtt import MqttSession, to_message
from edge.model.cloudevent import CloudEvent
from edge.model.isa95 import JobResponse
from edge.northbound.events import change_events, load_changed_job
from edge.northbound.topic_writer import TopicWriter, WriteOutcome
from edge.northbound.topics import Topics
from edge.store import changes, published_events
from edge.store.changes import BEGINNING, Change
from edge.store.client import Store
from edge.store.jobs import Job

REPUBLISH_WINDOW_S = 3600
"""How long a published event is kept to be published again unchanged: two saves of a broker's database."""


class PublishedEvent(Struct, frozen=True):
    """The result of publishing an event: the position of its change if it was published, and whether it was read."""

    position: str | None = None
    is_read: bool = False


class StatusEventPublisher:
    """Publishes status events; while the broker refuses one, the later ones wait."""

    def __init__(self, store: Store, session: MqttSession, writer: TopicWriter, source: str, topics: Topics) -> None:
        self._store = store
        self._session = session
        self._writer = writer
        self._source = source
        self._topics = topics
        self.position = BEGINNING
        """The last change whose event, with those of all before it, was published."""
        self.is_blocked = False
        """Whether the broker refuses events."""

    async def publish(self, change: Change, job: Job | None, response: JobResponse | None) -> PublishedEvent:
        """Publish the event of a change, if it has one. Raises Unavailable when broker or store are unavailable."""
        if self.is_blocked:
            return PublishedEvent()
        outcome = await self._send(change, job, response)
        if outcome is WriteOutcome.REFUSED:
            self.is_blocked = True
            return PublishedEvent()
        self.position = change.position
        return PublishedEvent(change.position, outcome is WriteOutcome.READ)

    async def republish(self, after: str, last: str, connection: int) -> None:
        """Publish the events of the changes between two positions again, under the same ids.

        On that connection only: on another one, more may be lost. While the broker refuses one, the later ones wait.
        """
        is_blocked, position = False, after
        async for change in changes.read_between(self._store, self._topics.scope, after, last):
            if found := await load_changed_job(self._store, change):
                self._session.require_connection(connection)
                if await self._send(change, *found) is WriteOutcome.REFUSED:
                    is_blocked = True
                    break
            position = change.position
        # Set last: after an interruption the waiting events must still wait, and no later one may precede them.
        self.is_blocked, self.position = is_blocked, position if is_blocked else last
        await self._store.commit(changes.save_event_cursor(self._store.keys, self._topics.scope, self.position))

    async def _send(self, change: Change, job: Job | None, response: JobResponse | None) -> WriteOutcome:
        """Publish the events of a change; the outcome is refused if one is, and read if one is."""
        outcome = WriteOutcome.UNREAD
        for event in change_events(self._source, change, job, response):
            first = await self._first_form(change, event)
            written = await self._writer.send(to_message(first, self._topics.events))
            if written is WriteOutcome.REFUSED:
                return written
            outcome = written if outcome is WriteOutcome.UNREAD else outcome
        return outcome

    async def _first_form(self, change: Change, event: CloudEvent) -> CloudEvent:
        """Return the event as it was published first: the job may have changed since."""
        text, part = msgspec.json.encode(event).decode(), event.id.removeprefix(f"{change.scope}/")
        first = await published_events.keep(self._store, change.scope, part, text, REPUBLISH_WINDOW_S)
        return event if first == text else msgspec.json.decode(first, type=CloudEvent)

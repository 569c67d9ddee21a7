"""Publish the status events of a scope in order, and again those that a broker has lost."""

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from edge.links.mqtt import Message, MqttSession, to_message
from edge.model.cloudevent import CloudEvent
from edge.model.isa95 import JobResponse
from edge.northbound.events import change_events, load_changed_job
from edge.northbound.topic_writer import StartedWrite, TopicWriter, WriteOutcome
from edge.northbound.topics import Topics
from edge.store import changes
from edge.store.changes import Change
from edge.store.client import Store
from edge.store.jobs import Job
from edge.store.stream import BEGINNING

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

    async def compose(self, change: Change, job: Job | None, response: JobResponse | None) -> list[Message]:
        """Return the events of a change as they were published first. Raises Unavailable without the store."""
        events = change_events(self._source, change, job, response)
        return [to_message(await self._first_form(change, event), self._topics.events) for event in events]

    async def start(self, events: Sequence[Message]) -> Sequence[StartedWrite]:
        """Send the events of a change, unless earlier ones wait. Raises Unavailable when the broker is unavailable."""
        return () if self.is_blocked else [await self._writer.start(event) for event in events]

    async def finish(self, change: Change, started: Sequence[StartedWrite]) -> PublishedEvent:
        """Wait until the broker has the events of a change; the caller finishes changes in their order.

        Events behind a refused one wait, also those that the broker has taken meanwhile: they are published again under
        the same ids. Raises Unavailable when the broker is unavailable.
        """
        outcome = await _outcome(started)
        if self.is_blocked:
            return PublishedEvent()
        if outcome is WriteOutcome.REFUSED:
            self.is_blocked = True
            return PublishedEvent()
        self.position = change.position
        return PublishedEvent(change.position, outcome is WriteOutcome.READ)

    def skip(self, change: Change) -> str | None:
        """Advance past the event of a change that cannot be read, unless earlier events wait; return the position."""
        if self.is_blocked:
            return None
        self.position = change.position
        return change.position

    async def republish(self, after: str, last: str, connection: int) -> None:
        """Publish the events of the changes between two positions again, under the same ids.

        On that connection only: on another one, more may be lost. While the broker refuses one, the later ones wait.
        """
        is_blocked, position = False, after
        async for change in changes.read_between(self._store, self._topics.scope, after, last):
            if found := await load_changed_job(self._store, change):
                events = await self.compose(change, *found)
                self._session.require_connection(connection)
                if await _outcome([await self._writer.start(event) for event in events]) is WriteOutcome.REFUSED:
                    is_blocked = True
                    break
            position = change.position
        # Set last: after an interruption the waiting events must still wait, and no later one may precede them.
        self.is_blocked, self.position = is_blocked, position if is_blocked else last
        await self._store.commit(changes.save_event_cursor(self._store.keys, self._topics.scope, self.position))

    async def _first_form(self, change: Change, event: CloudEvent) -> CloudEvent:
        """Return the event as it was published first: the job may have changed since."""
        text, part = msgspec.json.encode(event).decode(), event.id.removeprefix(f"{change.scope}/")
        first = await changes.keep_published(self._store, change.scope, part, text, REPUBLISH_WINDOW_S)
        return event if first == text else msgspec.json.decode(first, type=CloudEvent)


async def _outcome(started: Sequence[StartedWrite]) -> WriteOutcome:
    """Return the outcome of the events of a change: refused if one is, and read if one is."""
    outcome = WriteOutcome.UNREAD
    for started_write in started:
        written = await started_write.outcome()
        if written is WriteOutcome.REFUSED:
            return written
        outcome = written if outcome is WriteOutcome.UNREAD else outcome
    return outcome

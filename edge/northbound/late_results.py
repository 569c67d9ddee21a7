"""Publish an event for each late result that is kept, in order and at least once."""

import msgspec
import structlog

from edge.foundation.errors import Refused, Unavailable
from edge.foundation.ticks import next_tick
from edge.links.mqtt import MqttSession, PublishRefused, to_message
from edge.model.cloudevent import CloudEvent
from edge.model.event_types import LATE_RESULT_TYPE
from edge.model.job_message import LateResultEvent
from edge.northbound.topics import Topics
from edge.store import dead_letters
from edge.store.client import Store
from edge.store.dead_letters import LateCursor, Letter

logger = structlog.get_logger(__name__)

POLL_INTERVAL_S = 2.0


class LateResultPublisher:
    """Publishes the late results of a scope. Its cursor is in the store: after a restart it continues from there."""

    def __init__(
        self,
        store: Store,
        session: MqttSession,
        source: str,
        topics: Topics,
        poll_interval_s: float = POLL_INTERVAL_S,
    ) -> None:
        self._store = store
        self._session = session
        self._source = source
        self._topics = topics
        self._poll_interval_s = poll_interval_s
        self._cursor: LateCursor | None = None
        """The last letter that was read; None before the first read."""

    async def run(self) -> None:
        """Publish until cancelled; an unavailable broker or store delays it."""
        # Another instance may have published since this one last did.
        self._cursor = None
        while True:
            try:
                await self._publish_all()
            except (Unavailable, PublishRefused, Refused) as error:
                logger.debug("late results wait", reason=error.message)
                self._cursor = None
            await next_tick(self._poll_interval_s)

    async def _publish_all(self) -> None:
        scope = self._topics.scope
        if self._cursor is None:
            self._cursor = await dead_letters.last_published(self._store, scope)
        found = await dead_letters.load_late(self._store, self._cursor)
        if found.letters:
            await self._store.settle()
        for letter_id, letter in found.letters.items():
            if letter.scope == scope:
                event = late_result_event(self._source, letter_id, letter)
                await self._session.send(to_message(event, self._topics.events))
                await self._store.commit(dead_letters.save_published(self._store.keys, scope, letter_id))
        self._cursor = found.end


def late_result_event(source: str, letter_id: str, letter: Letter) -> CloudEvent:
    """Return the event of a late result; its id is the same each time."""
    details = letter.details
    return CloudEvent(
        id=dead_letters.event_id(letter_id, letter),
        source=source,
        type=LATE_RESULT_TYPE,
        subject=letter.scope,
        causationid=details.get("command_id") or None,
        data=LateResultEvent(
            job_order_id=letter.job_id,
            command_id=details.get("command_id", ""),
            source=details.get("source", ""),
            reason=letter.reason,
            data=_data(details.get("data", "null")),
        ),
    )


def _data(text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        # The data were cut at the limit.
        return text

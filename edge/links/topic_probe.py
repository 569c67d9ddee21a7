"""Reads the retained message of a topic and checks whether the broker delivers it to us."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

from edge.foundation.errors import Unavailable
from edge.links.cloudevent_mqtt import Message
from edge.links.mqtt_confirmations import PublishRefused
from edge.links.mqtt_connection import Connection

_RETAINED_WITHIN_S = 0.5
"""Maximum time from the confirmed subscription to its retained message."""


class TopicProbe:
    """The topics that a session probes; the session passes every message to `take` first.

    No other subscription may include a topic while it is probed. Each method raises Unavailable when the broker is
    gone, ReadRefused when it refuses the subscription.
    """

    def __init__(self) -> None:
        self._asked: dict[str, asyncio.Future[Message]] = {}

    def take(self, message: Message) -> bool:
        """Return whether a message answers what was asked."""
        asked = self._asked.get(message.topic)
        if asked and not asked.done():
            asked.set_result(message)
        return asked is not None

    async def read_retained(self, connection: Connection, topic: str, seconds: float) -> Message | None:
        """Return the retained message of a topic; None when none comes in time."""
        async with self._asking(connection, topic) as asked:
            return await _first(asked, seconds)

    async def check_readable(self, connection: Connection, topic: str, seconds: float) -> None:
        """Check that we receive what is published to a topic, by an empty message that is not retained.

        A broker may grant the subscription and pass us over all the same, as mosquitto does: ReadRefused too.
        """
        async with self._asking(connection, topic) as asked:
            with suppress(PublishRefused):
                await connection.publish(Message(topic), qos=1)
                if await _first(asked, seconds) is not None:
                    return
        raise connection.read_refused(topic, "what is published there does not come to us")

    @asynccontextmanager
    async def _asking(self, connection: Connection, topic: str) -> AsyncIterator[asyncio.Future[Message]]:
        asked = self._asked[topic] = asyncio.get_running_loop().create_future()
        try:
            await connection.ask(topic)
            yield asked
        except BaseException:
            # Cancelled, too: as long as it keeps the session, the broker would keep delivering the topic.
            with suppress(Unavailable):
                await connection.unsubscribe(topic)
            raise
        else:
            await connection.unsubscribe(topic)
        finally:
            del self._asked[topic]


async def _first(asked: asyncio.Future[Message], seconds: float) -> Message | None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            return await asked
    return None


async def read_retained(connection: Connection, topics: set[str]) -> Mapping[str, bytes]:
    """Return the retained payloads of topics that were just subscribed to."""
    retained: dict[str, bytes] = {}
    with suppress(TimeoutError):
        async with asyncio.timeout(_RETAINED_WITHIN_S if topics else 0):
            async for incoming in connection.messages():
                if incoming.message.topic in topics:
                    retained[incoming.message.topic] = incoming.message.payload
                if retained.keys() == topics:
                    break
    return retained

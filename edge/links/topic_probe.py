"""Asks a broker what it retains on a topic, and whether it lets us read there."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from edge.errors import Unavailable
from edge.links.cloudevent_mqtt import Message
from edge.links.mqtt_connection import Connection, PublishRefused


class TopicProbe:
    """What a session has asked; it hands every message that comes to `take` first.

    Nobody may subscribe to a topic while it is asked for. Each question raises Unavailable when the broker is gone,
    ReadRefused when it refuses the subscription.
    """

    def __init__(self) -> None:
        self._asked: dict[str, asyncio.Future[Message]] = {}

    def take(self, message: Message) -> bool:
        """Tell whether a message answers what was asked."""
        asked = self._asked.get(message.topic)
        if asked and not asked.done():
            asked.set_result(message)
        return asked is not None

    async def read_retained(self, connection: Connection, topic: str, seconds: float) -> Message | None:
        """Ask what the broker retains on a topic; None when that does not come in time."""
        async with self._asking(connection, topic) as asked:
            return await _first(asked, seconds)

    async def check_readable(self, connection: Connection, topic: str, seconds: float) -> None:
        """Make sure that what is published to a topic comes to us, by an empty message that is not retained.

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
            # Cancelled, too: as long as it keeps the session, the broker would go on sending what nobody asks for.
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

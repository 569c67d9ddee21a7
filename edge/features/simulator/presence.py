"""The presence of simulated equipment: `online` at each connection, `offline` at its end or by its last will."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from edge.foundation.errors import Unavailable
from edge.foundation.task_group import background_task
from edge.links.mqtt import Message, MqttSession

ONLINE, OFFLINE = b"online", b"offline"


def last_will(topic: str) -> Message:
    """Return the last will of the equipment on `topic`, the `will` of its session: retained, `offline`."""
    return Message(f"{topic}/presence", OFFLINE, retain=True)


@asynccontextmanager
async def announce_presence(session: MqttSession, topic: str) -> AsyncIterator[None]:
    """Publish the equipment on `topic` as online for the length of the block; it must accept commands already."""
    connected = asyncio.Event()
    connected.set()

    def watch(is_there: bool) -> None:  # noqa: FBT001 - the signature of a session listener
        if is_there:
            connected.set()

    async def be_born() -> None:
        while True:
            await connected.wait()
            connected.clear()
            # After a connection loss here, the next connection publishes the message.
            with suppress(Unavailable):
                await session.publish(f"{topic}/presence", ONLINE, retain=True)

    session.listeners.append(watch)
    try:
        async with background_task(be_born(), f"presence of {topic}"):
            yield
    finally:
        session.listeners.remove(watch)
    # Without a connection, the last will replaces this message.
    with suppress(Unavailable):
        await session.publish(f"{topic}/presence", OFFLINE, retain=True)

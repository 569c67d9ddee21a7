"""How simulated equipment says whether it is there: a birth at each connection, a last will when it is lost."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from edge.errors import Unavailable
from edge.links.background_task import background_task
from edge.links.mqtt import Message, MqttSession

ONLINE, OFFLINE = b"online", b"offline"


def last_will(topic: str) -> Message:
    """Return what the broker has to say of the equipment on `topic` when it loses it: the `will` of its session."""
    return Message(f"{topic}/presence", OFFLINE, retain=True)


@asynccontextmanager
async def announce_presence(session: MqttSession, topic: str) -> AsyncIterator[None]:
    """Have the equipment on `topic` be online for the length of the block; it has to take commands already."""
    connected = asyncio.Event()
    connected.set()

    def watch(is_there: bool) -> None:  # noqa: FBT001 - what a session tells its watchers
        if is_there:
            connected.set()

    async def be_born() -> None:
        while True:
            await connected.wait()
            connected.clear()
            # Whoever loses the connection in this moment is born on the next one.
            with suppress(Unavailable):
                await session.publish(f"{topic}/presence", ONLINE, retain=True)

    session.listeners.append(watch)
    try:
        async with background_task(be_born(), f"presence of {topic}"):
            yield
    finally:
        session.listeners.remove(watch)
    # Where the broker is away its own word, the last will, has to do.
    with suppress(Unavailable):
        await session.publish(f"{topic}/presence", OFFLINE, retain=True)

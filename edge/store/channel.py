"""Subscribes to a channel of the store over a connection of its own."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from edge.errors import Unavailable
from edge.store.connection import Endpoint, Greeting, connect
from edge.store.errors import ADVICE_START, error_of_reply
from edge.store.pipeline import Pipeline, ReplyError, pack_command

_SUBSCRIBED_WITHIN_S = 5.0


@contextlib.asynccontextmanager
async def subscribe(endpoint: Endpoint, greeting: Greeting | None, channel: str) -> AsyncIterator[AsyncIterator[str]]:
    """Subscribe to a channel for the length of the block; earlier messages are lost.

    Raises Unavailable, also from the iterator when the connection is lost.
    """
    pushed: asyncio.Queue[Any] = asyncio.Queue()
    pipeline = Pipeline(_SUBSCRIBED_WITHIN_S, 2, pushed.put_nowait)
    try:
        await _subscribe(pipeline, endpoint, greeting, channel)
        yield _messages(pipeline, pushed)
    finally:
        pipeline.fail("the subscription has ended")


async def _subscribe(pipeline: Pipeline, endpoint: Endpoint, greeting: Greeting | None, channel: str) -> None:
    try:
        async with asyncio.timeout(_SUBSCRIBED_WITHIN_S):
            await connect(pipeline, endpoint, greeting)
            # A subscription is confirmed by a push message; the reply to PING comes after it.
            (reply,) = await pipeline.call(pack_command(("SUBSCRIBE", channel)) + pack_command(("PING",)), 1)
    except OSError as error:
        raise Unavailable(f"Redis does not answer: {str(error) or 'no reply in time'}", ADVICE_START) from error
    if isinstance(reply, ReplyError):
        raise error_of_reply(str(reply))


async def _messages(pipeline: Pipeline, pushed: asyncio.Queue[Any]) -> AsyncIterator[str]:
    while (message := await pushed.get()) is not None:
        kind, _, payload = message
        if kind == "message":
            yield payload
    raise Unavailable(f"Redis does not answer: {pipeline.failure}", ADVICE_START)

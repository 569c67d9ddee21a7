import asyncio
from typing import cast

import pytest

from edge.foundation.errors import Unavailable
from edge.store.connection import Pipeline, ReplyError, pack_command


class Transport:
    """Notes what is written."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []
        self.aborted = False

    def write(self, data: bytes) -> None:
        self.writes.append(data)

    def is_closing(self) -> bool:
        return self.aborted

    def abort(self) -> None:
        self.aborted = True


def opened(timeout: float = 5.0, most_in_flight: int = 10) -> tuple[Pipeline, Transport]:
    pipeline, transport = Pipeline(timeout, most_in_flight), Transport()
    pipeline.connection_made(cast("asyncio.BaseTransport", transport))
    return pipeline, transport


async def asked(pipeline: Pipeline, commands: int = 1) -> "asyncio.Task[list[object]]":
    task = asyncio.create_task(pipeline.call(b"command", commands))
    await asyncio.sleep(0)
    return task


async def test_replies_in_parts_reach_their_calls_in_order() -> None:
    pipeline, transport = opened()
    one, two = await asked(pipeline), await asked(pipeline, 2)
    for byte in b"+first\r\n:2\r\n-ERR third\r\n":
        pipeline.data_received(bytes((byte,)))
    assert await one == ["first"]
    number, error = await two
    assert (number, isinstance(error, ReplyError), str(error)) == (2, True, "ERR third")
    assert transport.writes == [b"command", b"command"]


async def test_the_reply_of_a_cancelled_call_is_dropped() -> None:
    pipeline, _ = opened()
    one, two = await asked(pipeline), await asked(pipeline)
    one.cancel()
    await asyncio.sleep(0)
    pipeline.data_received(b"+one\r\n+two\r\n")
    assert await two == ["two"]


async def test_push_message_is_not_taken_as_a_reply() -> None:
    pipeline, _ = opened()
    one = await asked(pipeline)
    pipeline.data_received(b">2\r\n+invalidate\r\n+x\r\n+one\r\n")
    assert await one == ["one"]


@pytest.mark.parametrize("data", [b"?not resp\r\n", b"+one\r\n+nobody asked\r\n"])
async def test_invalid_or_unrequested_reply_closes_the_connection(data: bytes) -> None:
    pipeline, transport = opened()
    await asked(pipeline)
    pipeline.data_received(data)
    assert transport.aborted
    with pytest.raises(Unavailable):
        await pipeline.call(b"command", 1)


async def test_timeout_of_the_oldest_call_closes_the_connection() -> None:
    pipeline, transport = opened(timeout=0.05)
    one = await asked(pipeline)
    with pytest.raises(Unavailable, match="no reply in time"):
        await one
    assert transport.aborted


async def test_a_call_that_waits_for_room_fails_with_the_connection() -> None:
    pipeline, _ = opened(most_in_flight=1)
    one, two = await asked(pipeline), await asked(pipeline)
    pipeline.connection_lost(None)
    for task in (one, two):
        with pytest.raises(Unavailable, match="closed the connection"):
            await task


async def test_calls_wait_while_the_server_does_not_read() -> None:
    pipeline, transport = opened(timeout=0.05)
    pipeline.pause_writing()
    one = await asked(pipeline)
    with pytest.raises(Unavailable, match="too many calls"):
        await one
    assert transport.writes == []
    two = await asked(pipeline)
    pipeline.resume_writing()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    pipeline.data_received(b"+two\r\n")
    assert await two == ["two"]


def test_text_not_encodable_in_utf_8_is_escaped() -> None:
    assert pack_command(("GET", "a\ud800", 1)) == b"*3\r\n$3\r\nGET\r\n$7\r\na\\ud800\r\n$1\r\n1\r\n"

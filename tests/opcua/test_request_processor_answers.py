"""Answers are sent in order, in chunks, no faster than the client reads them."""

import asyncio
from typing import cast

from edge.opcua.answer_encoding import AnswerBody
from edge.opcua.limits import NegotiatedLimits
from edge.opcua.request_processor import ResponseSender
from edge.opcua.server_channel import ServerChannel
from edge.opcua.time_slices import Turns
from edge.uaserver.security import AccessControl
from tests.uaserver.running import SETTINGS


class FakeTransport:
    def __init__(self) -> None:
        self.chunks: list[bytes] = []
        self.is_closed = False

    def write(self, data: bytes) -> None:
        self.chunks.append(data)

    def is_closing(self) -> bool:
        return self.is_closed


class Bench:
    def __init__(self) -> None:
        self.transport = FakeTransport()
        channel = ServerChannel(NegotiatedLimits(), AccessControl(SETTINGS), "127.0.0.1", (), lambda: 6)
        self.writable = asyncio.Event()
        self.writable.set()
        self.sender = ResponseSender(cast("asyncio.Transport", self.transport), channel, self.writable)

    async def flush(self) -> None:
        turns = Turns()
        await self.sender.flush(turns, turns.account(""))
        turns.close()

    def answer(self, size: int) -> AnswerBody:
        answer = AnswerBody(size)
        answer.add(b"x" * size)
        return answer


async def test_small_answers_are_written_at_once() -> None:
    bench = Bench()
    bench.sender.send(bench.answer(100), 1)
    assert len(bench.transport.chunks) == 1


async def test_answers_after_a_large_one_are_sent_later() -> None:
    bench = Bench()
    bench.sender.send(bench.answer(200_000), 1)
    bench.sender.send(bench.answer(100), 2)
    assert not bench.transport.chunks
    await bench.flush()
    assert [chunk[3:4] for chunk in bench.transport.chunks] == [b"C", b"C", b"C", b"F", b"F"]
    requests = [int.from_bytes(chunk[20:24], "little") for chunk in bench.transport.chunks]
    numbers = [int.from_bytes(chunk[16:20], "little") for chunk in bench.transport.chunks]
    assert requests == [1, 1, 1, 1, 2]
    assert numbers == list(range(numbers[0], numbers[0] + 5))


async def test_no_chunk_is_written_while_the_client_does_not_read() -> None:
    bench = Bench()
    bench.writable.clear()
    bench.sender.send(bench.answer(200_000), 1)
    flushing = asyncio.create_task(bench.flush())
    await asyncio.sleep(0)
    assert not bench.transport.chunks
    bench.writable.set()
    await flushing
    assert len(bench.transport.chunks) == 4


async def test_answers_are_dropped_when_the_connection_ends() -> None:
    bench = Bench()
    bench.sender.send(bench.answer(200_000), 1)
    bench.transport.is_closed = True
    await bench.flush()
    assert not bench.transport.chunks

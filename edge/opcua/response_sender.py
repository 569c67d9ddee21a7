"""Sends the answers of one connection chunk by chunk, one after the other, as fast as the client reads them."""

import asyncio
from collections import deque

from edge.opcua.answer_encoding import AnswerBody
from edge.opcua.server_channel import ServerChannel
from edge.opcua.time_slices import Pacer


class ResponseSender:
    """The queue of answers. Small ones are written at once when nothing waits."""

    def __init__(self, transport: asyncio.Transport, channel: ServerChannel, writable: asyncio.Event) -> None:
        self._transport = transport
        self._channel = channel
        self._writable = writable
        self._queue: deque[tuple[AnswerBody, int]] = deque()
        self._sending = asyncio.Lock()

    def send(self, answer: AnswerBody, request_id: int) -> None:
        """Write an answer of one chunk if nothing waits before it, else queue it for `flush`."""
        if self._queue or self._sending.locked() or answer.size > self._channel.chunk_body_size:
            self._queue.append((answer, request_id))
            return
        for chunk in self._channel.chunks(answer, request_id):
            self._transport.write(chunk)

    async def flush(self) -> None:
        """Write everything that is queued; return when it is written or the connection has ended."""
        if not self._queue and not self._sending.locked():
            return
        pacer = Pacer()
        async with self._sending:
            while self._queue:
                for chunk in self._channel.chunks(*self._queue.popleft()):
                    await self._writable.wait()
                    if self._transport.is_closing():
                        self._queue.clear()
                        return
                    self._transport.write(chunk)
                    await pacer.step()

"""One client of a strict Open Protocol controller: frames, both ways of acknowledging, retransmission (chapter 3.2)."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from tests.outside.devices import openprotocol_frames as frames

Data = str | bytes
Handler = Callable[[int, int, str], None]
"""Handles number, revision and data of a message."""

_ACKNOWLEDGEMENT = {15: 16, 35: 36, 52: 53, 61: 62, 71: 72, 74: 75, 76: 77, 101: 102, 217: 218, 900: 5, 901: 5}
"""The application acknowledgement of each message that a controller sends by itself."""
_TIMES = 3
"""How often a message without acknowledgement is sent."""


class Peculiar(Protocol):
    """The quirks that concern the way of messages."""

    latency: float
    pieces: int
    ack_seconds: float
    station: int
    silence: float


class Client:
    """A connection; `subscriptions` maps messages to their revisions. With the link, every message has a number."""

    def __init__(
        self,
        quirks: Peculiar,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        violations: list[str],
        on_confirmed: Callable[[int], None],
    ) -> None:
        self.started = False
        self.subscriptions: dict[int, int] = {}
        self._quirks = quirks
        self._reader, self._writer = reader, writer
        self._violations = violations
        self._on_confirmed = on_confirmed
        self._has_link = self._link_from_next = False
        self._replies: asyncio.Queue[tuple[int, Data, int]] = asyncio.Queue()
        self._events: asyncio.Queue[tuple[int, Data, int, int]] = asyncio.Queue()
        self._outgoing = asyncio.Lock()
        self._confirmed = asyncio.Event()
        self._awaited = 0
        """The acknowledgement that the sender of events waits for: a MID, or with the link a sequence number."""
        self._sent, self._expected = 0, 1

    def start(self, *, has_link: bool) -> None:
        """Begin the communication: numbers start from 1, subscriptions are gone."""
        self.started = True
        self.subscriptions.clear()
        self._link_from_next = has_link
        self._sent, self._expected = 0, 1

    def reply(self, mid: int, data: Data, revision: int = 1) -> None:
        """Answer a message."""
        self._replies.put_nowait((mid, data, revision))

    def push(self, mid: int, data: Data, revision: int, place: int = 0) -> None:
        """Send a message that the client has subscribed to; `place` is that of a result."""
        self._events.put_nowait((mid, data, revision, place))

    def close_when_sent(self) -> None:
        """Close the connection after the replies that wait."""
        self._replies.put_nowait((0, "", 0))

    def break_off(self) -> None:
        """Break the connection."""
        self._writer.transport.abort()

    async def write_raw(self, data: bytes) -> None:
        """Write bytes as they are."""
        self._writer.write(data)
        await self._writer.drain()

    async def run(self, handle: Handler) -> None:
        """Serve until the connection ends."""
        tasks = [asyncio.create_task(item) for item in (self._send_replies(), self._send_events(), self._read(handle))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            for result in await asyncio.gather(*tasks, return_exceptions=True):
                if isinstance(result, Exception) and not isinstance(result, (OSError, TimeoutError)):
                    self._violations.append(f"a defect of the controller: {result!r}")
            self._writer.close()

    async def _read(self, handle: Handler) -> None:
        buffer = bytearray()
        while True:
            async with asyncio.timeout(self._quirks.silence):
                received = await self._reader.read(65536)
            if not received:
                return
            buffer += received
            try:
                for message in frames.split(buffer):
                    await asyncio.sleep(self._quirks.latency)
                    self._take(message, handle)
            except ValueError as error:
                self._violations.append(str(error))
                return

    def _take(self, message: bytes, handle: Handler) -> None:
        header, data = message[: frames.HEADER].decode("latin-1"), message[frames.HEADER :].decode("latin-1")
        if not header[4:8].isdigit() or not all(part.strip(" 0") == "" or part.isdigit() for part in _parts(header)):
            raise ValueError(f"the header {header!r} is not numbers and blanks")
        mid, revision = int(header[4:8]), int(header[8:11].strip() or 1) or 1
        sequence = int(header[16:18].strip() or 0)
        if mid in {9997, 9998}:
            self._confirm(sequence if self._has_link else -1)
        elif mid in _ACKNOWLEDGEMENT.values():
            self._acknowledge(mid, data, sequence)
        elif self._is_in_turn(mid, sequence):
            handle(mid, revision, data)

    def _acknowledge(self, mid: int, data: str, sequence: int) -> None:
        if self._has_link:
            self._violations.append(f"MID {mid:04d} {data} is not used with sequence numbers (3.2.2)")
            self._is_in_turn(mid, sequence)
        elif not self._awaited or self._awaited != mid:
            self._violations.append(f"MID {mid:04d} {data} acknowledges nothing that was sent")
        else:
            self._confirm(mid)

    def _confirm(self, awaited: int) -> None:
        if self._awaited and awaited == self._awaited:
            self._confirmed.set()

    def _is_in_turn(self, mid: int, sequence: int) -> bool:
        """Return whether a message is to be handled: with the link it is acknowledged by its number first."""
        if not self._has_link or not sequence:
            return True
        following = sequence % 99 + 1
        if sequence == self._expected:
            self._expected = following
            self._write(9997, f"{mid:04d}", sequence=following)
            return True
        if following == self._expected:
            self._write(9997, f"{mid:04d}", sequence=following)
        else:
            self._violations.append(f"MID {mid:04d} has the number {sequence}, expected {self._expected}")
            self._write(9998, f"{mid:04d}0003", sequence=self._expected)
        return False

    async def _send_replies(self) -> None:
        while True:
            mid, data, revision = await self._replies.get()
            if not mid:
                await self._writer.drain()
                return
            if self._has_link:
                await self._send(mid, data, revision)
            else:
                await asyncio.sleep(self._quirks.latency)
                await self._write_out(frames.frame(mid, data, revision, ends=mid != 900, station=self._quirks.station))
            if mid == 2:
                self._has_link = self._link_from_next
            self._replies.task_done()

    async def _send_events(self) -> None:
        """Send one message after the other, each when the one before is acknowledged."""
        while True:
            mid, data, revision, place = await self._events.get()
            await self._replies.join()
            if mid in self.subscriptions:
                await self._send(mid, data, revision)
                if place:
                    self._on_confirmed(place)

    async def _send(self, mid: int, data: Data, revision: int) -> None:
        """Send a message until it is acknowledged; raises TimeoutError after the last time."""
        async with self._outgoing:
            sequence = 0
            if self._has_link:
                sequence = self._sent = self._sent % 99 + 1
            self._awaited = sequence % 99 + 1 if self._has_link else _ACKNOWLEDGEMENT[mid]
            self._confirmed.clear()
            message = frames.frame(mid, data, revision, sequence, ends=mid != 900, station=self._quirks.station)
            for _ in range(_TIMES):
                await asyncio.sleep(self._quirks.latency)
                await self._write_out(message)
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._quirks.ack_seconds):
                        await self._confirmed.wait()
                    self._awaited = 0
                    return
            raise TimeoutError

    def _write(self, mid: int, data: str, *, sequence: int) -> None:
        self._writer.write(frames.frame(mid, data, 1, sequence))

    async def _write_out(self, message: bytes) -> None:
        size = self._quirks.pieces or len(message)
        for at in range(0, len(message), size):
            self._writer.write(message[at : at + size])
            await self._writer.drain()
            if self._quirks.pieces:
                await asyncio.sleep(0)


def _parts(header: str) -> list[str]:
    return [header[8:11], header[11:12], header[12:14], header[14:16], header[16:18], header[18:19], header[19:20]]

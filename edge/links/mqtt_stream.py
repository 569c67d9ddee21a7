"""The bytes of one MQTT connection: split into packets, with the PUBLISH and PUBACK packets kept from paho."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, cast

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion

_TYPE: Final = 0xF0
_PUBLISH: Final = 0x30
_PUBACK: Final = 0x40
_LENGTH_BYTES = 4

OnPacket = Callable[[int, bytes], None]
"""Called with the first byte of a packet and what follows its remaining length."""


class MqttStream(asyncio.Protocol):
    """Splits the received bytes into packets; each goes to one of three callbacks in the order of arrival.

    `on_control` gets whole packets, for paho. `on_lost` is called once, with the reason.
    """

    def __init__(
        self,
        on_publish: OnPacket,
        on_puback: OnPacket,
        on_control: Callable[[bytes], None],
        on_lost: Callable[[str], None],
    ) -> None:
        self._on_publish = on_publish
        self._on_puback = on_puback
        self._on_control = on_control
        self._on_lost = on_lost
        # Python 3.11 calls the kernel at each question for the running loop.
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._outgoing: list[bytes] = []
        self._writable = asyncio.Event()
        self._writable.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Split off every complete packet."""
        buffer = self._buffer
        buffer += data
        start = 0
        while (packet := _find_packet(buffer, start)) is not None:
            body, end = packet
            kind = buffer[start]
            if kind & _TYPE == _PUBLISH:
                self._on_publish(kind, bytes(buffer[body:end]))
            elif kind & _TYPE == _PUBACK:
                self._on_puback(kind, bytes(buffer[body:end]))
            else:
                self._on_control(bytes(buffer[start:end]))
            start = end
        del buffer[:start]
        if len(buffer) > _LENGTH_BYTES and _find_length(buffer, 0) is None:
            self._on_lost("a packet with a length that does not end")

    def connection_lost(self, error: Exception | None) -> None:
        """Report the end of the connection."""
        self._writable.set()
        self._on_lost(str(error) if error else "the broker has closed the connection")

    def pause_writing(self) -> None:
        """Pause publishing: the broker does not read."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Resume publishing."""
        self._writable.set()

    @property
    def is_writable(self) -> bool:
        """Whether the broker reads."""
        return self._writable.is_set()

    async def drain(self) -> None:
        """Wait until the broker reads."""
        await self._writable.wait()

    def write(self, packet: bytes) -> None:
        """Send a packet; all packets of one turn of the loop are sent in one write."""
        if not self._outgoing:
            self._loop.call_soon(self._flush)
        self._outgoing.append(packet)

    def _flush(self) -> None:
        if self._outgoing and self._transport is not None and not self._transport.is_closing():
            self._transport.write(b"".join(self._outgoing))
        self._outgoing.clear()

    def close(self) -> None:
        """Close after everything was sent; abort after a second otherwise."""
        self._flush()
        if self._transport is not None:
            self._transport.close()
            self._loop.call_later(1.0, self._transport.abort)


def _find_packet(buffer: bytearray, start: int) -> tuple[int, int] | None:
    """Return where the body of the packet at `start` begins and ends; None while it is not complete."""
    found = _find_length(buffer, start)
    if found is None:
        return None
    length, body = found
    return (body, body + length) if body + length <= len(buffer) else None


def _find_length(buffer: bytearray, start: int) -> tuple[int, int] | None:
    length = 0
    for position in range(min(_LENGTH_BYTES, len(buffer) - start - 1)):
        byte = buffer[start + 1 + position]
        length |= (byte & 0x7F) << 7 * position
        if byte < 0x80:  # noqa: PLR2004 - the last byte has no continuation bit
            return length, start + 2 + position
    return None


class PahoSocket:
    """The socket for paho: it reads the packets that were fed to it and writes to the stream."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._fed: deque[bytes] = deque()

    def feed(self, packet: bytes) -> None:
        """Queue a packet for paho to read."""
        self._fed.append(packet)

    def recv(self, most: int) -> bytes:
        """Return up to `most` bytes; raises BlockingIOError when none are left."""
        if not self._fed:
            raise BlockingIOError
        data = self._fed.popleft()
        if len(data) > most:
            self._fed.appendleft(data[most:])
        return data[:most]

    def send(self, data: bytes) -> int:
        """Write all of `data`; return its size."""
        self._write(bytes(data))
        return len(data)

    def setblocking(self, _flag: bool) -> None:  # noqa: FBT001 - as a socket has it
        """Accept: nothing here blocks."""

    def fileno(self) -> int:
        """Return no descriptor: the stream has it."""
        return -1

    def close(self) -> None:
        """Drop the bytes that paho has not read."""
        self._fed.clear()


class ControlClient(paho.Client):
    """paho for all but PUBLISH and PUBACK: connect, subscribe, keep alive, disconnect.

    Two private methods of paho 2 are replaced, because it offers no public way: `_create_socket`, so that it works on
    our stream instead of a blocking socket, and `_mid_generate`, so that both of us take packet ids from one counter.
    """

    def __init__(self, client_id: str, socket: PahoSocket, next_packet_id: Callable[[], int]) -> None:
        super().__init__(CallbackAPIVersion.VERSION2, client_id, protocol=paho.MQTTv5, reconnect_on_failure=False)
        self._packet_stream = socket
        self._next_packet_id = next_packet_id

    def _create_socket(self) -> PahoSocket:  # type: ignore[override]
        return self._packet_stream

    def _mid_generate(self) -> int:
        return self._next_packet_id()

"""The packets of one TCP connection to an MQTT broker: received bytes are split, sent packets are collected."""

import asyncio
import socket
from collections.abc import Callable
from typing import Final, cast

from edge.foundation.text import Text
from edge.links.mqtt_publish import CONTINUES, LENGTH_BYTES

_TYPE: Final = 0xF0
_PUBLISH: Final = 0x30
_PUBACK: Final = 0x40

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
        on_lost: Callable[[str | Text], None],
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
        buffer, confirmed = self._buffer, False
        buffer += data
        start = 0
        while (packet := _find_packet(buffer, start)) is not None:
            body, end = packet
            kind = buffer[start]
            if kind & _TYPE == _PUBLISH:
                self._on_publish(kind, bytes(buffer[body:end]))
            elif kind & _TYPE == _PUBACK:
                self._on_puback(kind, bytes(buffer[body:end]))
                confirmed = True
            else:
                self._on_control(bytes(buffer[start:end]))
            start = end
        del buffer[:start]
        if confirmed and self._transport is not None:
            _acknowledge_segments(self._transport)
        if len(buffer) > LENGTH_BYTES and _find_length(buffer, 0) is None:
            self._on_lost(Text.of("a packet with a length that does not end"))

    def connection_lost(self, error: Exception | None) -> None:
        """Report the end of the connection."""
        self._writable.set()
        self._on_lost(str(error) if error else Text.of("the broker has closed the connection"))

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


def _acknowledge_segments(transport: asyncio.Transport) -> None:
    """Acknowledge now, in the kernel, what has arrived.

    A broker without `set_tcp_nodelay`, the default of mosquitto, sends no further PUBACK until the first of them is
    acknowledged (Nagle, RFC 896), and the kernel waits 40 ms for that. The kernel forgets TCP_QUICKACK by itself.
    """
    transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)


def _find_packet(buffer: bytearray, start: int) -> tuple[int, int] | None:
    """Return where the body of the packet at `start` begins and ends; None while it is not complete."""
    found = _find_length(buffer, start)
    if found is None:
        return None
    length, body = found
    return (body, body + length) if body + length <= len(buffer) else None


def _find_length(buffer: bytearray, start: int) -> tuple[int, int] | None:
    length = 0
    for position in range(min(LENGTH_BYTES, len(buffer) - start - 1)):
        byte = buffer[start + 1 + position]
        length |= (byte & 0x7F) << 7 * position
        if byte < CONTINUES:
            return length, start + 2 + position
    return None

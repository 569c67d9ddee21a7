"""Packets arrive complete and in order with any fragmentation by the network."""

import asyncio
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.foundation.text import Text
from edge.links.mqtt_connection import ControlClient, PahoSocket
from edge.links.mqtt_stream import MqttStream

PUBLISH, PUBACK, PINGRESP = b"\x30\x05\x00\x01t\x00x", b"\x40\x02\x00\x07", b"\xd0\x00"
LONG = b"\x30\xac\x02\x00\x01t\x00" + b"x" * 296


class Received:
    """What a stream has handed over."""

    def __init__(self) -> None:
        self.packets: list[tuple[str, Any]] = []
        self.lost: list[str | Text] = []
        self.stream = MqttStream(
            lambda flags, body: self.packets.append(("publish", (flags, body))),
            lambda flags, body: self.packets.append(("puback", (flags, body))),
            lambda packet: self.packets.append(("control", packet)),
            self.lost.append,
        )


@given(st.lists(st.integers(1, 400), max_size=30))
def test_packets_are_complete_with_any_fragmentation(sizes: list[int]) -> None:
    asyncio.run(_receive_in_parts(sizes))


async def _receive_in_parts(sizes: list[int]) -> None:
    received = Received()
    data = (PUBLISH + PUBACK + LONG + PINGRESP) * 2
    for size in [*sizes, len(data)]:
        received.stream.data_received(data[:size])
        data = data[size:]
    once = [
        ("publish", (0x30, PUBLISH[2:])),
        ("puback", (0x40, PUBACK[2:])),
        ("publish", (0x30, LONG[3:])),
        ("control", PINGRESP),
    ]
    assert received.packets == once * 2
    assert received.lost == []


async def test_malformed_packet_length_ends_the_connection() -> None:
    received = Received()
    received.stream.data_received(b"\x30\xff\xff\xff\xff\x01")
    assert list(map(str, received.lost)) == ["a packet with a length that does not end"]


async def test_the_end_of_the_connection_is_reported() -> None:
    received = Received()
    received.stream.connection_lost(ConnectionResetError("reset"))
    received.stream.connection_lost(None)
    assert list(map(str, received.lost)) == ["reset", "the broker has closed the connection"]


async def test_writing_waits_while_the_broker_does_not_read() -> None:
    stream = Received().stream
    stream.pause_writing()
    waiting = asyncio.ensure_future(stream.drain())
    await asyncio.sleep(0)
    assert not waiting.done()
    stream.resume_writing()
    await waiting


class Transport:
    """Notes each write."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.writes.append(data)

    def is_closing(self) -> bool:
        return False


async def test_acknowledgements_of_one_pass_are_sent_in_one_write() -> None:
    stream, transport = Received().stream, Transport()
    stream.connection_made(cast("asyncio.BaseTransport", transport))
    for number in range(20):
        stream.write(b"\x40\x02" + number.to_bytes(2, "big"))
    await asyncio.sleep(0)
    assert [len(write) for write in transport.writes] == [80]


def test_paho_socket_reads_fed_bytes_and_writes_to_the_stream() -> None:
    written: list[bytes] = []
    socket = PahoSocket(written.append)
    socket.feed(b"abc")
    assert (socket.recv(1), socket.recv(9)) == (b"a", b"bc")
    with pytest.raises(BlockingIOError):
        socket.recv(1)
    assert (socket.send(b"xy"), written, socket.fileno()) == (2, [b"xy"], -1)
    socket.feed(b"abc")
    socket.close()
    with pytest.raises(BlockingIOError):
        socket.recv(1)


def test_paho_has_the_private_methods_that_are_replaced() -> None:
    written: list[bytes] = []
    client = ControlClient("id", PahoSocket(written.append), iter(range(7, 9)).__next__)
    client.connect("nowhere", 1)
    _, packet_id = client.subscribe("t")
    assert (written[0][0], written[1][0], packet_id) == (0x10, 0x82, 7)

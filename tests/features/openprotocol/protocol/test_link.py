"""The link layer: numbered frames, acknowledgements, retries, and lost or duplicate frames."""

import asyncio

import pytest

from edge.features.openprotocol.protocol.frame import DATA_BYTES, FrameReader, MidFrame, encode_frame
from edge.features.openprotocol.protocol.link import LinkLayer, LinkLimits, next_sequence
from edge.features.openprotocol.protocol.mids import Mid, new_message, parse_message
from edge.foundation.errors import Refused, Unavailable

SOON = LinkLimits(repeat=0.02, times=3)


class Wire:
    """What a link layer has written."""

    def __init__(self) -> None:
        self.written = asyncio.Event()
        self.frames: list[MidFrame] = []
        self.link = LinkLayer(self.write, SOON)
        self.link.active = True

    def write(self, data: bytes) -> None:
        self.frames += FrameReader().feed(data)
        self.written.set()

    async def wait(self, frames: int) -> None:
        """Wait until so many frames are written."""
        while len(self.frames) < frames:
            self.written.clear()
            await self.written.wait()

    def acknowledge(self, number: int) -> None:
        frame = new_message(Mid.LINK_ACKNOWLEDGE, mid=61)
        self.link.receive(MidFrame(frame.mid, frame.data, sequence=number))


def test_sequence_numbers_go_from_1_to_99() -> None:
    assert [next_sequence(text) for text in (0, 1, 98, 99)] == [1, 2, 99, 1]


def test_frames_without_the_link_layer_have_no_sequence_number() -> None:
    wire = Wire()
    wire.link.active = False
    asyncio.run(wire.link.send(MidFrame(61)))
    assert wire.frames == [MidFrame(61)]
    assert wire.link.receive(MidFrame(61)) == MidFrame(61)


async def test_message_is_repeated_until_it_is_acknowledged() -> None:
    wire = Wire()
    sending = asyncio.create_task(wire.link.send(MidFrame(61)))
    await wire.wait(2)
    assert {frame.sequence for frame in wire.frames} == {1}
    wire.acknowledge(7)
    assert not sending.done()
    wire.acknowledge(2)
    await sending


async def test_unacknowledged_message_raises_unavailable() -> None:
    wire = Wire()
    with pytest.raises(Unavailable, match="not acknowledged"):
        await wire.link.send(MidFrame(61))
    assert len(wire.frames) == SOON.times


async def test_declined_frame_is_refused() -> None:
    wire = Wire()
    sending = asyncio.create_task(wire.link.send(MidFrame(61)))
    await wire.wait(1)
    error = new_message(Mid.LINK_ERROR, mid=61, error=3)
    wire.link.receive(MidFrame(error.mid, error.data, sequence=2))
    with pytest.raises(Refused, match="MID 0061 was declined, error 3"):
        await sending


def test_duplicate_frame_is_delivered_once_and_acknowledged_twice() -> None:
    wire = Wire()
    assert [wire.link.receive(MidFrame(61, sequence=5)) for _ in range(2)] == [MidFrame(61, sequence=5), None]
    assert [(frame.mid, frame.sequence) for frame in wire.frames] == [(Mid.LINK_ACKNOWLEDGE, 6)] * 2
    assert parse_message(wire.frames[0]) == {"mid": 61}


def test_frame_out_of_sequence_is_declined() -> None:
    wire = Wire()
    wire.link.receive(MidFrame(61, sequence=5))
    assert wire.link.receive(MidFrame(61, sequence=7)) is None
    assert parse_message(wire.frames[-1]) == {"mid": 61, "error": 1}


def test_each_part_is_acknowledged_and_a_missing_one_declined() -> None:
    wire = Wire()
    assert wire.link.receive(MidFrame(900, b"a", sequence=1, parts=3, part=1)) is None
    assert wire.link.receive(MidFrame(900, b"b", sequence=2, parts=3, part=2)) is None
    with pytest.raises(Refused):
        wire.link.receive(MidFrame(900, b"d", sequence=3, parts=3, part=1))
    assert [frame.mid for frame in wire.frames] == [9997, 9997, 9998]


async def test_large_message_is_sent_part_by_part() -> None:
    wire = Wire()
    wire.link.active = False
    await wire.link.send(MidFrame(900, b"x" * (DATA_BYTES + 1)))
    assert [(frame.parts, frame.part, len(frame.data)) for frame in wire.frames] == [(2, 1, DATA_BYTES), (2, 2, 1)]
    assert len(encode_frame(wire.frames[0])) == 10_000

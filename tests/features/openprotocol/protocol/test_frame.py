"""Frames of Open Protocol: header, length, NUL, parts; malformed streams are refused."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.features.openprotocol.protocol.frame import (
    DATA_BYTES,
    FrameReader,
    MidFrame,
    PartAssembler,
    encode_frame,
    split_message,
)
from edge.foundation.errors import Refused

_small = st.integers(0, 99)
_frames = st.builds(
    MidFrame,
    mid=st.integers(0, 9999),
    data=st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=300).map(str.encode),
    revision=st.integers(1, 999),
    no_ack=st.booleans(),
    station=_small,
    spindle=_small,
    sequence=_small,
)


def read(raw: bytes) -> list[MidFrame]:
    return list(FrameReader().feed(raw))


def test_frame_is_encoded_as_in_the_specification() -> None:
    assert encode_frame(MidFrame(1)) == b"00200001001         \0"
    assert encode_frame(MidFrame(18, b"003")) == b"00230018001         003\0"
    frame = MidFrame(9997, b"0061", no_ack=True, station=1, spindle=2, sequence=7, parts=2, part=1)
    assert encode_frame(frame) == b"002499970011010207210061\0"


@given(st.lists(_frames, max_size=5), st.integers(1, 50))
def test_frames_are_read_with_any_fragmentation(frames: list[MidFrame], size: int) -> None:
    raw = b"".join(map(encode_frame, frames))
    reader = FrameReader()
    pieces = [raw[at : at + size] for at in range(0, len(raw), size)]
    assert [frame for piece in pieces for frame in reader.feed(piece)] == frames


@pytest.mark.parametrize("gap", [b"", b"\0\0\0"])
def test_frames_without_or_with_more_nul_are_read(gap: bytes) -> None:
    assert [mid_frame.mid for mid_frame in read(b"00209999001         " + gap + b"00209999001         ")] == [
        9999,
        9999,
    ]


def test_blank_revision_is_revision_1() -> None:
    assert read(b"00209999            ")[0].revision == 1


@pytest.mark.parametrize(
    "raw", [b"GET / HTTP/1.1\r\n\r\n.......", b"00199999001        ", b"0020abcd001         ", b"-0200001001         "]
)
def test_stream_of_another_protocol_is_refused(raw: bytes) -> None:
    with pytest.raises(Refused) as caught:
        read(raw + b" " * 20)
    assert caught.value.kind == "unreadable"


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_decoded_or_refused(raw: bytes) -> None:
    with suppress(Refused):
        assert all(len(mid_frame.data) < DATA_BYTES for mid_frame in read(raw))


@given(st.integers(0, 9 * DATA_BYTES))
def test_message_of_any_size_is_split_and_assembled(size: int) -> None:
    message = MidFrame(900, b"x" * size, revision=2)
    frames = split_message(message)
    assembler = PartAssembler()
    assembled = [assembler.add(frame) for frame in frames]
    assert assembled[-1] == message
    assert assembled[:-1] == [None] * (len(frames) - 1)


def test_message_beyond_nine_frames_is_refused() -> None:
    with pytest.raises(Refused, match="nine frames"):
        split_message(MidFrame(900, b"x" * (9 * DATA_BYTES + 1)))


def test_missing_part_is_refused_and_the_next_message_is_read() -> None:
    assembler = PartAssembler()
    first, _second, third = split_message(MidFrame(900, b"x" * (2 * DATA_BYTES + 1)))
    assert assembler.add(first) is None
    with pytest.raises(Refused, match="expected part 2"):
        assembler.add(third)
    assert assembler.add(MidFrame(61)) == MidFrame(61)


@pytest.mark.parametrize(
    ("chunk", "reason"),
    [
        (b"\0" * 16_384, "bytes came without a message"),
        (b"A" * 16_384, "is not a number"),
        (b" " * 16_384, "less than its header"),
        (b"9999" + b"A" * 16_380, "is not a number"),
    ],
)
def test_endless_bytes_without_a_message_end_the_stream(chunk: bytes, reason: str) -> None:
    reader = FrameReader()
    with pytest.raises(Refused, match=reason):
        _ = [frame for _ in range(100) for frame in reader.feed(chunk)]


def test_long_frames_are_read_without_a_terminator() -> None:
    reader, frame = FrameReader(), encode_frame(MidFrame(61, b"x" * DATA_BYTES))[:-1]
    stream = frame * 20
    count = sum(len(list(reader.feed(stream[at : at + 1000]))) for at in range(0, len(stream), 1000))
    assert count == 20

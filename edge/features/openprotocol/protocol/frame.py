"""The frames of Open Protocol: a header of 20 characters, data, and a NUL; messages in several parts."""

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from edge.foundation.errors import Refused
from edge.foundation.text import Text

HEADER_BYTES = 20
DATA_BYTES = 9979
"""The most data of one frame: the length has four digits."""

_PARTS = 9
_MOST_EMPTY = 1000
"""The most NULs between two frames."""
_NUL = b"\0"


class MidFrame(Struct, frozen=True):
    """One message, or one part of it.

    `sequence` is the number of the link layer, 0 without it. `part` of `parts` is set for a message of several frames.
    """

    mid: int
    data: bytes = b""
    revision: int = 1
    no_ack: bool = False
    station: int = 0
    spindle: int = 0
    sequence: int = 0
    parts: int = 0
    part: int = 0


def encode_frame(frame: MidFrame) -> bytes:
    """Encode one frame; fields of the header that are 0 stay blank, as in the first revision of the protocol."""
    header = (
        f"{HEADER_BYTES + len(frame.data):04d}{frame.mid:04d}{frame.revision:03d}{'1' if frame.no_ack else ' '}"
        f"{_blank(frame.station, 2)}{_blank(frame.spindle, 2)}{_blank(frame.sequence, 2)}"
        f"{_blank(frame.parts, 1)}{_blank(frame.part, 1)}"
    )
    return header.encode("ascii") + frame.data + _NUL


def split_message(message: MidFrame) -> tuple[MidFrame, ...]:
    """Split a message into frames; one is enough for most. Raises Refused(`too_large`) beyond nine frames."""
    pieces = [message.data[at : at + DATA_BYTES] for at in range(0, len(message.data), DATA_BYTES)]
    if len(pieces) <= 1:
        return (message,)
    if len(pieces) > _PARTS:
        raise Refused(
            "too_large",
            Text.of(
                "MID {mid:04d} has {count} bytes, more than nine frames hold", mid=message.mid, count=len(message.data)
            ),
        )
    return tuple(replace(message, data=data, parts=len(pieces), part=n + 1) for n, data in enumerate(pieces))


class FrameReader:
    """Reads frames from a stream of bytes; its buffer holds at most one incomplete frame."""

    def __init__(self) -> None:
        self._buffer = b""
        self._empty = 0
        """The NULs since the last frame."""

    def feed(self, received: bytes) -> Iterator[MidFrame]:
        """Yield each complete frame. Raises Refused(`unreadable`): the stream has lost its frames, close it."""
        data, at = self._buffer + received, 0
        while True:
            at = self._start_of_frame(data, at)
            length = _digits(data[at : at + 4], Text.of("length")) if len(data) - at >= HEADER_BYTES else HEADER_BYTES
            if length < HEADER_BYTES:
                raise Refused(
                    "unreadable", Text.of("a frame has the length {length}, less than its header", length=length)
                )
            if len(data) - at < length:
                self._buffer = data[at:]
                return
            frame = _parse(data[at : at + length])
            at += length
            self._empty = 0
            yield frame

    def _start_of_frame(self, data: bytes, at: int) -> int:
        """Return the place after the NUL of a frame; some controllers leave it out, some send more."""
        start = at
        while data[at : at + 1] == _NUL:
            at += 1
        self._empty += at - start
        if self._empty > _MOST_EMPTY:
            raise Refused("unreadable", Text.of("{empty} bytes came without a message", empty=self._empty))
        return at


class PartAssembler:
    """Assembles the parts of a message into one."""

    def __init__(self) -> None:
        self._parts: list[MidFrame] = []

    def add(self, frame: MidFrame) -> MidFrame | None:
        """Return the message when it is complete. Raises Refused(`unreadable`) for a part out of order."""
        if frame.parts <= 1:
            return frame
        expected = len(self._parts) + 1
        if frame.part != expected or (self._parts and self._parts[0].mid != frame.mid):
            self._parts.clear()
            raise Refused(
                "unreadable",
                Text.of(
                    "part {part} of MID {mid:04d} came, expected part {expected}",
                    part=frame.part,
                    mid=frame.mid,
                    expected=expected,
                ),
            )
        self._parts.append(frame)
        if frame.part < frame.parts:
            return None
        whole = replace(frame, data=b"".join(part.data for part in self._parts), parts=0, part=0)
        self._parts.clear()
        return whole


def _parse(raw: bytes) -> MidFrame:
    return MidFrame(
        mid=_digits(raw[4:8], Text("MID")),
        revision=_digits(raw[8:11], Text.of("revision")) or 1,
        no_ack=raw[11:12] == b"1",
        station=_digits(raw[12:14], Text.of("station")),
        spindle=_digits(raw[14:16], Text.of("spindle")),
        sequence=_digits(raw[16:18], Text.of("sequence number")),
        parts=_digits(raw[18:19], Text.of("number of parts")),
        part=_digits(raw[19:20], Text.of("part number")),
        data=raw[HEADER_BYTES:],
    )


def _digits(raw: bytes, what: Text) -> int:
    text = raw.strip(b" \0")
    if not text:
        return 0
    if not text.isdigit():
        raise Refused(
            "unreadable", Text.of("the {what} of a frame is not a number: {raw}", what=what, raw=repr(raw[:8]))
        )
    return int(text)


def _blank(number: int, width: int) -> str:
    return f"{number:0{width}d}" if number else " " * width

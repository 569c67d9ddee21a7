"""Lines from a reader of codes, over TCP or a serial port: framed, bounded, watched for silence."""

import asyncio
import os
import termios
import tty
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import TypeVar

from edge.foundation.errors import Refused, SettingsError, Unavailable
from edge.foundation.text import Text
from edge.links.connection_fault import ConnectionFailed
from edge.links.tcp import open_tcp
from edge.model.equipment_connection import ConnectionFault

LINE_BYTES = 1024
"""The longest line; a longer one is refused as a whole."""

LineStream = AsyncIterator[bytes | Refused]
"""The lines of a reader; Refused for a line that is too long or never ends, an empty line for bytes that end no line.

Raises Unavailable with the reason of its end.
"""

UNENDED_SECONDS = 2.0
"""The seconds without a byte after which a line that has not ended is refused."""

_READ_BYTES = 4096
_T = TypeVar("_T")
_LINE_ENDS = b"\r\n\0"
_STX, _ETX = b"\x02", b"\x03"
_BAUD = {rate: getattr(termios, f"B{rate}") for rate in (1200, 2400, 4800, 9600, 19200, 38400, 57600, 115200)}
BAUD_RATES = tuple(_BAUD)
"""The rates of a serial port, in bit/s."""


class ReaderSilent(ConnectionFailed):
    """A reader that has sent nothing for longer than allowed."""


class LineFramer:
    """Cuts a stream of bytes into lines.

    A line ends with CR, LF, NUL or several of them; with `framed`, it stands between STX and ETX, and bytes outside
    are ignored. One that has not ended is refused after a pause, or ends by it where `gap_s` is not 0.
    """

    def __init__(self, *, framed: bool, gap_s: float = 0.0) -> None:
        self._framed = framed
        self._gap_s = gap_s
        self._buffer = b""
        self._is_skipping = False

    def feed(self, received: bytes) -> Iterator[bytes | Refused]:
        """Yield each complete line that is not empty; Refused stands for one that is too long."""
        for byte in received:
            character = bytes((byte,))
            if self._framed and character == _STX:
                self._buffer, self._is_skipping = _STX, False
            elif self._ends(character):
                yield from self._line()
            elif self._framed and not self._buffer:
                continue
            elif len(self._buffer) >= LINE_BYTES:
                self._buffer, self._is_skipping = b"", True
                yield Refused("too_large", Text.of("a line has more than {line_bytes} bytes", line_bytes=LINE_BYTES))
            elif not self._is_skipping:
                self._buffer += character

    def lines(self, received: bytes) -> Iterator[bytes | Refused]:
        """Yield as `feed`, and an empty line when no line has ended."""
        has_line = False
        for line in self.feed(received):
            has_line = True
            yield line
        if not has_line:
            yield b""

    @property
    def pause_s(self) -> float | None:
        """The seconds without a byte until `end` is due; None while no line has begun."""
        return (self._gap_s or UNENDED_SECONDS) if self._buffer or self._is_skipping else None

    def end(self) -> Iterator[bytes | Refused]:
        """Yield the line that has begun as a code, or as Refused; the next byte begins another one."""
        for line in self._line():
            if self._gap_s:
                yield line
            else:
                what = "ETX" if self._framed else Text.of("line end")
                advice = "Let the reader send CR and LF after each code, or set gap."
                yield Refused(
                    "unreadable",
                    Text.of(
                        "no {what} within {unended_seconds:g} s after {line}",
                        what=what,
                        unended_seconds=UNENDED_SECONDS,
                        line=repr(line[:40]),
                    ),
                    advice,
                )

    def _ends(self, byte: bytes) -> bool:
        return byte == _ETX if self._framed else byte in _LINE_ENDS

    def _line(self) -> Iterator[bytes]:
        # Only blanks: a separator of GS1 (0x1D) is a part of the code.
        line, self._buffer, self._is_skipping = self._buffer.lstrip(_STX).strip(), b"", False
        if line:
            yield line


@asynccontextmanager
async def open_tcp_lines(
    host: str,
    port: int,
    *,
    framed: bool,
    gap_s: float = 0.0,
    keepalive_s: int = 0,
    silence_s: float = 0.0,
    connect_s: float = 5.0,
) -> AsyncIterator[LineStream]:
    """Connect to a reader that is a TCP server; yield its lines, which end with the connection. Raises Unavailable.

    `gap_s` is that of LineFramer. The connection is lost when the reader answers no probe for `keepalive_s` seconds, or
    sends nothing for `silence_s` seconds; 0 disables each.
    """
    async with open_tcp(host, port, connect_s, keepalive_s) as (reader, _):
        yield _lines_of(reader, f"{host}:{port}", LineFramer(framed=framed, gap_s=gap_s), silence_s)


async def _lines_of(reader: asyncio.StreamReader, place: str, framer: LineFramer, silence_s: float) -> LineStream:
    while True:
        try:
            received = await _next(lambda: reader.read(_READ_BYTES), framer, place, silence_s)
        except OSError as error:
            raise Unavailable(
                Text.of("the connection to {place} is lost: {reason}", place=place, reason=error.strerror or error)
            ) from error
        if received == b"":
            return
        for line in framer.end() if received is None else framer.lines(received):
            yield line


async def _next(wait: Callable[[], Awaitable[_T]], framer: LineFramer, place: str, silence_s: float) -> _T | None:
    """Return what is awaited; None when a line that has begun is not continued in time."""
    pause = asyncio.timeout(framer.pause_s)
    try:
        async with _audible(place, silence_s), pause:
            return await wait()
    except TimeoutError:
        if not pause.expired():
            raise
        return None


@asynccontextmanager
async def _audible(place: str, silence_s: float) -> AsyncIterator[None]:
    """Raise Unavailable when the block takes longer than `silence_s` seconds; 0 means no limit."""
    limit = asyncio.timeout(silence_s or None)
    try:
        async with limit:
            yield
    except TimeoutError as error:
        # Of the operating system, when the probes of a connection are not answered.
        if not limit.expired():
            raise
        raise ReaderSilent(
            ConnectionFault.SILENT,
            Text.of("{place} has sent nothing for {silence_s:g} s", place=place, silence_s=silence_s),
        ) from error


@asynccontextmanager
async def open_serial_lines(
    path: str, baud: int, *, framed: bool, gap_s: float = 0.0, silence_s: float = 0.0
) -> AsyncIterator[LineStream]:
    """Open a serial port (8 data bits, no parity, 1 stop bit); yield its lines, which end when the port is gone.

    The port is opened again when no byte comes for `silence_s` seconds; 0 disables this. Raises Unavailable when
    there is no such port, SettingsError when it is not a serial port or may not be opened.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK)
    except PermissionError as error:
        advice = "Add the user of the service to the group of the port (dialout)."
        raise SettingsError([Text.of("{path}: this user may not open it", path=path)], advice) from error
    except OSError as error:
        raise Unavailable(Text.of("cannot open {path}: {reason}", path=path, reason=error.strerror)) from error
    try:
        _set_raw(descriptor, path, baud)
        yield _lines_at(descriptor, path, LineFramer(framed=framed, gap_s=gap_s), silence_s)
    finally:
        os.close(descriptor)


def _set_raw(descriptor: int, path: str, baud: int) -> None:
    try:
        tty.setraw(descriptor)
        attributes = termios.tcgetattr(descriptor)
        attributes[2] |= termios.CLOCAL | termios.CREAD
        attributes[4] = attributes[5] = _BAUD[baud]
        termios.tcsetattr(descriptor, termios.TCSANOW, attributes)
    except termios.error as error:
        raise SettingsError(
            [Text.of("{path}: no serial port", path=path)], "Name a port such as /dev/ttyUSB0."
        ) from error


async def _lines_at(descriptor: int, path: str, framer: LineFramer, silence_s: float) -> LineStream:
    loop, readable = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(descriptor, readable.set)
    try:
        while True:
            if not await _next(readable.wait, framer, path, silence_s):
                for line in framer.end():
                    yield line
                continue
            readable.clear()
            try:
                received = os.read(descriptor, _READ_BYTES)
            except BlockingIOError:
                continue
            except OSError as error:
                raise Unavailable(Text.of("{path} is lost: {reason}", path=path, reason=error.strerror)) from error
            if not received:
                return
            for line in framer.lines(received):
                yield line
    finally:
        loop.remove_reader(descriptor)

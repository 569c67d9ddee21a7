"""Lines from a reader of codes, over TCP or a serial port: framed, bounded, decoded."""

import asyncio
import os
import termios
import tty
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress

from edge.errors import Refused, SettingsError, Unavailable

LINE_BYTES = 1024
"""The longest line; a longer one is refused as a whole."""

_READ_BYTES = 4096
_LINE_ENDS = b"\r\n\0"
_STX, _ETX = b"\x02", b"\x03"
_BAUD = {rate: getattr(termios, f"B{rate}") for rate in (1200, 2400, 4800, 9600, 19200, 38400, 57600, 115200)}
BAUD_RATES = tuple(_BAUD)
"""The rates of a serial port, in bit/s."""


class LineFramer:
    """Cuts a stream of bytes into lines.

    A line ends with CR, LF, NUL or several of them; with `framed`, it stands between STX and ETX, and bytes outside
    are ignored.
    """

    def __init__(self, *, framed: bool) -> None:
        self._framed = framed
        self._buffer = b""
        self._is_skipping = False

    def feed(self, received: bytes) -> Iterator[str | Refused]:
        """Yield each complete line that is not empty; Refused stands for one that is too long."""
        for byte in received:
            each = bytes((byte,))
            if self._framed and each == _STX:
                self._buffer, self._is_skipping = _STX, False
            elif self._ends(each):
                yield from self._line()
            elif self._framed and not self._buffer:
                continue
            elif len(self._buffer) >= LINE_BYTES:
                self._buffer, self._is_skipping = b"", True
                yield Refused("too_large", f"a line has more than {LINE_BYTES} bytes")
            elif not self._is_skipping:
                self._buffer += each

    def _ends(self, byte: bytes) -> bool:
        return byte == _ETX if self._framed else byte in _LINE_ENDS

    def _line(self) -> Iterator[str]:
        line, self._buffer, self._is_skipping = self._buffer.lstrip(_STX), b"", False
        text = line.decode("utf-8", errors="replace").strip()
        if text:
            yield text


@asynccontextmanager
async def open_tcp_lines(
    host: str, port: int, *, framed: bool, connect_s: float = 5.0
) -> AsyncIterator[AsyncIterator[str | Refused]]:
    """Connect to a reader that is a TCP server; yield its lines, which end with the connection. Raises Unavailable."""
    try:
        async with asyncio.timeout(connect_s):
            reader, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError) as error:
        raise Unavailable(f"cannot connect to {host}:{port}: {str(error) or 'no answer'}") from error
    try:
        yield _lines_of(reader, framed=framed)
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


async def _lines_of(reader: asyncio.StreamReader, *, framed: bool) -> AsyncIterator[str | Refused]:
    framer = LineFramer(framed=framed)
    with suppress(OSError):
        while received := await reader.read(_READ_BYTES):
            for line in framer.feed(received):
                yield line


@asynccontextmanager
async def open_serial_lines(path: str, baud: int, *, framed: bool) -> AsyncIterator[AsyncIterator[str | Refused]]:
    """Open a serial port (8 data bits, no parity, 1 stop bit); yield its lines, which end when the port is gone.

    Raises Unavailable when there is no such port, SettingsError when it is no serial port or may not be opened.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK)
    except PermissionError as error:
        advice = "Add the user of the service to the group of the port (dialout)."
        raise SettingsError([f"{path}: this user may not open it"], advice) from error
    except OSError as error:
        raise Unavailable(f"cannot open {path}: {error.strerror}") from error
    try:
        _set_raw(descriptor, path, baud)
        yield _lines_at(descriptor, framed=framed)
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
        raise SettingsError([f"{path}: no serial port"], "Name a port such as /dev/ttyUSB0.") from error


async def _lines_at(descriptor: int, *, framed: bool) -> AsyncIterator[str | Refused]:
    framer, loop, readable = LineFramer(framed=framed), asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(descriptor, readable.set)
    try:
        while True:
            await readable.wait()
            readable.clear()
            try:
                received = os.read(descriptor, _READ_BYTES)
            except BlockingIOError:
                continue
            except OSError:
                return
            if not received:
                return
            for line in framer.feed(received):
                yield line
    finally:
        loop.remove_reader(descriptor)

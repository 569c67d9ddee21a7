"""Lines of readers: framing of any stream, a real TCP socket, and a pseudo terminal in the place of a serial port."""

import asyncio
import os
import pty
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.features.readers.line_stream import LINE_BYTES, UNENDED_SECONDS, LineFramer, open_serial_lines, open_tcp_lines
from edge.foundation.errors import Refused, SettingsError, Unavailable

_texts = st.lists(st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=50), max_size=5)


def framed(raw: bytes, *, stx: bool = False) -> list[str]:
    lines = list(LineFramer(framed=stx).feed(raw))
    return [f"refused: {line.kind}" if isinstance(line, Refused) else line.decode("latin-1") for line in lines]


@given(_texts, st.sampled_from([b"\r", b"\n", b"\r\n", b"\0"]), st.integers(1, 20))
def test_lines_are_split_at_every_line_end(texts: list[str], end: bytes, size: int) -> None:
    raw = b"".join(text.encode() + end for text in texts)
    framer = LineFramer(framed=False)
    pieces = [raw[at : at + size] for at in range(0, len(raw), size)]
    assert [line for piece in pieces for line in framer.feed(piece)] == [text.encode() for text in texts]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"\x02A1\x03\x02B2\x03", ["A1", "B2"]),
        (b"noise\x02A1\x03\r\n", ["A1"]),
        (b"\x02A\r\n1\x03", ["A\r\n1"]),
        (b"\x02A1\x02B2\x03", ["B2"]),
        (b"\x02\x03", []),
    ],
)
def test_code_is_read_between_stx_and_etx(raw: bytes, expected: list[str]) -> None:
    assert framed(raw, stx=True) == expected


@pytest.mark.parametrize("stx", [False, True])
def test_line_that_is_too_long_is_refused_and_the_next_is_read(*, stx: bool) -> None:
    long, short = b"x" * (3 * LINE_BYTES), b"A1"
    raw = b"\x02" + long + b"\x03\x02" + short + b"\x03" if stx else long + b"\r\n" + short + b"\r\n"
    assert framed(raw, stx=stx) == ["refused: too_large", "A1"]


@pytest.mark.parametrize("stx", [False, True])
def test_line_without_an_end_is_refused_and_not_joined_with_the_next(*, stx: bool) -> None:
    framer, begin, end = LineFramer(framed=stx), b"\x02" if stx else b"", b"\x03" if stx else b"\r\n"
    assert framer.pause_s is None
    assert list(framer.feed(begin + b"A1")) == []
    assert framer.pause_s == UNENDED_SECONDS
    (refused,) = framer.end()
    assert isinstance(refused, Refused)
    assert "after b'A1'" in refused.message
    assert (framer.pause_s, list(framer.feed(begin + b"B2" + end))) == (None, [b"B2"])


def test_flood_without_a_line_end_is_refused_once_and_ends_by_a_pause() -> None:
    framer = LineFramer(framed=False)
    assert [data.kind for data in framer.feed(b"x" * (9 * LINE_BYTES)) if isinstance(data, Refused)] == ["too_large"]
    assert framer.pause_s == UNENDED_SECONDS
    assert list(framer.end()) == []
    assert list(framer.feed(b"B2\n")) == [b"B2"]


async def test_pause_of_a_reader_without_line_ends_ends_a_code() -> None:
    queue: asyncio.Queue[bytes] = asyncio.Queue()

    async def scan(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while code := await queue.get():
            writer.write(code)
        writer.close()

    async with await asyncio.start_server(scan, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with open_tcp_lines("127.0.0.1", port, framed=False, gap_s=0.1) as lines:
            for code in (b"A1", b"B2"):
                queue.put_nowait(code)
                assert [await anext(lines), await anext(lines)] == [b"", code]
            queue.put_nowait(b"")
            assert [line async for line in lines] == []


def test_bytes_of_a_line_stay_as_they_came() -> None:
    assert framed(b" \xff\xfeA1 \n") == ["\xff\xfeA1"]


def test_separators_of_gs1_at_both_ends_are_a_part_of_the_line() -> None:
    assert framed(b"\x1d10AB\x1d21C\x1d\r\n") == ["\x1d10AB\x1d21C\x1d"]


async def test_lines_of_a_tcp_reader_end_with_its_connection() -> None:
    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"A1\r\nB")
        await writer.drain()
        writer.write(b"2\r\n")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with open_tcp_lines("127.0.0.1", port, framed=False) as lines:
            assert [line async for line in lines] == [b"A1", b"B2"]
    with pytest.raises(Unavailable, match="cannot connect"):
        async with open_tcp_lines("127.0.0.1", port, framed=False):
            pass


async def test_reader_that_is_silent_for_too_long_is_lost() -> None:
    async with (
        silent_reader(b"A1\r\n") as port,
        open_tcp_lines("127.0.0.1", port, framed=False, silence_s=0.2) as lines,
    ):
        assert await anext(lines) == b"A1"
        with pytest.raises(Unavailable, match=r"has sent nothing for 0\.2 s"):
            await anext(lines)


@asynccontextmanager
async def silent_reader(first: bytes = b"") -> AsyncIterator[int]:
    """Serve as a reader that sends some bytes and is silent then; yield its port."""
    served: list[asyncio.StreamWriter] = []

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(first)
        served.append(writer)

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]
        for writer in served:
            writer.close()


async def test_lines_of_a_serial_port_end_when_it_is_gone() -> None:
    ours, port = pty.openpty()
    try:
        async with open_serial_lines(os.ttyname(port), 115_200, framed=False) as lines:
            os.write(ours, b"A1\r")
            assert await anext(lines) == b"A1"
            os.close(port)
            os.write(ours, b"B2\r")
            assert await anext(lines) == b"B2"
            os.close(ours)
            assert [line async for line in lines] == []
    finally:
        for descriptor in (ours, port):
            try:
                os.close(descriptor)
            except OSError:
                continue


async def test_missing_or_invalid_port_is_reported(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="cannot open"):
        async with open_serial_lines(str(tmp_path / "ttyUSB9"), 9600, framed=False):
            pass
    (tmp_path / "file").touch()
    with pytest.raises(SettingsError, match="no serial port"):
        async with open_serial_lines(str(tmp_path / "file"), 9600, framed=False):
            pass

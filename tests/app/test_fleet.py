"""A signed command runs in a process of its own, which cannot exhaust the gateway."""

import asyncio

from edge.app.fleet import _MOST_OUTPUT_BYTES, _head_of


async def test_long_output_is_read_to_its_end_and_cut() -> None:
    stream = asyncio.StreamReader()
    stream.feed_data(b"a" * _MOST_OUTPUT_BYTES + b"b" * 10_000_000)
    stream.feed_eof()
    assert await _head_of(stream) == b"a" * _MOST_OUTPUT_BYTES
    assert stream.at_eof()

"""Draws a curve of a stored trace."""

import zlib
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from edge.drawing.plot import PlotPoint, plot_svg
from edge.foundation.errors import Refused
from edge.foundation.text import Text
from edge.ports.result_trace import ResultTrace, TraceChannel

_LARGEST_CHANNEL: Final = 6
_MOST_TRACE_BYTES: Final = 64 * 1024 * 1024
_MOST_PLOTTED: Final = 1500


def drawn(content: bytes, channel: str) -> str:
    """Return a curve of a trace as SVG; the first channel is `0`. Raises Refused for one that it has not."""
    is_number = channel.isascii() and channel.isdecimal() and len(channel) <= _LARGEST_CHANNEL
    number = int(channel) if is_number else -1
    channels = _channels(content)
    if not 0 <= number < len(channels):
        raise Refused(
            "unknown_trace",
            Text.of("the trace has no curve {number}.", number=number),
            Text.of("It has {count}.", count=len(channels)),
        )
    curve = channels[number]
    title = " ".join(filter(None, (curve.step, curve.name, f"[{curve.unit}]" if curve.unit else "")))
    interval, offset = curve.interval_ms or 1.0, curve.offset_ms or 0.0
    points = [PlotPoint(offset + at * interval, value) for at, value in thinned(curve.values, _MOST_PLOTTED)]
    return plot_svg(title, points)


def _channels(content: bytes) -> tuple[TraceChannel, ...]:
    try:
        # A file that another program wrote must not take the memory of the gateway.
        unpacked = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(content, _MOST_TRACE_BYTES)
        return msgspec.json.decode(unpacked, type=ResultTrace).channels
    except (zlib.error, msgspec.DecodeError) as error:
        raise Refused(
            "unreadable", Text.of("the trace cannot be read: {reason}.", reason=error), "Take another copy."
        ) from None


def thinned(values: Sequence[float], most: int) -> Iterable[tuple[int, float]]:
    """Return values with their numbers, at most `most`: of each section its least and its greatest."""
    if len(values) <= most:
        return list(enumerate(values))
    size = -(-len(values) * 2 // most)
    kept: list[tuple[int, float]] = []
    for start in range(0, len(values), size):
        section = range(start, min(start + size, len(values)))
        ends = {min(section, key=values.__getitem__), max(section, key=values.__getitem__)}
        kept += [(at, values[at]) for at in sorted(ends)]
    return kept

"""Draws a line of points over time as SVG, with limits: the trend of a tag, or a control chart."""

from collections.abc import Callable, Sequence
from html import escape
from typing import Final

from msgspec import Struct

_WIDTH: Final = 800
_HEIGHT: Final = 260
_LEFT: Final = 76
_RIGHT: Final = 76
_TOP: Final = 14
_BOTTOM: Final = 30
_MOST_DOTS: Final = 60
_STYLE: Final = (
    "text{font:12px system-ui,'DejaVu Sans',sans-serif;fill:#4b5563}.line{fill:none;stroke:#1d4ed8;stroke-width:2}"
    ".dot{fill:#1d4ed8}.grid{stroke:#d1d5db}.limit{stroke:#991b1b;stroke-dasharray:6 4}.limit-text{fill:#991b1b}"
    ".centre{stroke:#4b5563;stroke-dasharray:2 4}.dot.out{fill:#dc2626}"
    # Letters have 12 pixels and more, however wide the picture is shown: 800 units are its width.
    "@media(max-width:799px){text{font-size:16px}}@media(max-width:599px){text{font-size:20px}}"
    "@media(max-width:479px){text{font-size:26px}}@media(max-width:369px){text{font-size:34px}}"
    # Small pictures have no room next to the plot: the figures and names stand on their lines.
    "@media(max-width:599px){.figure{text-anchor:start;transform:translate(12px,-8px)}"
    ".limit-text,.centre-text{text-anchor:end;transform:translate(-12px,-12px)}}"
    "@media(prefers-color-scheme:dark){text{fill:#b6c0d0}.line{stroke:#60a5fa}.dot{fill:#60a5fa}.grid{stroke:#334155}"
    ".limit{stroke:#fca5a5}.limit-text{fill:#fca5a5}"
    ".centre{stroke:#b6c0d0}.dot.out{fill:#f87171}}"
)


class PlotPoint(Struct, frozen=True):
    """A value; `at` is an instant in milliseconds, or the number of a point."""

    at: float
    value: float


class PlotLimit(Struct, frozen=True):
    """A horizontal line with its name; points beyond the outermost ones of `is_bound` are marked."""

    name: str
    value: float
    is_bound: bool = True


def plot_svg(
    title: str,
    points: Sequence[PlotPoint],
    limits: Sequence[PlotLimit] = (),
    text_at: Callable[[float], str] = "{:g}".format,
) -> str:
    """Return the picture; without points only its frame. `text_at` returns what stands below the first and last one."""
    values = [point.value for point in points] + [limit.value for limit in limits]
    lowest, highest = min(values, default=0.0), max(values, default=1.0)
    margin = (highest - lowest) * 0.08 or abs(highest) * 0.05 or 1.0
    bottom, top = lowest - margin, highest + margin
    first, last = (points[0].at, points[-1].at) if points else (0.0, 1.0)

    def x(at: float) -> float:
        return round(_LEFT + (at - first) / ((last - first) or 1.0) * (_WIDTH - _LEFT - _RIGHT), 1)

    def y(value: float) -> float:
        return round(_HEIGHT - _BOTTOM - (value - bottom) / (top - bottom) * (_HEIGHT - _TOP - _BOTTOM), 1)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style>",
    ]
    for value in (lowest, (lowest + highest) / 2, highest):
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y(value)}" y2="{y(value)}"/>')
        parts.append(f'<text class="figure" x="{_LEFT - 8}" y="{y(value) + 4}" text-anchor="end">{value:.5g}</text>')
    for limit in limits:
        at = y(limit.value)
        kind = "limit" if limit.is_bound else "centre"
        parts.append(f'<line class="{kind}" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{at}" y2="{at}"/>')
        parts.append(f'<text class="{kind}-text" x="{_WIDTH - _RIGHT + 6}" y="{at + 4}">{escape(limit.name)}</text>')
    path = " ".join(f"{x(point.at)},{y(point.value)}" for point in points)
    parts.append(f'<polyline class="line" points="{path}"/>')
    if len(points) <= _MOST_DOTS:
        bounds = [limit.value for limit in limits if limit.is_bound]
        for point in points:
            is_out = bounds and not min(bounds) <= point.value <= max(bounds)
            look = 'class="dot out" r="6"' if is_out else 'class="dot" r="3"'
            parts.append(f'<circle {look} cx="{x(point.at)}" cy="{y(point.value)}"/>')
    ends = ((first, "start"), (last, "end")) if last > first else ((first, "start"),)
    for at, anchor in ends if points else ():
        parts.append(f'<text x="{x(at)}" y="{_HEIGHT - 8}" text-anchor="{anchor}">{text_at(at)}</text>')
    return "".join((*parts, "</svg>"))

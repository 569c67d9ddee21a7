"""Draws an analysis as SVG: a Pareto chart of reasons, and a box plot of the times of steps."""

from collections.abc import Sequence
from html import escape
from typing import Final

from edge.features.archive.analysis import ReasonCount, StepQuantiles

_WIDTH: Final = 360
"""The pictures are shown 270 to 420 pixels wide: letters of 16 have 12 pixels and more."""
_ROW: Final = 52
_BAR: Final = 24
"""From the top of a row, below its name."""
_RIGHT: Final = 96
_EDGE: Final = 2
_CAPTION: Final = 30
_LONGEST: Final = 40
_STYLE: Final = (
    "text{font:16px system-ui,'DejaVu Sans',sans-serif;fill:#374151}.bar{fill:#b91c1c}.share{fill:#4b5563}"
    ".box{fill:#bfdbfe;stroke:#1d4ed8}.median{stroke:#1d4ed8;stroke-width:3}.whisker{stroke:#4b5563}"
    "@media(prefers-color-scheme:dark){text{fill:#d1d5db}.bar{fill:#f87171}.share{fill:#b6c0d0}"
    ".box{fill:#1e3a8a;stroke:#60a5fa}.median{stroke:#93c5fd}.whisker{stroke:#b6c0d0}}"
)


def pareto_svg(title: str, reasons: Sequence[ReasonCount], empty: str) -> str:
    """Return a bar for each reason, with its jobs and the share of those up to it; a text without any."""
    most = max((reason.jobs for reason in reasons), default=1)
    parts = []
    for row, reason in enumerate(reasons):
        width = round(reason.jobs / most * (_WIDTH - _RIGHT), 1)
        text = f"{reason.jobs} · {reason.share:.0%}"
        parts.append(
            f'<rect class="bar" x="0" y="{row * _ROW + _BAR}" width="{width}" height="20" rx="2"/>'
            f'<text class="share" x="{width + 6}" y="{row * _ROW + _BAR + 16}">{text}</text>'
        )
    return _svg(title, [reason.reason for reason in reasons], parts or _text(empty))


def steps_svg(title: str, steps: Sequence[StepQuantiles], work_master: str, empty: str) -> str:
    """Return a box for each step of a Work Master: the middle half with the median, and lines to 5 and 95 %.

    Times are in seconds. Without steps it is a text.
    """
    longest = max((step.p95 for step in steps), default=1) or 1

    def x(ms: int) -> float:
        return round(_EDGE + ms / longest * (_WIDTH - _EDGE - _RIGHT), 1)

    parts = []
    for row, step in enumerate(steps):
        top, middle = row * _ROW + _BAR, row * _ROW + _BAR + 10
        box = f'x="{x(step.p25)}" width="{max(1.0, round(x(step.p75) - x(step.p25), 1))}"'
        parts.append(
            f'<line class="whisker" x1="{x(step.p5)}" x2="{x(step.p95)}" y1="{middle}" y2="{middle}"/>'
            f'<rect class="box" {box} y="{top}" height="20" rx="2"/>'
            f'<line class="median" x1="{x(step.p50)}" x2="{x(step.p50)}" y1="{top}" y2="{top + 20}"/>'
            f'<text class="share" x="{x(step.p95) + 8}" y="{middle + 5}">{step.p50 / 1000:.1f} s</text>'
        )
    return _svg(title, [step.title for step in steps], parts or _text(empty), work_master)


def _text(empty: str) -> list[str]:
    return [f'<text class="share" x="0" y="23">{escape(empty)}</text>']


def _svg(title: str, names: Sequence[str], parts: Sequence[str], caption: str = "") -> str:
    """Return a picture with a name for each row, and a caption below them."""
    height = max(1, len(names)) * _ROW + (_CAPTION if caption else 8)
    texts = (f'<text x="0" y="{row * _ROW + 17}">{escape(_shortened(name))}</text>' for row, name in enumerate(names))
    below = f'<text x="0" y="{height - 10}">{escape(caption)}</text>' if caption else ""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">'
    return "".join((head, f"<title>{escape(title)}</title><style>{_STYLE}</style>", *texts, *parts, below, "</svg>"))


def _shortened(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"

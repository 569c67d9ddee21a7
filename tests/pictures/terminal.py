"""Draw lines of text as a terminal, without any font or style from elsewhere."""

from collections.abc import Sequence
from xml.sax.saxutils import escape

_COLUMN, _ROW, _EDGE = 7.9, 18, 16


def terminal_svg(lines: Sequence[str]) -> str:
    """Return the lines as SVG; those that open with `$` are commands."""
    width = round(max(map(len, lines)) * _COLUMN + 2 * _EDGE)
    height = len(lines) * _ROW + 2 * _EDGE
    rows = "\n".join(
        f'<text class="{"command" if line.startswith("$") else "output"}" x="{_EDGE}" y="{_EDGE + 13 + row * _ROW}">'
        f"{escape(line)}</text>"
        for row, line in enumerate(lines)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}">\n<title>{escape(lines[0])}</title>\n<style>\n'
        'text { font: 13px ui-monospace, "DejaVu Sans Mono", Consolas, monospace; fill: #e5e7eb; white-space: pre }\n'
        "text.command { fill: #86efac; font-weight: bold }\n</style>\n"
        f'<rect width="{width}" height="{height}" rx="8" fill="#111827"/>\n{rows}\n</svg>\n'
    )

"""Draws the timeline of a run as an SVG picture: a row for each step and each of its actions, over time."""

import math
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from html import escape
from typing import Final, TypeAlias

from edge.drawing.marks import SYMBOLS, duration
from edge.drawing.shapes import clean, columns, wrap
from edge.foundation.text import ENGLISH, Text
from edge.sfc.net import Net
from edge.sfc.replay import ActionSpan, StepSpan, Timeline
from edge.sfc.titles import action_title, step_title

_MARGIN: Final = 16
_ROW: Final = 24
_INDENT: Final = 14
_BAR: Final = 16
_PLOT: Final = 820
_HEAD: Final = 84
_LETTER: Final = 7.3
_LONGEST_LABEL: Final = 34
_LEAST_BAR: Final = 2.0
_TICKS: Final = 8
_SECOND: Final = 1000
_STEPS_OF_TICKS: Final = (1, 2, 5, 10)

_STYLE: Final = """
text { font: 12px ui-monospace, "DejaVu Sans Mono", Consolas, monospace; fill: #111827; white-space: pre }
text.title { font-size: 14px; font-weight: bold }
text.step { font-weight: bold }
text.tick, text.note { font-size: 12px; fill: #4b5563 }
line { stroke: #e5e7eb }
line.row { stroke: #d1d5db }
rect.page { fill: #fff }
rect.step { fill: #fef3c7; stroke: #b45309 }
rect.dispatched, rect.waiting { fill: #dbeafe; stroke: #1d4ed8 }
rect.completed { fill: #dcfce7; stroke: #15803d }
rect.failed, rect.timed_out { fill: #fee2e2; stroke: #b91c1c }
rect.stopped { fill: #ede9fe; stroke: #6d28d9 }
rect.unknown { fill: #ffedd5; stroke: #c2410c; stroke-dasharray: 4 2 }
line.person { stroke: #a21caf; stroke-width: 2 }
rect.pause { fill: #9ca3af; fill-opacity: 0.25 }
"""


def gantt_svg(title: str, net: Net, spans: Timeline, until: int) -> str:
    """Return an SVG document; what is still active is drawn up to `until`, in milliseconds since the Unix epoch."""
    return "".join(_Gantt(title, spans, until, ENGLISH, _rows(net, spans, None)).lines())


def gantt_lines(title: str, net: Net, spans: Timeline, until: int, language: str = ENGLISH) -> Iterator[str]:
    """Yield the lines of the document in a language, for a caller that has other work to do between them.

    Steps and actions have their titles, for a person at a page.
    """
    return _Gantt(title, spans, until, language, _rows(net, spans, language)).lines()


_Row: TypeAlias = tuple[str, list[StepSpan | ActionSpan]]


class _Gantt:
    """One picture: its rows, its scale, and the width of its labels."""

    def __init__(self, title: str, spans: Timeline, until: int, language: str, rows: Iterable[_Row]) -> None:
        self._language = language
        self._title = clean(title)
        self._spans = spans
        self._rows = list(rows)
        ends = [step.end for step in spans.steps] + [action.end for action in spans.actions]
        self._begin = spans.begin
        self._end = max(spans.end, until if None in ends else spans.end, spans.begin + 1)
        longest = max((columns(label) for label, _ in self._rows), default=0)
        self._left = _MARGIN + _INDENT + min(longest, _LONGEST_LABEL) * _LETTER + 12

    def lines(self) -> Iterator[str]:
        """Yield the lines of the document."""
        return (f"{line}\n" for line in self.document())

    def document(self) -> Iterator[str]:
        """Yield the lines of the picture."""
        width = round(self._left + _PLOT + _MARGIN + 60)
        height = _HEAD + len(self._rows) * _ROW + 2 * _MARGIN
        size = f'width="{width}" height="{height}"'
        began = datetime.fromtimestamp(self._begin / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        note = Text.of("from {began}, {duration}", began=began, duration=_length(self._end - self._begin))
        yield f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size} viewBox="0 0 {width} {height}">'
        yield f"<title>{escape(self._title)}</title>"
        yield f"<style>{_STYLE}</style>"
        yield f'<rect class="page" {size}/>'
        yield _text("title", _MARGIN, _MARGIN + 12, self._title)
        yield _text("note", _MARGIN, _MARGIN + 32, note.in_language(self._language))
        yield from self._axis(height - _MARGIN)
        yield from self._pauses(height - _MARGIN)
        for number, (label, bars) in enumerate(self._rows):
            y = _HEAD + number * _ROW
            text = wrap(label, _LONGEST_LABEL, 1)[0]
            is_step = isinstance(bars[0], StepSpan)
            kind, x = ("step", _MARGIN) if is_step else ("action", _MARGIN + _INDENT)
            yield _text(kind, x, y + 13, text)
            yield from (self._bar(bar, y) for bar in bars)
            yield self._note(bars[-1], y)
        yield from self._interventions(height - _MARGIN)
        yield "</svg>"

    def _x(self, at: int) -> float:
        return self._left + (at - self._begin) / (self._end - self._begin) * _PLOT

    def _axis(self, bottom: int) -> Iterator[str]:
        for offset in _tick_offsets(self._end - self._begin):
            x = self._x(self._begin + offset)
            yield f'<line x1="{x:.1f}" y1="{_HEAD - 6}" x2="{x:.1f}" y2="{bottom}"/>'
            yield f'<text class="tick" x="{x:.1f}" y="{_HEAD - 10}" text-anchor="middle">{_tick_text(offset)}</text>'

    def _pauses(self, bottom: int) -> Iterator[str]:
        tip = escape(Text.of("paused").in_language(self._language))
        for pause in self._spans.pauses:
            x, end = self._x(pause.begin), self._x(self._end if pause.end is None else pause.end)
            width = max(_LEAST_BAR, end - x)
            place = f'x="{x:.1f}" y="{_HEAD - 4}" width="{width:.1f}" height="{bottom - _HEAD + 4}"'
            yield f'<rect class="pause" {place}><title>{tip}</title></rect>'

    def _interventions(self, bottom: int) -> Iterator[str]:
        for intervention in self._spans.interventions:
            x = self._x(intervention.at)
            place = f'x1="{x:.1f}" y1="{_HEAD - 4}" x2="{x:.1f}" y2="{bottom}"'
            tip = escape(clean(intervention.text.in_language(self._language)))
            yield f'<line class="person" {place}><title>{tip}</title></line>'

    def _bar(self, span: StepSpan | ActionSpan, y: int) -> str:
        end = self._end if span.end is None else span.end
        x, width = self._x(span.begin), max(_LEAST_BAR, self._x(end) - self._x(span.begin))
        place = f'x="{x:.1f}" y="{y}" width="{width:.1f}" height="{_BAR}" rx="2"'
        length = _length(end - span.begin)
        if isinstance(span, StepSpan):
            return f'<rect class="step" {place}><title>{escape(clean(span.step))}: {length}</title></rect>'
        state = span.state.text.in_language(self._language)
        tip = f"{escape(clean(span.action))}: {escape(state)}, {length}"
        return f'<rect class="{span.state.value}" {place}><title>{tip}</title></rect>'

    def _note(self, last: StepSpan | ActionSpan, y: int) -> str:
        """Return the text behind the last bar of a row: the symbol of an action, and the duration."""
        end = self._end if last.end is None else last.end
        symbol = f"{SYMBOLS[last.state]} " if isinstance(last, ActionSpan) else ""
        return _text("note", round(self._x(end) + 6, 1), y + 12, f"{symbol}{_length(end - last.begin)}")


def _rows(net: Net, spans: Timeline, language: str | None) -> Iterator[_Row]:
    """Yield a label with its bars for each step that was active, in the order of the recipe, and for its actions.

    Labels are the titles in a language; without a language they are the names.
    """
    bars: dict[tuple[str, ...], list[StepSpan | ActionSpan]] = {}
    for step_span in spans.steps:
        bars.setdefault((step_span.step,), []).append(step_span)
    for action_span in spans.actions:
        bars.setdefault((action_span.step, action_span.action), []).append(action_span)
    for name, step in net.steps.items():
        if active := bars.get((name,)):
            yield clean(name if language is None else step_title(net, name, (language,))), active
        for action in dict.fromkeys(net_action.name for net_action in step.actions):
            if attempts := bars.get((name, action)):
                yield clean(action if language is None else action_title(net, action, name, (language,))), attempts


def _tick_offsets(length: int) -> range:
    """Return about `_TICKS` round offsets over a length in milliseconds."""
    raw = max(1.0, length / _TICKS)
    power = 10 ** math.floor(math.log10(raw))
    interval = next(round(power * text) for text in _STEPS_OF_TICKS if power * text >= raw)
    return range(0, length + 1, interval)


def _length(milliseconds: int) -> str:
    return f"{milliseconds} ms" if milliseconds < _SECOND else duration(milliseconds)


def _tick_text(offset: int) -> str:
    return f"{offset / 1000:g} s"


def _text(kind: str, x: float, y: float, text: str) -> str:
    return f'<text class="{kind}" x="{x:g}" y="{y:g}">{escape(text)}</text>'

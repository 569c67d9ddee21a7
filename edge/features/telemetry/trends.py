"""Keeps the newest samples of the tags whose trend is shown, and reads control charts of rules."""

import asyncio
import math
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from edge.features.telemetry import rule_memory
from edge.features.telemetry.model.api_models import ControlChartView
from edge.features.telemetry.model.rule import ControlChartRule, Rule
from edge.features.telemetry.rule_memory import decode_state
from edge.features.telemetry.rules.control_chart import ControlChartState
from edge.features.telemetry.rules.subject import may_concern
from edge.model.user import Role
from edge.ports.sample_lines import Sample
from edge.ports.tag import TagDefinitions
from edge.store.client import Store

if TYPE_CHECKING:
    from edge.features.telemetry.history.writer import HistoryWriter

MOST_TAGS: Final = 50
MOST_POINTS: Final = 600
_LARGEST: Final = 1e300
"""Larger numbers, infinity included, have no place on an axis."""
_LIMIT: Final = 3.0
"""Control limits, in sigma."""

Points = tuple[tuple[int, float], ...]


class TrendMemory:
    """The newest samples of at most `most_tags` tags; the one that was looked at longest ago is forgotten first."""

    def __init__(self, most_tags: int = MOST_TAGS, most_points: int = MOST_POINTS) -> None:
        self._most_tags = most_tags
        self._most_points = most_points
        self._tags: OrderedDict[str, deque[tuple[int, float]]] = OrderedDict()

    def take(self, samples: Sequence[Sample]) -> None:
        """Keep the samples of the tags whose trend is shown."""
        if not self._tags:
            return
        for sample in samples:
            if (kept := self._tags.get(sample.tag)) is not None and (value := number_of(sample.value)) is not None:
                kept.append((sample.at, value))

    def points(self, tag: str) -> Points | None:
        """Return the points of a tag; None for one whose trend was not shown lately."""
        if (kept := self._tags.get(tag)) is None:
            return None
        self._tags.move_to_end(tag)
        return tuple(sorted(kept))

    def begin(self, tag: str, earlier: Sequence[tuple[int, float]]) -> None:
        """Keep the samples of a tag from now on, after earlier ones."""
        self._tags[tag] = deque(earlier, self._most_points)
        while len(self._tags) > self._most_tags:
            self._tags.popitem(last=False)


class Trends:
    """The trends and control charts of a gateway."""

    def __init__(
        self,
        store: Store,
        memory: TrendMemory,
        rules: Callable[[], Sequence[Rule]],
        definitions: TagDefinitions,
        history: "HistoryWriter | None",
        directory: Path,
    ) -> None:
        """Read earlier samples from the history in `directory` where one is written."""
        self._store = store
        self._memory = memory
        self._rules = rules
        self._definitions = definitions
        self._history = history
        self._directory = directory

    async def points(self, tag: str, last: Sample | None) -> Points:
        """Return the newest points of a tag; without history they begin with its last sample."""
        if (known := self._memory.points(tag)) is not None:
            if last is not None and (not known or last.at > known[-1][0]):
                # Another gateway processes the samples: this one has only those that it finds in the store.
                self._memory.take([last])
                return self._memory.points(tag) or known
            return known
        earlier = await asyncio.to_thread(self._read, tag) if self._history else []
        if not earlier and last is not None and (value := number_of(last.value)) is not None:
            earlier = [(last.at, value)]
        self._memory.begin(tag, earlier)
        return tuple(earlier)

    def _read(self, tag: str) -> list[tuple[int, float]]:
        # Imported only with history: its library is an extra of the package.
        from edge.features.telemetry.history.reader import END_OF_TIME, read_page  # noqa: PLC0415

        buffered = self._history.buffered(tag, 0, END_OF_TIME) if self._history else []
        try:
            page = read_page(self._directory, tag, 0, END_OF_TIME, MOST_POINTS, is_backward=True)
        except OSError:
            page = None
        samples = [*(reversed(page.samples) if page else ()), *buffered]
        found = [(item.at, value) for item in samples if (value := number_of(item.value)) is not None]
        return sorted(found)[-MOST_POINTS:]

    async def control_charts(self, role: Role) -> tuple[ControlChartView, ...]:
        """Return the control charts of all rules and subjects that have points, of tags that a role may read."""
        rules = {rule.id: rule for rule in self._rules() if isinstance(rule, ControlChartRule)}
        hidden = tuple(self._definitions.hidden_from(role))
        control_chart_views = []
        for (rule_id, subject), text in sorted((await rule_memory.load(self._store)).states.items()):
            rule = rules.get(rule_id)
            if rule is None or any(may_concern(rule, subject, tag) for tag in hidden):
                continue
            if (chart := _chart(rule, subject, text)) is not None:
                control_chart_views.append(chart)
        return tuple(control_chart_views)


def _chart(rule: ControlChartRule, subject: str, text: str) -> ControlChartView | None:
    try:
        state = decode_state(text, ())
    except (ValueError, msgspec.DecodeError):
        return None
    detector = state.detector
    if not isinstance(detector, ControlChartState):
        return None
    is_given = rule.mean is not None and rule.sigma is not None
    mean, sigma = (rule.mean, rule.sigma) if is_given else (detector.mean, detector.sigma)
    spread = None if mean is None or sigma is None else _LIMIT * sigma / math.sqrt(rule.subgroup or 1)
    return ControlChartView(
        rule=rule.id,
        subject=subject,
        mean=mean,
        lower=None if mean is None or spread is None else mean - spread,
        upper=None if mean is None or spread is None else mean + spread,
        points=detector.points or detector.learned[-MOST_POINTS:],
        is_out=detector.is_out,
        is_incapable=detector.is_incapable,
        is_learning=mean is None,
    )


def number_of(value: object) -> float | None:
    """Return a value that a trend can show; None for others."""
    match value:
        case bool():
            return float(value)
        case int() | float():
            try:
                number = float(value)
            except OverflowError:
                return None
            return number if abs(number) < _LARGEST else None
        case _:
            return None

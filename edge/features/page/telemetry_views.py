"""Reads alarms and tags for the API and the pages."""

import re
from collections.abc import Sequence
from typing import Final, TypeAlias

from msgspec.structs import replace

from edge.features.page.models import (
    AlarmHistory,
    AlarmList,
    ControlChartView,
    TagList,
    TagTrend,
    TagView,
    TrendPoint,
)
from edge.features.page.plot import PlotLimit, PlotPoint, plot_svg
from edge.features.page.services import DefinitionOf, TrendSource
from edge.foundation.errors import Refused
from edge.foundation.text import Text
from edge.model.engineering_unit import symbol_of
from edge.model.instant import rfc3339
from edge.model.json_value import short_value
from edge.ports.alarm import public_alarm, public_alarm_change
from edge.ports.sample_lines import LineError, Sample, parse_line
from edge.ports.tag import TagDefinition
from edge.store import kept_alarms as alarms
from edge.store import stream_of_samples as tags
from edge.store.client import Store

_POSITION: Final = re.compile(r"[0-9]{1,15}-[0-9]{1,10}")

Points: TypeAlias = tuple[tuple[int, float], ...]
"""Instants in milliseconds with their values."""


async def list_alarms(store: Store, languages: Sequence[str]) -> AlarmList:
    """Return the alarms that are kept, the most severe first."""
    found = (await alarms.load(store)).alarms.values()
    ranked = sorted(found, key=lambda alarm: (-alarm.severity, alarm.raised_at or 0, alarm.id))
    return AlarmList(alarms=tuple(public_alarm(alarm, languages) for alarm in ranked))


async def alarm_history(store: Store, before: str, most: int, languages: Sequence[str]) -> AlarmHistory:
    """Return the newest changes of alarms before a position. Raises Refused for what is not a position."""
    if before and not _POSITION.fullmatch(before):
        raise Refused(
            "invalid_query",
            Text.of("{before!r} is not a position.", before=before),
            "Leave it out for the newest changes.",
        )
    page = await alarms.page(store, f"({before}" if before else "+", "-", most, is_backward=True)
    found = tuple(public_alarm_change(item.alarm, item.kind, languages) for item in page.items)
    return AlarmHistory(changes=found, before=page.next)


async def list_tags(store: Store, text: str, most: int, definition_of: DefinitionOf) -> TagList:
    """Return the last samples of the first tags whose name contains a text, with the units of their definitions."""
    needle = text.casefold()
    lines = {name: line for name, line in (await tags.load_last(store)).items() if needle in name.casefold()}
    found = ((name, _sample(line)) for name, line in lines.items())
    samples = [replace(sample, tag=name) for name, sample in found if sample is not None]
    return TagList(tags=tuple(_tag(sample, definition_of(sample.tag)) for sample in samples[:most]), total=len(samples))


async def tag_points(store: Store, trends: TrendSource | None, tag: str) -> Points:
    """Return the newest points of a tag. Raises Refused for an unknown tag, and without telemetry."""
    if trends is None:
        raise Refused("telemetry_off", "telemetry is off on this gateway.", "Switch it on: [telemetry] mode = on.")
    line = await tags.load_last_of(store, tag)
    if line is None:
        raise Refused("unknown_tag", Text.of("there is no tag {tag!r}.", tag=tag), "Look at the list of tags.")
    return await trends.points(tag, _sample(line))


def trend(tag: str, points: Points) -> TagTrend:
    """Return points for the API."""
    return TagTrend(tag=tag, points=tuple(TrendPoint(at=rfc3339(at), value=value) for at, value in points))


def trend_svg(tag: str, points: Points) -> str:
    """Return the trend of a tag as SVG."""
    return plot_svg(tag, [PlotPoint(at, value) for at, value in points], is_time=True)


def control_chart_svg(charts: Sequence[ControlChartView], rule: str, subject: str) -> str:
    """Return a control chart as SVG. Raises Refused for an unknown one."""
    found = next((chart for chart in charts if (chart.rule, chart.subject) == (rule, subject)), None)
    if found is None:
        raise Refused(
            "unknown_chart",
            Text.of("rule {rule!r} has no control chart of {subject!r}.", rule=rule, subject=subject),
            "Look at the list.",
        )
    # The signs of ISO 7870-2 need no translation.
    limits = (("CL", found.mean), ("LCL", found.lower), ("UCL", found.upper))
    return plot_svg(
        f"{rule}: {subject}",
        [PlotPoint(number, value) for number, value in enumerate(found.points, start=1)],
        [PlotLimit(name, value, is_bound=name != "CL") for name, value in limits if value is not None],
        is_time=False,
    )


def _sample(line: str) -> Sample | None:
    """Return a stored sample; None for a line that is damaged."""
    try:
        found = parse_line(line)
    except LineError:
        return None
    return found if isinstance(found, Sample) else None


def _tag(sample: Sample, definition: TagDefinition | None) -> TagView:
    return TagView(
        tag=sample.tag,
        value=short_value(sample.value),
        quality=sample.quality.value,
        at=rfc3339(sample.at),
        unit=symbol_of(definition.unit) if definition else "",
        description=definition.description if definition else "",
    )

"""Reads alarms and tags for the API and the pages."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from edge.model.alarm import AckState, Alarm
from edge.rules.sample_lines import Sample, parse_line
from edge.store import alarms, tags
from edge.store.client import Store
from edge.web.instants import utc
from edge.web.models import AlarmList, AlarmView, TagList, TagView

_LONGEST_VALUE: Final = 200


async def list_alarms(store: Store, languages: Sequence[str]) -> AlarmList:
    """Return the alarms that are kept, the most severe first."""
    found = (await alarms.load(store)).alarms.values()
    ranked = sorted(found, key=lambda each: (-each.severity, each.raised_at or 0, each.id))
    return AlarmList(alarms=tuple(alarm_view(each, languages) for each in ranked))


def alarm_view(alarm: Alarm, languages: Sequence[str]) -> AlarmView:
    """Return an alarm with its message in the first language that it has."""
    return AlarmView(
        id=alarm.id,
        rule=alarm.rule,
        subject=alarm.subject,
        state=alarm.state.value,
        active=alarm.active != "inactive",
        severity=alarm.severity,
        message=message_in(alarm.message, languages),
        value=_plain(alarm.value),
        job=alarm.job,
        count=alarm.count,
        raised_at=utc(alarm.raised_at),
        cleared_at=utc(alarm.cleared_at),
        by=alarm.by,
        comment=alarm.comment,
        shelved_until=utc(alarm.shelving.until) if alarm.shelving else None,
        needs_acknowledge=alarm.acknowledgement is AckState.UNACKNOWLEDGED or bool(alarm.earlier),
    )


def message_in(texts: Mapping[str, str], languages: Sequence[str]) -> str:
    """Return a text in the first language that it has; in English or any other without one of them."""
    for language in (*languages, "en"):
        for known in (language, language.partition("-")[0]):
            if known in texts:
                return texts[known]
    return next(iter(texts.values()), "")


async def list_tags(store: Store, text: str, most: int) -> TagList:
    """Return the last samples of the first tags whose name contains a text."""
    needle = text.casefold()
    lines = [parse_line(line) for name, line in (await tags.load(store)).items() if needle in name.casefold()]
    samples = [each for each in lines if isinstance(each, Sample)]
    return TagList(tags=tuple(map(_tag, samples[:most])), total=len(samples))


def _tag(sample: Sample) -> TagView:
    return TagView(tag=sample.tag, value=_plain(sample.value), quality=sample.quality.value, at=utc(sample.at))


def _plain(value: Any) -> Any:
    """Return a value that JSON can express: a number that is none as its name, a long one shortened."""
    match value:
        case float() if not math.isfinite(value):
            return str(value)
        case None | bool() | int() | float():
            return value
        case _:
            text = str(value)
            return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"

"""Formats values for people: the filters of the templates."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote

import msgspec
from markupsafe import Markup

from edge.drawing.marks import duration
from edge.features.page.attention import URGENT_SEVERITY
from edge.features.page.problems import without_command
from edge.foundation.instant import local
from edge.foundation.text import stated_in
from edge.model.instant import Instant, parse_instant
from edge.model.result_violations import quantity_name
from edge.ports.alarm import PublicAlarm

_LONGEST_JSON: Final = 500
_MINUTES_FROM_S: Final = 100
_MEDIUM_SEVERITY: Final = 334


def _part(text: str) -> str:
    return quote(text, safe="")


def _shown(value: object, t: Callable[[str], str]) -> str:
    """Return a value for a person: a truth value as a word, figures with five digits."""
    match value:
        case bool():
            return t("yes" if value else "no")
        case float():
            return f"{value:.5g}"
        case Mapping():
            return ", ".join(f"{name} {_shown(item, t)}" for name, item in value.items())
        case _:
            return str(value)


def _quantity(path: str, language: str) -> str:
    """Return the name of a value of a result for a person; that of its part stands before it."""
    *parts, name = path.split(".")
    return ": ".join((*parts, stated_in(quantity_name(name), language)))


def _counted(number: int, key: str, t: Callable[[str], str]) -> str:
    """Return a number with its noun: one job, two jobs."""
    return f"{number} {t(f'one.{key}' if number == 1 else f'many.{key}')}"


def _alarm_text(alarm: PublicAlarm) -> str:
    """Return what an alarm says at a page; a rule of the gateway names a command for those at a terminal."""
    text = alarm.message or alarm.rule
    return _sentence(without_command(text)) if alarm.rule.startswith("gateway.") else text


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _severity(severity: int, t: Callable[[str], str]) -> str:
    """Return a severity as a word; the thirds are those of OPC 10000-9, high is what is urgent here."""
    if severity >= URGENT_SEVERITY:
        return t("severity.high")
    return t("severity.medium" if severity >= _MEDIUM_SEVERITY else "severity.low")


def _dots(parts: Iterable[str | Markup | None]) -> Markup:
    """Return the parts that are there, with a dot between each two."""
    return Markup(" · ").join(part for part in parts if part)


def _span(seconds: float) -> str:
    return duration(round(seconds * 1000))


def _json(value: object) -> str:
    """Return data as JSON, shortened."""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _LONGEST_JSON else f"{text[:_LONGEST_JSON]}…"


def _clock(at: Instant | None) -> Markup:
    """Return the time of day of an instant in the zone of the host; the script shows it in that of the browser."""
    # A tenth of the page would be strftime, which looks at the time zone of the host each time.
    return _time(at, "clock", local(parse_instant(at)).time().isoformat("seconds")) if at else Markup("")


def _day(at: Instant | None) -> Markup:
    """Return day and time of an instant, as `_clock` does."""
    if not at:
        return Markup("")
    day = local(parse_instant(at))
    return _time(at, "day", f"{day.replace(tzinfo=None).isoformat(' ', 'seconds')} {day.tzname()}")


def _time(at: Instant, form: str, text: str) -> Markup:
    return Markup('<time datetime="{}" data-at="{}">{}</time>').format(at, form, text)


def _whole(seconds: float) -> str:
    """Return a duration in whole seconds, as the script counts them on."""
    whole = int(seconds)
    return f"{whole} s" if whole < _MINUTES_FROM_S else f"{whole // 60} min {whole % 60:02} s"


FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    "part": _part,
    "clock": _clock,
    "day": _day,
    "span": _span,
    "whole": _whole,
    "json": _json,
    "shown": _shown,
    "counted": _counted,
    "quantity": _quantity,
    "alarm_text": _alarm_text,
    "severity": _severity,
    "dots": _dots,
}
"""The filters by their names in templates."""

"""Alarms, tags, trends and control charts on the station page and in the HTTP API."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec.structs import replace

from edge.access.web_audit import WebCaller
from edge.app.page_part import TEXT_QUERY, ApiCall, ApiOperation, Execute, PageData, PagePart, PageServices, Svg
from edge.drawing.plot import PlotLimit, PlotPoint, plot_svg
from edge.features.telemetry.alarm_requests import alarm_event_of, request_change
from edge.features.telemetry.model import api_models as models
from edge.features.telemetry.model.public_tag import public_tag
from edge.foundation.errors import Refused
from edge.foundation.instant import local
from edge.foundation.text import Text
from edge.model.engineering_unit import symbol_of
from edge.model.instant import rfc3339, utc
from edge.model.user import Role
from edge.ports.alarm import AlarmCall, public_alarm, public_alarm_change
from edge.ports.sample_lines import LineError, Sample, parse_line
from edge.ports.tag import TagDefinition
from edge.store import kept_alarms as alarms
from edge.store import stream_of_samples as tags
from edge.store.client import Store

if TYPE_CHECKING:
    from edge.features.telemetry.parts import TelemetryService

MOST_TAGS: Final = 500
MOST_ALARM_CHANGES: Final = 200
_ALARMS_OF_PAGE: Final = 100
_TAGS_OF_PAGE: Final = 200
_ROWS_OF_PAGE: Final = 50
_VALUES_OF_PAGE: Final = 20
_POSITION: Final = re.compile(r"[0-9]{1,15}-[0-9]{1,10}")

Points: TypeAlias = tuple[tuple[int, float], ...]
"""Instants in milliseconds with their values."""


async def alarm_history(store: Store, before: str, most: int, languages: Sequence[str]) -> models.AlarmHistory:
    """Return the newest changes of alarms before a position. Raises Refused for what is not a position."""
    if before and not _POSITION.fullmatch(before):
        raise Refused(
            "invalid_query",
            Text.of("{before!r} is not a position.", before=before),
            "Leave it out for the newest changes.",
        )
    page = await alarms.page(store, f"({before}" if before else "+", "-", most, is_backward=True)
    public_alarm_changes = tuple(public_alarm_change(item.alarm, item.kind, languages) for item in page.items)
    return models.AlarmHistory(changes=public_alarm_changes, before=page.next)


async def list_tags(services: PageServices, caller: WebCaller, text: str, most: int) -> models.TagList:
    """Return the last samples of the first tags whose name contains a text, with the units of their definitions.

    Those that the caller may not read are left out.
    """
    needle = text.casefold()
    lines = (await tags.load_last(services.store)).items()
    shown = ((name, line) for name, line in lines if needle in name.casefold() and _may_read(services, caller, name))
    found = ((name, _sample(line)) for name, line in shown)
    samples = [replace(sample, tag=name) for name, sample in found if sample is not None]
    listed = tuple(public_tag(sample, _definition_of(services, sample.tag)) for sample in samples[:most])
    return models.TagList(tags=listed, total=len(samples))


def _telemetry(services: PageServices) -> "TelemetryService | None":
    """Return telemetry; None where it is off."""
    return services.ports.get("telemetry")


def _definition_of(services: PageServices, tag: str) -> TagDefinition | None:
    return telemetry.tags.find(tag) if (telemetry := _telemetry(services)) else None


def _may_read(services: PageServices, caller: WebCaller, tag: str) -> bool:
    return telemetry.tags.may_read(tag, caller.role) if (telemetry := _telemetry(services)) else True


async def _control_charts(services: PageServices, caller: WebCaller) -> tuple[models.ControlChartView, ...]:
    return await telemetry.trends.control_charts(caller.role) if (telemetry := _telemetry(services)) else ()


async def tag_points(services: PageServices, caller: WebCaller, tag: str) -> Points:
    """Return the newest points of a tag. Raises Refused for one that the caller does not see, and without telemetry."""
    if (telemetry := _telemetry(services)) is None:
        raise Refused("telemetry_off", "telemetry is off on this gateway.", "Switch it on: [telemetry] mode = on.")
    line = await tags.load_last_of(services.store, tag)
    if line is None or not _may_read(services, caller, tag):
        raise Refused("unknown_tag", Text.of("there is no tag {tag!r}.", tag=tag), "Look at the list of tags.")
    return await telemetry.trends.points(tag, _sample(line))


def trend(tag: str, points: Points) -> models.TagTrend:
    """Return points for the API."""
    return models.TagTrend(
        tag=tag, points=tuple(models.TrendPoint(at=rfc3339(at), value=value) for at, value in points)
    )


def trend_svg(tag: str, points: Points) -> str:
    """Return the trend of a tag as SVG."""
    return plot_svg(tag, [PlotPoint(at, value) for at, value in points], text_at=_clock)


def control_chart_svg(charts: Sequence[models.ControlChartView], rule: str, subject: str) -> str:
    """Return a control chart as SVG. Raises Refused for an unknown one."""
    control_chart_view = next((chart for chart in charts if (chart.rule, chart.subject) == (rule, subject)), None)
    if control_chart_view is None:
        raise Refused(
            "unknown_chart",
            Text.of("rule {rule!r} has no control chart of {subject!r}.", rule=rule, subject=subject),
            "Look at the list.",
        )
    # The signs of ISO 7870-2 need no translation.
    limits = (("CL", control_chart_view.mean), ("LCL", control_chart_view.lower), ("UCL", control_chart_view.upper))
    return plot_svg(
        f"{rule}: {subject}",
        [PlotPoint(number, value) for number, value in enumerate(control_chart_view.points, start=1)],
        [PlotLimit(name, value, is_bound=name != "CL") for name, value in limits if value is not None],
    )


def _clock(milliseconds: float) -> str:
    try:
        return f"{local(utc(round(milliseconds))):%H:%M:%S}"
    except (ValueError, OverflowError, OSError):
        return ""


def _sample(line: str) -> Sample | None:
    """Return a stored sample; None for a line that is damaged."""
    try:
        found = parse_line(line)
    except LineError:
        return None
    return found if isinstance(found, Sample) else None


async def _alarms(services: PageServices, call: ApiCall) -> models.AlarmList:
    return models.AlarmList(alarms=await alarms.load_public(services.store, call.caller.languages))


async def _alarm_history(services: PageServices, call: ApiCall) -> models.AlarmHistory:
    before = call.query.get("before", "")
    return await alarm_history(services.store, before, MOST_ALARM_CHANGES, call.caller.languages)


async def _tags(services: PageServices, call: ApiCall) -> models.TagList:
    return await list_tags(services, call.caller, call.query.get("text", ""), MOST_TAGS)


async def _trend(services: PageServices, call: ApiCall) -> models.TagTrend:
    tag = call.path["tag"]
    return trend(tag, await tag_points(services, call.caller, tag))


async def _trend_svg(services: PageServices, call: ApiCall) -> Svg:
    tag = call.path["tag"]
    return Svg(trend_svg(tag, await tag_points(services, call.caller, tag)))


async def _charts(services: PageServices, call: ApiCall) -> models.ControlChartList:
    return models.ControlChartList(charts=await _control_charts(services, call.caller))


async def _chart_svg(services: PageServices, call: ApiCall) -> Svg:
    charts = await _control_charts(services, call.caller)
    return Svg(control_chart_svg(charts, call.path["rule"], call.path["subject"]))


def _alarm_method(method: str) -> Execute:
    """Return the operation that calls a method of an alarm."""

    async def execute(services: PageServices, call: ApiCall) -> models.AlarmList:
        alarm_id, asked = call.path["alarm"], call.body
        seconds = None if asked.minutes is None else asked.minutes * 60
        arguments = AlarmCall(alarm_id=alarm_id, by=call.caller.user, comment=asked.comment, seconds=seconds)
        event = alarm_event_of(method, arguments, services.clock())
        await request_change(services.store, alarm_id, event, services.clock)
        services.audit.called(call.caller, method, alarm_id, asked.comment)
        alarm = (await alarms.load(services.store)).alarms.get(alarm_id)
        shown = (public_alarm(alarm, call.caller.languages),) if alarm else ()
        return models.AlarmList(alarms=shown)

    return execute


_ALARM: Final = "/alarms/{alarm}"
_ALARM_METHODS: Final = {
    "acknowledge": ("Acknowledge", "Acknowledge an alarm: a person has seen it."),
    "confirm": ("Confirm", "Confirm an acknowledged alarm: a person has acted."),
    "reset": ("Reset", "Reset a latched alarm whose condition has ended."),
    "shelve": ("Shelve", "Silence an alarm for a time, or until its condition ends."),
    "unshelve": ("Unshelve", "End the silence of an alarm."),
}

_OPERATIONS: Final = (
    ApiOperation("GET", "/alarms", "List the alarms that are not normal.", Role.OBSERVER, models.AlarmList, _alarms),
    ApiOperation(
        "GET",
        "/alarms/history",
        f"Return the newest {MOST_ALARM_CHANGES} changes of alarms.",
        Role.OBSERVER,
        models.AlarmHistory,
        _alarm_history,
        query={"before": "The position of the last answer, for older changes."},
    ),
    ApiOperation(
        "GET", "/tags", f"List at most {MOST_TAGS} tags.", Role.OBSERVER, models.TagList, _tags, query=TEXT_QUERY
    ),
    ApiOperation(
        "GET", "/tags/{tag}/trend", "Return the newest values of a tag.", Role.OBSERVER, models.TagTrend, _trend
    ),
    ApiOperation("GET", "/tags/{tag}/trend.svg", "Return the trend of a tag.", Role.OBSERVER, Svg, _trend_svg),
    ApiOperation(
        "GET",
        "/control-charts",
        "List the control charts of rules.",
        Role.OBSERVER,
        models.ControlChartList,
        _charts,
    ),
    ApiOperation(
        "GET",
        "/control-charts/{rule}/{subject}/chart.svg",
        "Return a control chart.",
        Role.OBSERVER,
        Svg,
        _chart_svg,
    ),
    *(
        ApiOperation(
            "POST",
            f"{_ALARM}/{name}",
            meaning,
            Role.OPERATOR,
            models.AlarmList,
            _alarm_method(method),
            models.AlarmRequest,
        )
        for name, (method, meaning) in _ALARM_METHODS.items()
    ),
)


async def _alarms_page(services: PageServices, caller: WebCaller, query: Mapping[str, str]) -> PageData:
    store, before = services.store, query.get("before", "")
    return "alarms.html", {
        "alarms": (await alarms.load_public(store, caller.languages))[:_ALARMS_OF_PAGE],
        "history": await alarm_history(store, before, _ROWS_OF_PAGE, caller.languages),
        "is_oldest": bool(before),
        "subjects": ["alarms"],
    }


async def _tags_page(services: PageServices, caller: WebCaller, query: Mapping[str, str]) -> PageData:
    text = query.get("text", "")
    return "tags.html", {
        "page": await list_tags(services, caller, text, _TAGS_OF_PAGE),
        "text": text,
        "charts": (await _control_charts(services, caller))[:_ROWS_OF_PAGE],
        "subjects": ["tags"],
    }


async def _tag_page(services: PageServices, caller: WebCaller, query: Mapping[str, str]) -> PageData:
    tag = query.get("name", "")
    points = await tag_points(services, caller, tag)
    tag_definition = _definition_of(services, tag) or TagDefinition(tag)
    return "tag.html", {
        "tag": tag,
        "unit": symbol_of(tag_definition.unit),
        "description": tag_definition.description,
        "newest": trend(tag, points[-_VALUES_OF_PAGE:]).points[::-1],
        "subjects": ["tags"],
    }


PAGE: Final = PagePart(
    _OPERATIONS,
    {"/alarms": _alarms_page, "/tags": _tags_page, "/tag": _tag_page},
    {"/alarms": "alarms", "/tags": "tags"},
    Path(__file__).parent / "templates",
    manual={
        "/alarms": "reference/telemetry#states-of-an-alarm",
        "/tags": "reference/telemetry",
        "/tag": "reference/telemetry",
    },
)

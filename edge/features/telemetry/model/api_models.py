"""The data of alarms, tags and control charts in the HTTP API."""

from typing import Annotated

from msgspec import Meta, Struct

from edge.features.telemetry.model.public_tag import PublicTag
from edge.model.instant import Instant
from edge.ports.alarm import LONGEST_SHELVING_S, PublicAlarm, PublicAlarmChange


class AlarmList(Struct, frozen=True, kw_only=True):
    """The alarms that are not normal or are silenced, the most severe first."""

    alarms: tuple[PublicAlarm, ...]


class AlarmHistory(Struct, frozen=True, kw_only=True):
    """Changes of alarms, the newest first; `before` asks for older ones, empty at the end."""

    changes: tuple[PublicAlarmChange, ...]
    before: str


class AlarmRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of a method of an alarm; `minutes` are those of shelving: without, until the condition ends."""

    comment: Annotated[str, Meta(max_length=1000)] = ""
    minutes: Annotated[float, Meta(gt=0, le=LONGEST_SHELVING_S // 60)] | None = None


class TagList(Struct, frozen=True, kw_only=True):
    """The last samples by the names of their tags; `total` is the number of all tags that fit."""

    tags: tuple[PublicTag, ...]
    total: int


class TrendPoint(Struct, frozen=True, kw_only=True):
    """A value of a tag at an instant."""

    at: Instant | None
    value: float


class TagTrend(Struct, frozen=True, kw_only=True):
    """The newest values of a tag, the oldest first; without history since the first look at its trend."""

    tag: str
    points: tuple[TrendPoint, ...]


class ControlChartView(Struct, frozen=True, kw_only=True):
    """The control chart of a rule for a subject: its last points, mean and limits of three sigma."""

    rule: str
    subject: str
    mean: float | None
    lower: float | None
    upper: float | None
    points: tuple[float, ...]
    is_out: bool
    is_incapable: bool
    is_learning: bool


class ControlChartList(Struct, frozen=True, kw_only=True):
    """The control charts of all rules."""

    charts: tuple[ControlChartView, ...]

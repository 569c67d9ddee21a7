"""Counts what needs a person: decisions about jobs, equipment that may be active still, alarms."""

from collections.abc import Iterable, Sequence
from typing import Final

from edge.app.features import page_parts
from edge.app.page_part import StationAsk
from edge.features.page.models import Attention, AttentionLevel
from edge.features.page.services import WebServices
from edge.model.equipment_health import EquipmentHealth
from edge.ports.alarm import PublicAlarm
from edge.sfc.intervention import held_failures
from edge.sfc.run import ActionState
from edge.station.decision import LoadedJob
from edge.store import kept_alarms

URGENT_SEVERITY: Final = 700
"""An alarm of this severity or more is red."""

_STATED_BY_STATION: Final = {"gateway.job_awaits_person", "gateway.outcome_unknown", "gateway.tool_may_be_active"}
"""Rules whose alarms the station states itself: the job that waits, or the tool that may be active."""


async def read_attention(services: WebServices) -> Attention:
    """Read what needs a person now. Raises Unavailable when the store is unavailable."""
    now, status = services.jobs_clock(), services.status(())
    return attention_of(
        decisions=sum(decisions_of(loaded, now) for loaded in services.active_jobs()),
        asks=len(await read_asks(services, ())),
        equipment=services.equipment(),
        alarms=await kept_alarms.load_public(services.store, ()),
        has_problem=bool(status.problems),
        is_waiting=bool(status.work_waits),
    )


async def read_asks(services: WebServices, languages: Sequence[str]) -> list[StationAsk]:
    """Read what features ask of people at the station, in the languages of a reader."""
    return [ask for part in page_parts() if part.asks for ask in await part.asks(services, languages)]


def decisions_of(loaded: LoadedJob, now: int) -> int:
    """Return the number of decisions that a running job waits for at an instant in milliseconds."""
    run = loaded.stored.run
    if run.ended:
        return 0
    open_actions = (run.associations[key] for key in run.open)
    unknown = sum(action.state is ActionState.UNKNOWN and action.awaits_outcome for action in open_actions)
    second = sum(note.until is not None and note.until >= now for note in run.interventions.values())
    return len(held_failures(loaded.net, run)) + unknown + second


def attention_of(
    *,
    decisions: int,
    asks: int,
    equipment: Iterable[EquipmentHealth],
    alarms: Iterable[PublicAlarm],
    has_problem: bool,
    is_waiting: bool = False,
) -> Attention:
    """Return what needs a person; `is_waiting`: the store accepts no work.

    Red are that, equipment that may be active still, and alarms from severity 700 on; amber is everything else.
    """
    unsafe = sum(bool(health.safing or health.open_safing) for health in equipment)
    open_alarms = [alarm for alarm in alarms if needs_look(alarm)]
    is_urgent = any(alarm.severity >= URGENT_SEVERITY for alarm in open_alarms)
    station = decisions + asks + unsafe
    station_level = AttentionLevel.BAD if unsafe else AttentionLevel.WARN if station else AttentionLevel.GOOD
    alarms_level = AttentionLevel.BAD if is_urgent else AttentionLevel.WARN if open_alarms else AttentionLevel.GOOD
    problem_level = AttentionLevel.WARN if has_problem else AttentionLevel.GOOD
    levels = {station_level, alarms_level, AttentionLevel.BAD if is_waiting else problem_level}
    return Attention(
        level=next(level for level in AttentionLevel if level in levels),
        station=station,
        station_level=station_level,
        alarms=len(open_alarms),
        alarms_level=alarms_level,
    )


def needs_look(alarm: PublicAlarm) -> bool:
    """Return whether an alarm needs a person: it is neither acknowledged nor silenced."""
    return alarm.needs_acknowledge and not (alarm.shelved or alarm.suppressed or alarm.disabled)


def by_need(alarms: Iterable[PublicAlarm]) -> list[PublicAlarm]:
    """Return alarms in the order in which a person looks at them.

    First are those that need one: urgent ones, which make the banner red, then active ones.
    """
    return sorted(alarms, key=lambda alarm: (not needs_look(alarm), alarm.severity < URGENT_SEVERITY, not alarm.active))


def headline_of(alarms: Iterable[PublicAlarm], attention: Attention) -> PublicAlarm | None:
    """Return the alarm that the banner names next to what needs a person; None without one that says more."""
    for alarm in by_need(alarms):
        is_stated = attention.station and alarm.rule in _STATED_BY_STATION
        if needs_look(alarm) and not is_stated:
            return alarm
    return None

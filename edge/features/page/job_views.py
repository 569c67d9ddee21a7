"""Reads jobs for the API and the pages: lists, progress, what a job waits for, its chart and its history."""

import asyncio
from collections.abc import Collection, Iterable, Sequence
from typing import Final, assert_never

from edge.chart.gantt import gantt_lines
from edge.chart.marks import marks_of
from edge.chart.page import draw
from edge.chart.reading import read_chart
from edge.chart.svg import chart_svg
from edge.features.page.models import (
    ActionLine,
    DecisionLine,
    JobDetail,
    JobHistory,
    JobPage,
    PossibleIntervention,
    StepLine,
    UnmetTerm,
    WaitingAction,
    WaitingTransition,
    Waits,
)
from edge.foundation.errors import Refused
from edge.foundation.text import Text
from edge.foundation.ticks import REST_S, in_slices
from edge.model.instant import rfc3339
from edge.model.job_state import METHODS, ORDER_METHODS, TEXT, JobState, has_ended, next_status
from edge.model.json_value import plain_value
from edge.model.user import INTERVENTION_ROLES
from edge.sfc.history import DecisionRecord
from edge.sfc.net import Net
from edge.sfc.replay import timeline
from edge.sfc.run import ActionState, Run
from edge.sfc.waiting import (
    ActionWaits,
    PersonWaits,
    RunHalted,
    SecondPersonWaits,
    TransitionWaits,
    explain_waiting,
    possible_interventions,
)
from edge.station.stored_job import NotRecorded, StoredJob, load, load_recorded, public_job, start_wait
from edge.store import jobs
from edge.store.client import Store
from edge.store.jobs import Job, JobRank

_ORDER: Final = (
    JobState.RUNNING,
    JobState.INTERRUPTED,
    JobState.ALLOWED_TO_START,
    JobState.NOT_ALLOWED_TO_START,
    JobState.ABORTED,
    JobState.ENDED,
)
STATES: Final = tuple(TEXT[state] for state in _ORDER)
"""The states in the order in which lists show them."""

MOST_DECISIONS: Final = 500
"""Decisions of a job that are read at a time: a job that repeats its steps may have made thousands."""

HAS_ENDED: Final = "ended"
"""`halted` of a job that has ended; that of a job that has no run yet is a StartWait."""


async def list_jobs(
    store: Store, scopes: Iterable[str], states: Sequence[str], text: str, most: int, skip: int = 0
) -> JobPage:
    """Return jobs in some states whose id contains a text, after the first `skip`; no state stands for all of them."""
    needle = text.casefold()
    ids = [
        identifier
        for scope in scopes
        for identifier in await jobs.list_ids(store, scope)
        if needle in identifier.casefold()
    ]
    # Ids come by priority: sorting keeps that order among jobs that wait.
    ranks = await jobs.load_ranks(store, ids)
    found = sorted((rank for rank in ranks if not states or TEXT[rank.state] in states), key=_place)
    shown = await jobs.load_some(store, [job_rank.job_id for job_rank in found[skip : skip + most]])
    shown.sort(key=_rank)
    return JobPage(jobs=tuple(map(public_job, shown)), total=len(found))


def _place(job_rank: JobRank) -> tuple[int, int]:
    return _ORDER.index(job_rank.state), -job_rank.ended_at


def _rank(job: Job) -> tuple[int, int, int]:
    """Sort by state; jobs that wait by priority and age, jobs that have ended by their end, the last one first."""
    place = _ORDER.index(job.status.state)
    if has_ended(job.status):
        return place, 0, -(job.ended_at or 0)
    return place, -(job.order.priority or 0), job.stored_at


async def job_detail(store: Store, job_id: str, now: int) -> JobDetail:
    """Return a job with its progress. Raises Refused for an unknown one."""
    return detail_of(await load(store, job_id), now)


def detail_of(stored: StoredJob, now: int) -> JobDetail:
    """Return the job, its progress and what it waits for, from a job that was already read."""
    job, run, net = stored.job, stored.run, stored.net
    steps = tuple(_steps(run, net)) if run and net else ()
    actions = tuple(_actions(run, net, stored.unsent)) if run and net else ()
    return JobDetail(
        job=public_job(job),
        takes=methods_of(job.status.state),
        waits=_waits(stored, now),
        steps=steps,
        actions=actions,
        unknown=tuple(dict.fromkeys(action.action for action in actions if action.state == ActionState.UNKNOWN)),
        interventions=tuple(_interventions(net, run, now)) if run and net else (),
        steps_done=sum(not step.active or has_ended(job.status) for step in steps),
        steps_total=len(net.steps) if net else 0,
        paused=bool(run and run.paused),
        has_chart=run is not None,
        parameters={parameter.id: plain_value(parameter.value) for parameter in job.order.job_order_parameters or ()},
    )


def methods_of(state: JobState) -> tuple[str, ...]:
    """Return the methods that name a job and that its state allows."""
    by_id = (method for method in METHODS if method not in ORDER_METHODS)
    return tuple(method.value for method in by_id if next_status(state, method) is not None)


def _steps(run: Run, net: Net) -> Iterable[StepLine]:
    for name in net.steps:
        if state := run.steps.get(name):
            at = rfc3339(state.activated_at) if state.active else None
            yield StepLine(step=name, active=state.active, count=state.count, activated_at=at)


def _actions(run: Run, net: Net, unsent: Collection[str]) -> Iterable[ActionLine]:
    """Yield the actions in the order of the recipe."""
    for key, association in sorted(run.associations.items(), key=lambda pair: net.actions[pair[0].latest].index):
        if not key.is_left_behind:
            sent = not association.withdrawn and association.command_id not in unsent
            error, state = association.error or "", association.state.value
            yield ActionLine(action=key.action, step=key.step, state=state, error=error, sent=sent)


def _interventions(net: Net, run: Run, now: int) -> Iterable[PossibleIntervention]:
    for intervention in possible_interventions(net, run, now):
        role = INTERVENTION_ROLES[intervention.kind].name.lower()
        yield PossibleIntervention(
            kind=intervention.kind.value,
            role=role,
            action=intervention.action,
            step=intervention.step,
            target=intervention.target,
        )


def _waits(stored: StoredJob, now: int) -> Waits:
    job = stored.job
    if has_ended(job.status):
        return Waits(halted=HAS_ENDED)
    if not (stored.net and stored.run):
        return Waits(halted=start_wait(job, now))
    transitions: list[WaitingTransition] = []
    actions: list[WaitingAction] = []
    persons: list[str] = []
    halted = ""
    for wait in explain_waiting(stored.net, stored.run, now, stored.holders, stored.mirrors, stored.unsent):
        match wait:
            case TransitionWaits():
                transitions.append(_transition(wait))
            case ActionWaits():
                actions.append(_action(wait))
            case PersonWaits() | SecondPersonWaits():
                persons.append(str(wait))
            case RunHalted(reason):
                halted = reason
            case _:
                assert_never(wait)
    return Waits(transitions=tuple(transitions), actions=tuple(actions), persons=tuple(persons), halted=halted)


def _transition(waits: TransitionWaits) -> WaitingTransition:
    unmet = tuple(UnmetTerm(term=item.text, because=item.because) for item in waits.unmet)
    return WaitingTransition(sources=waits.sources, targets=waits.targets, condition=waits.condition, unmet=unmet)


def _action(waits: ActionWaits) -> WaitingAction:
    return WaitingAction(
        action=waits.action,
        step=waits.step,
        state=waits.state.value,
        attempt=waits.attempt,
        age_ms=waits.age_ms,
        left_ms=waits.left_ms,
        due_in_ms=waits.due_in_ms,
        error=waits.error,
        sent=waits.sent,
    )


async def job_chart(store: Store, job_id: str, now: int) -> str:
    """Return the running chart of a job as SVG. Raises Refused for an unknown job and for one without a run."""
    stored = await load(store, job_id)
    if not (stored.run and stored.net):
        raise Refused(
            "no_chart", Text.of("job {job_id!r} has not started.", job_id=job_id), "It has a chart once it was started."
        )
    marks = marks_of(stored.net, stored.run, now, stored.holders, stored.mirrors, stored.unsent)
    chart = read_chart(stored.net.recipe)
    await asyncio.sleep(REST_S)  # each part takes a millisecond or more: the others run between them
    drawing = draw(chart, "", marks)
    await asyncio.sleep(REST_S)
    return chart_svg(drawing)


async def job_gantt(store: Store, job_id: str, now: int) -> str:
    """Return the timeline of steps and actions as SVG. Raises Refused when no history is recorded."""
    found = await load_recorded(store, job_id, MOST_DECISIONS, REST_S)
    if isinstance(found, NotRecorded):
        raise Refused("no_history", Text.of("{reason}.", reason=found.reason), "Look at the list of jobs.")
    run = found.stored.run
    until = now if run.ended_at is None else run.ended_at
    return "".join(await in_slices(gantt_lines("", found.net, timeline(found.records), until), REST_S))


async def job_history(store: Store, job_id: str, most: int = MOST_DECISIONS) -> JobHistory:
    """Return the newest decisions about a job. Raises Refused when none is recorded."""
    found = await load_recorded(store, job_id, most, REST_S)
    if isinstance(found, NotRecorded):
        raise Refused("no_history", Text.of("{reason}.", reason=found.reason), "Look at the list of jobs.")
    return JobHistory(job_order_id=job_id, decisions=tuple(map(_decision, found.records)))


def _decision(record: DecisionRecord) -> DecisionLine:
    changed = record.changes.steps
    return DecisionLine(
        number=record.number,
        at=rfc3339(record.at),
        signal=type(record.signal).__name__.lower(),
        entered=tuple(step for step, active in changed if active),
        left=tuple(step for step, active in changed if not active),
    )

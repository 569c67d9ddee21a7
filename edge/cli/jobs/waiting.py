"""Explains what a job waits for: unmet transitions, commands without an answer, and the problems of their equipment."""

import shlex
from collections.abc import Collection, Iterator, Mapping
from typing import Final, assert_never

from msgspec import Struct

from edge.access.instances import GatewayReport, load_reports
from edge.cli.jobs.calls import commands_in
from edge.cli.jobs.tables import state_text
from edge.cli.terminal.operator import operator_languages
from edge.cli.terminal.output import printable
from edge.cli.terminal.store_access import StoreAccess
from edge.cli.terminal.table import local_time
from edge.config import EquipmentSettings
from edge.drawing.marks import duration
from edge.foundation.instant import Clock
from edge.foundation.text import Text, as_text
from edge.model.job_state import has_ended
from edge.sfc.action import unsent_commands, unsent_text
from edge.sfc.run import ActionState, Association, Sending
from edge.sfc.signal import Intervene, Resolution
from edge.sfc.waiting import (
    START,
    ActionWaits,
    PersonWaits,
    RunHalted,
    SecondPersonWaits,
    TransitionWaits,
    Waiting,
    explain_waiting,
    possible_interventions,
)
from edge.station.public_job import NO_EQUIPMENT, WordedWait, public_waits
from edge.station.safing_tries import problem_of
from edge.station.stored_job import StartWait, StoredJob, load, start_wait


def waiting_of(stored: StoredJob, now: int) -> tuple[Waiting, ...]:
    """Return what a job waits for, in each phase of its life."""
    job = stored.job
    if has_ended(job.status):
        ended = Text.of("the job has ended: {reason}", reason=as_text(job.error)) if job.error else "the job has ended"
        return (RunHalted(as_text(ended)),)
    if stored.net and stored.run:
        return explain_waiting(stored.net, stored.run, now, stored.holders, stored.mirrors, stored.unsent)
    match start_wait(job, now):
        case StartWait.START_TIME:
            start = local_time(job.earliest_start)
            return (RunHalted(Text.of("the job waits for its StartTime, {start}", start=start)),)
        case StartWait.GATEWAY:
            reason = Text.of(
                "no gateway has started it yet: is a gateway running that serves scope {scope}?", scope=job.scope
            )
            return (RunHalted(reason),)
        case StartWait.CALL:
            return (RunHalted(Text.of("it was not started: edge jobs start {job_id}", job_id=job.job_id)),)


def waiting_text(stored: StoredJob, now: int, equipment: Mapping[str, str] = NO_EQUIPMENT) -> Iterator[str]:
    """Yield what a job waits for as text, line by line: in words, then as its recipe has it."""
    job = stored.job
    yield f"{printable(job.job_id)}: {state_text(job.status)}; it accepts: {', '.join(commands_in(job.status.state))}"
    for words in public_waits(stored, now, operator_languages(), equipment).words:
        yield f"  {printable(words_line(words))}"
    for waiting in waiting_of(stored, now):
        yield from (f"  {printable(line)}" for line in _lines(waiting, job.job_id, _run_clock(stored, now)))
    for command in _unsent(stored):
        yield printable(
            f"  action {command.action} of {command.step}: {unsent_text(command)}, attempt {command.attempt}"
        )
    for possible in _possible(stored, now):
        yield f"  allowed: edge jobs {_command(possible, job.job_id)} --reason 'what was seen'"


def words_line(words: WordedWait) -> str:
    """Return a wait in words as a line: `Read the code: waits for camera, 12.0 s of 45.0 s`."""
    texts = [words.text]
    if words.seconds is not None:
        of = "" if words.of_seconds is None else f" of {duration(round(words.of_seconds * 1000))}"
        texts.append(f"{duration(round(words.seconds * 1000))}{of}")
    return ": ".join(text for text in (words.ask or words.title, ", ".join(texts)) if text)


def _unsent(stored: StoredJob) -> tuple[Association, ...]:
    """Return the actions whose command has ended and was never sent, or may not have been."""
    return unsent_commands(stored.run) if stored.run else ()


def _possible(stored: StoredJob, now: int) -> tuple[Intervene, ...]:
    """Return the interventions that a running job accepts."""
    if stored.net is None or stored.run is None or has_ended(stored.job.status):
        return ()
    return possible_interventions(stored.net, stored.run, now)


def _command(possible: Intervene, job_id: str) -> str:
    """Return an intervention as arguments of `edge jobs`."""
    named = (possible.action,) if possible.action else (possible.step, possible.target)
    step = ("--step", possible.step) if possible.action else ()
    return " ".join(shlex.quote(printable(value)) for value in (possible.kind, job_id, *named, *step) if value)


def _run_clock(stored: StoredJob, now: int) -> int | None:
    """Return the instant from which remaining time counts; None in a pause, when the timers of the run stop."""
    return None if stored.run and stored.run.paused else now


_EFFECTS: Final = {
    Resolution.DONE: "it counts as done, with the result in --data, and the job continues",
    Resolution.FAILED: "it counts as failed, and the job continues as after any failure",
    Resolution.REPEAT: "its command is sent to the equipment once more",
}


def _lines(waiting: Waiting, job_id: str, now: int | None) -> Iterator[str]:
    match waiting:
        case TransitionWaits(sources, targets, condition, unmet):
            yield f"transition {', '.join(sources) or START} → {', '.join(targets)} [{condition}]"
            for element in unmet:
                yield f"    not met: {element.text}: {element.because}"
            if not unmet:
                yield "    met: it fires with the next signal"
        case ActionWaits(state=ActionState.UNKNOWN):
            sent = f", sent {duration(waiting.age_ms)} ago" if waiting.age_ms is not None else ""
            error = waiting.error or "outcome unknown"
            yield f"action {waiting.action} of {waiting.step}: {error}{sent}, attempt {waiting.attempt}"
            subject = f"{shlex.quote(job_id)} {shlex.quote(waiting.action)}"
            yield "    look at the work, then decide:"
            for resolution, effect in _EFFECTS.items():
                yield f"    edge jobs resolve {subject} --{resolution.value} --reason 'what was seen'"
                yield f"        {effect}"
        case ActionWaits():
            state = waiting.state.value if waiting.sending is Sending.SENT else waiting.sending.value
            word = ", open for" if waiting.sending is Sending.MAYBE else " for"
            since = f"{word} {duration(waiting.age_ms)}" if waiting.age_ms is not None else ""
            yield f"action {waiting.action} of {waiting.step}: {state}{since}, attempt {waiting.attempt}"
            if waiting.left_ms is not None:
                at = f", at {local_time(now + waiting.left_ms)}" if now else ""
                yield f"    times out in {duration(waiting.left_ms)}{at}"
            if waiting.due_in_ms is not None:
                yield f"    its duration ends in {duration(waiting.due_in_ms)}"
        case PersonWaits(failure):
            yield f"action {failure.action} of {failure.step}: {failure.error}, attempt {failure.attempt}"
            yield f"    waits for a person, who may {' or '.join(failure.allowed)} it"
        case SecondPersonWaits(kind, subject, by, left_ms):
            yield f"{kind} {subject}, asked for by {by}: waits for a second person for {duration(left_ms)}"
        case RunHalted(text):
            yield str(text)
        case _:
            assert_never(waiting)


class EquipmentProblem(Struct, frozen=True):
    """Why a piece of equipment, as a running gateway reports it, cannot answer."""

    equipment: str
    gateway: str
    reason: str


async def read_with_problems(at: StoreAccess, job_id: str, clock: Clock) -> tuple[StoredJob, list[EquipmentProblem]]:
    """Read a job and the problems of its equipment. Raises Refused, SettingsError and Unavailable."""
    stored_job = await load(at.store, job_id, clock)
    waiting = _equipment_of(_open_type_ids(stored_job), at.settings.southbound)
    used = _equipment_of(stored_job.net.command_types if stored_job.net else (), at.settings.southbound)
    reports = await load_reports(at.store, at.settings.gateway.scopes) if used else {}
    return stored_job, list(problems(waiting, used, reports, _sent_since(stored_job)))


def problems(
    waiting: Collection[str], used: Collection[str], reports: Mapping[str, GatewayReport], since: int | None = None
) -> Iterator[EquipmentProblem]:
    """Yield the problems that running gateways report of the equipment that a job uses.

    Of equipment that it does not wait for, only that its tool may still be active. Of other equipment also why its last
    result did not count, when that came after the instant `since`.
    """
    for gateway, report in reports.items():
        if report.report and report.at_work:
            for health in report.report.equipment:
                reasons = [str(health.obstacle)] if health.name in waiting else []
                if unsafe := str(problem_of(health.open_safing)):
                    reasons = [*(reason for reason in reasons if unsafe not in reason), unsafe]
                if health.name in waiting and since is not None and (health.last_late_at or 0) >= since:
                    reasons.append(f"a result did not count: {health.last_late}")
                if health.name in used and any(reasons):
                    yield EquipmentProblem(health.name, gateway, "; ".join(filter(None, reasons)))


def problem_line(problem: EquipmentProblem) -> str:
    """Return a problem as a line for people."""
    return f"  {printable(f'equipment {problem.equipment} of gateway {problem.gateway}: {problem.reason}')}"


def problem_data(problem: EquipmentProblem) -> dict[str, str]:
    """Return a problem as data."""
    return {"name": problem.equipment, "gateway": problem.gateway, "problem": problem.reason}


def _open_type_ids(stored: StoredJob) -> frozenset[str]:
    if stored.net is None or stored.run is None:
        return frozenset()
    return frozenset(stored.net.actions[key.latest].type_id for key in stored.run.open)


def _sent_since(stored: StoredJob) -> int | None:
    """Return when the first of the commands was sent that wait for an answer; None where none was."""
    every = [stored.run.associations[key].sent_at for key in stored.run.open] if stored.run else []
    return min((number for number in every if number is not None), default=None)


def _equipment_of(type_ids: Collection[str], southbound: Mapping[str, EquipmentSettings]) -> frozenset[str]:
    return frozenset(
        name
        for name, equipment_settings in southbound.items()
        if not set(type_ids).isdisjoint(equipment_settings.type_ids)
    )

"""The public form of a job: in short, with its progress, what it waits for, and its decisions."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, assert_never

from msgspec import Struct

from edge.config import EquipmentSettings
from edge.foundation.text import ENGLISH, Text, language_for, stated_in
from edge.model.instant import Instant, rfc3339
from edge.model.isa95 import JobOrder
from edge.model.job_identifier import identifier_of
from edge.model.job_state import METHODS, ORDER_METHODS, TEXT, JobState, SubState, has_ended, next_status
from edge.model.json_value import plain_value
from edge.model.localized_text import title_of
from edge.model.user import INTERVENTION_ROLES
from edge.sfc.intervention import HeldFailure
from edge.sfc.net import Net
from edge.sfc.run import ActionState, Run, Sending
from edge.sfc.titles import action_title, step_of, step_title
from edge.sfc.verdict import NOT_OK, skipped_by
from edge.sfc.view import expected_steps
from edge.sfc.waiting import (
    ActionWaits,
    PersonWaits,
    RunHalted,
    SecondPersonWaits,
    TransitionWaits,
    explain_waiting,
    possible_interventions,
)
from edge.sfc.waiting_words import NEEDS_A_PERSON, WaitFacts, WaitInWords, waits_in_words
from edge.station.stored_job import StoredJob, start_wait
from edge.store.jobs import Job

NO_EQUIPMENT: Final[Mapping[str, str]] = MappingProxyType({})
"""No equipment is known by its name."""
Obstacles = Mapping[str, str | Text]
"""Why equipment of a name cannot work now."""
NO_OBSTACLES: Final[Obstacles] = MappingProxyType({})
HAS_ENDED: Final = "ended"
"""`halted` of a job that has ended; that of a job that has no run yet is a StartWait."""


def equipment_by_type(southbound: Mapping[str, EquipmentSettings]) -> Mapping[str, str]:
    """Return the name of the equipment for the type of each command and event."""
    return {type_id: name for name, equipment in southbound.items() for type_id in equipment.type_ids}


class JobOutcome(StrEnum):
    """How a job ended; a job that was removed is not stored any more."""

    COMPLETED = "completed"
    NOT_OK = "not_ok"
    """Completed, with the verdict `not_ok`."""
    FAILED = "failed"
    """Aborted by the gateway: an action of it failed, and the recipe has no way for that."""
    STOPPED = "stopped"
    ABORTED = "aborted"


def outcome_of(job: Job) -> JobOutcome | None:
    """Return how a job ended; None while it has not."""
    if not has_ended(job.status):
        return None
    if job.status.state is JobState.ABORTED:
        return JobOutcome.FAILED if job.has_failed else JobOutcome.ABORTED
    if job.status.substate is SubState.CLOSED:
        return JobOutcome.STOPPED
    return JobOutcome.NOT_OK if job.verdict == NOT_OK else JobOutcome.COMPLETED


class PublicJob(Struct, frozen=True, kw_only=True):
    """A job order with its state, as `--json` and the HTTP API state it; `work_master` are the ids of its Work Masters.

    State and sub-state are spelled as in OPC 10031-4. `start_at` is the StartTime of the order: it does not start
    before. `outcome` is how it ended, `verdict` what its recipe says about its result: `ok`, `not_ok` or a text.
    `recipe_revision` is the revision of the Work Master that it runs or ran, `recipe_hash` names its recipe.
    `comment` is that of the last call about it. `identifier` is what it works on, such as a VIN: the physical asset of
    the order, else its parameter `vin` or that of a serial number.
    """

    job_order_id: str
    scope: str
    state: str
    substate: str | None
    priority: int | None
    work_master: str | None
    stored_at: Instant
    started_at: Instant | None
    ended_at: Instant | None
    start_at: Instant | None
    error: str | None
    outcome: JobOutcome | None = None
    verdict: str | None = None
    recipe_revision: int | None = None
    recipe_hash: str | None = None
    comment: str | None = None
    identifier: str | None = None


def public_job(job: Job, language: str = ENGLISH) -> PublicJob:
    """Return the public form of a job, with its error in a language."""
    substate = job.status.substate
    return PublicJob(
        job_order_id=job.job_id,
        scope=job.scope,
        state=TEXT[job.status.state],
        substate=substate.value[0] if substate else None,
        priority=job.order.priority,
        work_master=work_masters(job.order) or None,
        stored_at=rfc3339(job.stored_at),
        started_at=rfc3339(job.started_at),
        ended_at=rfc3339(job.ended_at),
        start_at=rfc3339(job.earliest_start or None),
        error=None if job.error is None else stated_in(job.error, language),
        outcome=outcome_of(job),
        verdict=job.verdict or None,
        recipe_revision=job.recipe.revision or None,
        recipe_hash=job.recipe.hash or None,
        comment=" / ".join(comment.text for comment in job.comment if comment.text) or None,
        identifier=identifier_of(job.order) or None,
    )


def work_masters(order: JobOrder) -> str:
    """Return the Work Master ids of an order."""
    return ", ".join(work_master.id for work_master in order.work_master_id or ())


class UnmetTerm(Struct, frozen=True, kw_only=True):
    """A term of a condition that is not met, with the present values."""

    term: str
    because: str


class WaitingTransition(Struct, frozen=True, kw_only=True):
    """An enabled transition that does not clear."""

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    condition: str
    unmet: tuple[UnmetTerm, ...]


class WaitingAction(Struct, frozen=True, kw_only=True):
    """A command without an answer, an awaited event, or a duration that runs.

    `age_seconds` counts from the sending, `left_seconds` is the time to the deadline, `due_in_seconds` that to the end
    of the duration; they stand still in a pause. `error` says why the outcome is unknown.
    """

    action: str
    step: str
    state: str
    attempt: int
    age_seconds: float | None
    left_seconds: float | None
    due_in_seconds: float | None
    error: str | None
    sent: bool
    """Whether the command has left the gateway, or may have left it."""
    sending: str
    """`sent`, `not sent yet`, or `may have been sent` while the store does not confirm it."""


class WaitingFailure(Struct, frozen=True, kw_only=True):
    """An action that failed and waits for a person; one of the interventions in `allowed` helps."""

    action: str
    step: str
    attempt: int
    state: str
    error: str
    allowed: tuple[str, ...]


class WaitingSecondPerson(Struct, frozen=True, kw_only=True):
    """An intervention that `by` asked for, and that a second person must confirm within `left_seconds`."""

    kind: str
    subject: str
    by: str
    left_seconds: float


class WordedWait(Struct, frozen=True, kw_only=True):
    """What a job waits for, for a person: `title: text`, without a formula, in the language of the reader.

    `ask` says what a person does first; it is empty where the title says it.
    `kind` is `failure`, `unknown`, `second_person`, `lock`, `equipment`, `time`, `condition` or `pause`. It has waited
    for `seconds`, of `of_seconds` that the recipe allows. `intervention` is what another person has asked for, `locks`
    are those that others hold.
    """

    kind: str
    needs_person: bool
    title: str
    text: str
    ask: str
    seconds: float | None
    of_seconds: float | None
    action: str
    step: str
    intervention: str
    locks: tuple[str, ...] = ()


class PublicWaits(Struct, frozen=True, kw_only=True):
    """What a job waits for; `persons` are sentences about `failures` and `second_persons`.

    `halted` is set when its run does not evolve: `ended`, `not started`, `start time`, `no gateway`, or a sentence.
    """

    transitions: tuple[WaitingTransition, ...] = ()
    actions: tuple[WaitingAction, ...] = ()
    persons: tuple[str, ...] = ()
    failures: tuple[WaitingFailure, ...] = ()
    second_persons: tuple[WaitingSecondPerson, ...] = ()
    halted: str = ""
    words: tuple[WordedWait, ...] = ()
    """The same in words, what a person has to do first."""


class PublicStep(Struct, frozen=True, kw_only=True):
    """A step that was active: how often, and since when it is active now, or how long it was active last."""

    step: str
    title: str
    description: str
    active: bool
    count: int
    activated_at: Instant | None
    elapsed_seconds: float | None


class PublicAction(Struct, frozen=True, kw_only=True):
    """The latest attempt at an action in a step.

    `sent`: its command has left the gateway, or may have left it; true for an action without a command. `sending` is
    `sent`, `not sent yet`, `never sent` or `may have been sent`. `skipped_by` is the person who skipped it, with the
    reason.
    """

    action: str
    step: str
    title: str
    skipped_by: str
    state: str
    attempt: int
    error: str
    sent: bool
    sending: str
    sent_at: Instant | None
    deadline: Instant | None
    ended_at: Instant | None


class PossibleIntervention(Struct, frozen=True, kw_only=True):
    """An intervention that the recipe allows and that would change the run now; `role` is the lowest that may do it."""

    kind: str
    role: str
    action: str
    step: str
    target: str
    title: str
    target_title: str


class PublicJobDetail(Struct, frozen=True, kw_only=True):
    """A job with its progress: `takes` are the methods that its state allows, `steps_total` those of the recipe.

    `title` and `description` are those of its recipe, `steps_expected` estimates the steps of the way that it takes.
    """

    job: PublicJob
    title: str
    description: str
    takes: tuple[str, ...]
    waits: PublicWaits
    steps: tuple[PublicStep, ...]
    actions: tuple[PublicAction, ...]
    unknown: tuple[str, ...]
    interventions: tuple[PossibleIntervention, ...]
    steps_done: int
    steps_expected: int
    steps_total: int
    paused: bool
    has_chart: bool
    parameters: Mapping[str, Any]


def public_detail(
    stored: StoredJob,
    now: int,
    languages: Sequence[str] = (),
    equipment: Mapping[str, str] = NO_EQUIPMENT,
    obstacles: Obstacles = NO_OBSTACLES,
) -> PublicJobDetail:
    """Return a job with its progress and what it waits for at an instant of the reference clock, for a reader.

    `equipment` has the name of the equipment for the type of each command and event, `obstacles` why it cannot work.
    """
    job, run, net = stored.job, stored.run, stored.net
    language = language_for(languages)
    steps = tuple(_steps(run, net, languages)) if run and net else ()
    actions = tuple(_actions(run, net, stored.unsent, languages)) if run and net else ()
    return PublicJobDetail(
        job=public_job(job, language),
        title=_title(stored, languages),
        description=title_of("", net.recipe.description, languages) if net else "",
        takes=methods_of(job.status.state),
        waits=public_waits(stored, now, languages, equipment, obstacles),
        steps=steps,
        actions=actions,
        unknown=tuple(dict.fromkeys(action.action for action in actions if action.state == ActionState.UNKNOWN)),
        interventions=tuple(_interventions(net, run, now, languages)) if run and net else (),
        steps_done=sum(not step.active or has_ended(job.status) for step in steps),
        steps_expected=expected_steps(net, run) if net and run else 0,
        steps_total=len(net.steps) if net else 0,
        paused=bool(run and run.paused),
        has_chart=run is not None,
        parameters={parameter.id: plain_value(parameter.value) for parameter in job.order.job_order_parameters or ()},
    )


def methods_of(state: JobState) -> tuple[str, ...]:
    """Return the methods that name a job and that its state allows."""
    by_id = (method for method in METHODS if method not in ORDER_METHODS)
    return tuple(method.value for method in by_id if next_status(state, method) is not None)


def _title(stored: StoredJob, languages: Sequence[str]) -> str:
    """Return the title of the recipe of a job, else the description of its Work Master, else its name as words."""
    order = stored.job.order
    masters = order.work_master_id or ()
    described = next((master.description.text for master in masters if master.description), "")
    title = stored.net.recipe.title if stored.net else None
    return title_of(described or work_masters(order), title, languages)


def _steps(run: Run, net: Net, languages: Sequence[str]) -> Iterable[PublicStep]:
    for name in net.steps:
        if state := run.steps.get(name):
            at = rfc3339(state.activated_at) if state.active else None
            elapsed = None if state.active else state.elapsed_ms / 1000
            yield PublicStep(
                step=name,
                title=step_title(net, name, languages),
                description=title_of("", step_of(net, name).description, languages),
                active=state.active,
                count=state.count,
                activated_at=at,
                elapsed_seconds=elapsed,
            )


def _actions(run: Run, net: Net, unsent: Mapping[str, Sending], languages: Sequence[str]) -> Iterable[PublicAction]:
    """Yield the actions in the order of the recipe."""
    language = language_for(languages)
    for key, association in sorted(run.associations.items(), key=lambda pair: net.actions[pair[0].latest].index):
        if not key.is_left_behind:
            sending = unsent.get(association.command_id, association.sending)
            sent = sending in {Sending.SENT, Sending.MAYBE}
            yield PublicAction(
                action=key.action,
                step=key.step,
                title=action_title(net, key.action, key.step, languages),
                skipped_by=skipped_by(association),
                state=association.state.value,
                attempt=association.attempt,
                error=stated_in(association.error or "", language),
                sent=sent,
                sending=sending.value,
                sent_at=rfc3339(association.sent_at) if sent else None,
                deadline=rfc3339(association.deadline),
                ended_at=rfc3339(association.ended_at),
            )


def _interventions(net: Net, run: Run, now: int, languages: Sequence[str]) -> Iterable[PossibleIntervention]:
    for intervention in possible_interventions(net, run, now):
        role = INTERVENTION_ROLES[intervention.kind].name.lower()
        yield PossibleIntervention(
            kind=intervention.kind.value,
            role=role,
            action=intervention.action,
            step=intervention.step,
            target=intervention.target,
            title=action_title(net, intervention.action, intervention.step, languages)
            if intervention.action
            else step_title(net, intervention.step, languages),
            target_title=step_title(net, intervention.target, languages) if intervention.target else "",
        )


def public_waits(
    stored: StoredJob,
    now: int,
    languages: Sequence[str] = (),
    equipment: Mapping[str, str] = NO_EQUIPMENT,
    obstacles: Obstacles = NO_OBSTACLES,
) -> PublicWaits:
    """Return what a job waits for at an instant of the reference clock, for a reader."""
    job, language = stored.job, language_for(languages)
    if has_ended(job.status):
        return PublicWaits(halted=HAS_ENDED)
    if not (stored.net and stored.run):
        return PublicWaits(halted=start_wait(job, now))
    transitions: list[WaitingTransition] = []
    actions: list[WaitingAction] = []
    persons: list[str] = []
    failures: list[WaitingFailure] = []
    second_persons: list[WaitingSecondPerson] = []
    halted = ""
    for wait in explain_waiting(stored.net, stored.run, now, stored.holders, stored.mirrors, stored.unsent):
        match wait:
            case TransitionWaits():
                transitions.append(_transition(wait, language))
            case ActionWaits():
                actions.append(_action(wait, language))
            case PersonWaits(failure):
                persons.append(wait.text.in_language(language))
                failures.append(_failure(failure, language))
            case SecondPersonWaits(kind, subject, by, left_ms):
                persons.append(wait.text.in_language(language))
                second_persons.append(
                    WaitingSecondPerson(
                        kind=kind, subject=stated_in(subject, language), by=by, left_seconds=left_ms / 1000
                    )
                )
            case RunHalted(text):
                halted = text.in_language(language)
            case _:
                assert_never(wait)
    return PublicWaits(
        transitions=tuple(transitions),
        actions=tuple(actions),
        persons=tuple(persons),
        failures=tuple(failures),
        second_persons=tuple(second_persons),
        halted=halted,
        words=tuple(
            _words(wait, language)
            for wait in _waits(
                stored, now, languages, WaitFacts(stored.holders, stored.mirrors, stored.unsent, equipment, obstacles)
            )
        ),
    )


def _waits(stored: StoredJob, now: int, languages: Sequence[str], facts: WaitFacts) -> tuple[WaitInWords, ...]:
    if not (stored.net and stored.run):
        return ()
    return waits_in_words(stored.net, stored.run, now, languages, facts)


def _words(wait: WaitInWords, language: str) -> WordedWait:
    return WordedWait(
        kind=wait.kind.value,
        needs_person=wait.kind in NEEDS_A_PERSON,
        title=wait.title,
        text=stated_in(wait.text, language),
        ask=stated_in(wait.ask, language),
        seconds=_seconds(wait.waited_ms),
        of_seconds=_seconds(wait.allowed_ms),
        action=wait.action,
        step=wait.step,
        intervention=wait.intervention,
        locks=wait.locks,
    )


def _transition(waits: TransitionWaits, language: str) -> WaitingTransition:
    unmet = tuple(
        UnmetTerm(term=stated_in(item.text, language), because=stated_in(item.because, language))
        for item in waits.unmet
    )
    return WaitingTransition(sources=waits.sources, targets=waits.targets, condition=waits.condition, unmet=unmet)


def _action(waits: ActionWaits, language: str) -> WaitingAction:
    return WaitingAction(
        action=waits.action,
        step=waits.step,
        state=waits.state.value,
        attempt=waits.attempt,
        age_seconds=_seconds(waits.age_ms),
        left_seconds=_seconds(waits.left_ms),
        due_in_seconds=_seconds(waits.due_in_ms),
        error=None if waits.error is None else stated_in(waits.error, language),
        sent=waits.sending is not Sending.NOT_YET,
        sending=waits.sending.value,
    )


def _failure(failure: HeldFailure, language: str) -> WaitingFailure:
    return WaitingFailure(
        action=failure.action,
        step=failure.step,
        attempt=failure.attempt,
        state=failure.state.value,
        error=stated_in(failure.error, language),
        allowed=tuple(intervention.value for intervention in failure.allowed),
    )


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000

"""Decides what one signal changes: the job, its run, the commit that writes both, and the requests that follow."""

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from edge.config import UsersSettings
from edge.foundation.errors import Defect
from edge.foundation.text import Text
from edge.model.isa95 import LocalizedText
from edge.model.job_state import Cause, JobState, JobStatus, Removed, has_ended, next_status
from edge.model.recipe_name import NO_RECIPE_NAME, RecipeName
from edge.sfc.advance import advance
from edge.sfc.history import record_decision
from edge.sfc.identifiers import AssociationKey
from edge.sfc.intervention import held_failures
from edge.sfc.net import Net
from edge.sfc.run import NO_LOCK_CHANGE, NO_LOCKS, ActionState, LockChange, Outcome, Run, find_command, lock_change
from edge.sfc.signal import (
    NO_MIRRORS,
    Abort,
    Advanced,
    CommandRequest,
    Ignored,
    Intervene,
    Late,
    Mirrors,
    Pause,
    Phase,
    Resolve,
    Resume,
    Signal,
    Start,
    StepChange,
    Stop,
    Tick,
    Unknown,
    Withdrawn,
)
from edge.sfc.verdict import verdict_of
from edge.sfc.view import next_deadline
from edge.station.response import attempts, job_response
from edge.store import equipment_memory, jobs, responses, runs, work
from edge.store.commit import Commit, join
from edge.store.equipment_memory import SafingCommand
from edge.store.jobs import Job
from edge.store.keys import Keys
from edge.store.runs import MOST_DECISIONS, NO_CONSUMER, Outbox, Outgoing, StoredRun
from edge.store.work import WorkKind


def save_safing(keys: Keys, job: Job, requests: Collection[CommandRequest], now: int) -> Commit:
    """Keep the stops and resets among the commands of a decision until they are confirmed."""
    return join(
        equipment_memory.save_safing(
            keys,
            SafingCommand(
                phase=request.phase,
                command_id=request.command_id,
                type_id=request.type_id,
                scope=job.scope,
                job_id=job.job_id,
                correlation_id=job.correlation_id,
                action=request.action,
                attempt=request.attempt,
                parameters=dict(request.parameters) if request.phase is Phase.RESET else {},
                since=now,
                causation_id=job.causation_id,
                trace=dict(job.trace),
            ),
        )
        for request in requests
        if request.phase is not Phase.START
    )


class LoadedJob(Struct, frozen=True):
    """A job with its run, as last read or written; `net` is the compiled recipe that is pinned to the run."""

    job: Job
    stored: StoredRun
    net: Net
    timer: int | None = None
    """The instant in the index of timers, where it is known; it may be earlier than the next deadline."""

    def due(self, keep_ended_ms: int) -> int | None:
        """Return the instant of its next timer: the next deadline of its run, after its end its removal."""
        if self.job.ended_at is not None:
            return self.job.ended_at + keep_ended_ms
        return next_deadline(self.net, self.stored.run)

    def sent_at(self, command_id: str) -> int | None:
        """Return since when a command waits for its answer; None when it does not."""
        waiting = find_command(self.stored.run, command_id)
        return waiting.armed_at if waiting else None

    def unanswered(self) -> Outbox:
        """Return the commands of the run that wait for an answer."""
        run, actions = self.stored.run, self.net.actions
        return tuple(
            Outgoing(
                Phase.RESET if association.reset else Phase.START,
                association.command_id,
                association.step,
                actions[key.latest].type_id,
            )
            for key in sorted(run.open)
            if (association := run.associations[key]).state is ActionState.DISPATCHED
        )


class Decision(Struct, frozen=True):
    """The commit of a decision, and the state after it; `taken` is the association whose wait an event has ended.

    `at` is the instant of the decision.
    """

    loaded: LoadedJob
    commit: Commit
    requests: tuple[CommandRequest, ...]
    steps: tuple[StepChange, ...]
    due: int | None
    taken: AssociationKey | None
    at: int
    locks: LockChange = NO_LOCK_CHANGE


class NotAllowed(Struct, frozen=True):
    """The state of the job does not allow the requested method."""


class MethodRequest(Struct, frozen=True):
    """The job method behind a signal, with the comment of its caller."""

    cause: Cause
    comment: tuple[LocalizedText, ...] = ()


_STOPPED_BY: Final = "stopped by {by}"
_ABORTED_BY: Final = "aborted by {by}"
ENDED_BY: Final = {_STOPPED_BY, _ABORTED_BY}
"""The ids of the reasons of jobs that a caller has ended."""


def method_signal(cause: Cause, by: str | Text) -> Signal:
    """Return the signal of a job method for a job that runs; `by` is its caller in the reason of a stop or an abort."""
    match cause:
        case Cause.PAUSE | Cause.HOLD:
            return Pause()
        case Cause.RESUME:
            return Resume()
        case Cause.STOP:
            return Stop(Text.of(_STOPPED_BY, by=by))
        case Cause.ABORT:
            return Abort(Text.of(_ABORTED_BY, by=by))
        case _:
            raise Defect(Text.of("{cause} is not a method of a job that runs", cause=cause))


Moves = Sequence[tuple[Cause, JobStatus]]


RESOLVE = "resolve"
"""The name of a decision about an unknown outcome among those that need a second person."""


def second_person(users: UsersSettings) -> Mapping[str, int]:
    """Return the decisions that need a second person, each with the time for that in milliseconds.

    To resolve an outcome writes a result by hand, as to skip an action does: the settings may say otherwise.
    """
    needs = {"auto": "skip" in users.second_person, "on": True, "off": False}[users.second_person_resolve]
    return dict.fromkeys((*users.second_person, *((RESOLVE,) if needs else ())), users.second_person_within * 1000)


NO_SECOND: Mapping[str, int] = MappingProxyType({})
"""No decision needs a second person."""


class InstanceContext(Struct, frozen=True):
    """The facts behind every decision of an instance: its keys, its name and its retention times."""

    keys: Keys
    consumer: str
    keep_ended_ms: int
    keep_letters_ms: int
    most_decisions: int = MOST_DECISIONS
    """The number of decisions that the history of a run keeps; 0 records none."""
    second_person: Mapping[str, int] = field(default_factory=dict)
    """The interventions, and `RESOLVE`, that a second person must confirm, with the time for it in milliseconds."""


def begin(
    context: InstanceContext,
    job: Job,
    run: Run,
    net: Net,
    now: int,
    mirrors: Mirrors = NO_MIRRORS,
    recipe: RecipeName = NO_RECIPE_NAME,
) -> Decision:
    """Decide the start of a job that is allowed to start; the recipe is pinned to the run, its name to the job."""
    advanced = advance(net, run, Start(), now, mirrors)
    moves = _moves(job.status, (Cause.RUN, *_ending(advanced.run))) if isinstance(advanced, Advanced) else None
    if moves is None or isinstance(advanced, Ignored):
        raise Defect(
            Text.of(
                "a new run of job {job_id!r} in {state} does not start", job_id=job.job_id, state=job.status.state.name
            ),
            "Report this.",
        )
    stored_run = StoredRun(advanced.run, now, net.source, _outgoing(advanced))
    named = msgspec.structs.replace(job, recipe=recipe)
    after = LoadedJob(_moved(named, moves, net, advanced.run, now), stored_run, net)
    due = after.due(context.keep_ended_ms)
    parts = (
        runs.create(context.keys, stored_run, context.consumer),
        _history(context, job.job_id, (net, run, Start(), advanced), stored_run.revision, now),
        *_job_parts(context.keys, job, after, moves, now),
        runs.set_timer(context.keys, job.job_id, due),
    )
    locks = lock_change(NO_LOCKS, advanced.run.locks)
    return _decision(context, parts, replace(after, timer=due), advanced, locks, due=due, now=now)


def decide(
    context: InstanceContext,
    loaded: LoadedJob,
    unsent: Outbox,
    signal: Signal,
    request: MethodRequest | None,
    now: int,
    mirrors: Mirrors = NO_MIRRORS,
) -> Decision | Ignored | NotAllowed:
    """Decide what a signal changes; `request` is the job method behind it, if there is one.

    `unsent` holds the commands of earlier decisions about the job that this instance has yet to send.
    """
    if request and next_status(loaded.job.status.state, request.cause) is None:
        return NotAllowed()
    advanced = advance(loaded.net, loaded.stored.run, signal, now, mirrors)
    if isinstance(advanced, Ignored):
        return advanced
    has_ended_before = loaded.stored.run.ended
    moves = () if has_ended_before else _moves(loaded.job.status, _causes(request, advanced.run))
    if moves is None:
        return NotAllowed()
    if not moves and (has_ended_before or _updates_response(loaded, signal, advanced.run)):
        moves = ((Cause.RESULT_UPDATE, loaded.job.status),)
    outbox = (*unsent, *_outgoing(advanced), *_pausing(loaded, signal))
    stored_run = StoredRun(advanced.run, loaded.stored.revision + 1, loaded.stored.recipe, outbox)
    job = msgspec.structs.replace(loaded.job, comment=request.comment) if request and request.comment else loaded.job
    after = LoadedJob(_moved(job, moves, loaded.net, advanced.run, now), stored_run, loaded.net, loaded.timer)
    due = after.due(context.keep_ended_ms)
    parts = [
        runs.update(context.keys, loaded.stored, stored_run, context.consumer),
        _history(context, job.job_id, (loaded.net, loaded.stored.run, signal, advanced), stored_run.revision, now),
        *_job_parts(context.keys, loaded.job, after, moves, now),
    ]
    # A timer that is too early costs one reading of the job; setting it again at each step would cost more. A Tick
    # comes from the timer in the store: set it again, whatever the cache holds.
    if isinstance(signal, Tick) or has_ended(after.job.status) or _is_late(loaded.timer, due):
        parts.append(runs.set_timer(context.keys, job.job_id, due))
        after = replace(after, timer=due)
    locks = lock_change(loaded.stored.run.locks, advanced.run.locks)
    return _decision(context, parts, after, advanced, locks, due=due, now=now)


def end_job_without_run(context: InstanceContext, before: Job, job: Job, cause: Cause, now: int) -> Commit:
    """Return the commit that ends a job which never ran: aborted, with its response, and the timer of its removal."""
    status = JobStatus(JobState.ABORTED)
    ended = msgspec.structs.replace(
        job, status=status, ended_at=now, has_failed=cause is Cause.FAIL, revision=before.revision + 1
    )
    return join(
        (
            jobs.save(context.keys, before, ended, ((cause, status),), now),
            responses.save(context.keys, ended, job_response(ended, None)),
            runs.set_timer(context.keys, job.job_id, now + context.keep_ended_ms),
        )
    )


def _updates_response(before: LoadedJob, signal: Signal, run: Run) -> bool:
    """Return whether a decision that does not move the job has changed what the MES must know of it."""
    if isinstance(signal, (Unknown, Resolve, Intervene, Late, Withdrawn)):
        return True
    net = before.net
    return bool(net.held) and held_failures(net, run) != held_failures(net, before.stored.run)


def _is_late(timer: int | None, due: int | None) -> bool:
    """Return whether a timer is later than the next deadline."""
    return due is not None and (timer is None or timer > due)


def _history(
    context: InstanceContext, job_id: str, decided: tuple[Net, Run, Signal, Advanced], revision: int, now: int
) -> Commit:
    """Return the record of a decision, which takes the run to a revision."""
    net, before, signal, advanced = decided
    # The first revision is the instant of the start; a run of an earlier release may have another one.
    started_at = advanced.run.started_at or 0
    number = revision - started_at + 1
    if not context.most_decisions or number < 1:
        return Commit()
    record = record_decision(net, before, signal, advanced, number, now)
    return runs.append_decision(context.keys, job_id, record, started_at, context.most_decisions)


def _outgoing(advanced: Advanced) -> Outbox:
    return tuple(
        Outgoing(request.phase, request.command_id, request.step, request.type_id) for request in advanced.requests
    )


def _pausing(loaded: LoadedJob, signal: Signal) -> Outbox:
    """Return the pauses or resumes of the starts that wait for an answer."""
    match signal:
        case Pause():
            phase = Phase.PAUSE
        case Resume():
            phase = Phase.RESUME
        case _:
            return ()
    starts = (outgoing for outgoing in loaded.unanswered() if outgoing.phase is Phase.START)
    return tuple(msgspec.structs.replace(start, phase=phase) for start in starts)


def _decision(
    context: InstanceContext,
    parts: Sequence[Commit],
    after: LoadedJob,
    advanced: Advanced,
    locks: LockChange,
    *,
    due: int | None,
    now: int,
) -> Decision:
    """Return a decision with what follows from its commands, and from the end of its job."""
    job, following = after.job, []
    if advanced.requests:
        following.append(save_safing(context.keys, job, advanced.requests, now))
    if after.stored.outbox and context.consumer == NO_CONSUMER:
        following.append(work.add(context.keys, job.scope, WorkKind.SEND, job.job_id))
    if has_ended(job.status) and not after.stored.outbox:
        following.append(runs.finish(context.keys, job.job_id))
    commit = join((*parts, *following))
    return Decision(after, commit, advanced.requests, advanced.steps, due, advanced.taken, now, locks)


def _causes(request: MethodRequest | None, run: Run) -> tuple[Cause, ...]:
    """Return the causes that move the job: the request, then the end that follows; a resumed job may end at once."""
    ending = _ending(run)
    if request is None or ending == (request.cause,):
        return ending
    return (request.cause, *ending)


def _ending(run: Run) -> tuple[Cause, ...]:
    match run.outcome:
        case Outcome.RUNNING:
            return ()
        case Outcome.COMPLETED:
            return (Cause.COMPLETE,)
        case Outcome.FAILED:
            return (Cause.FAIL,)
        case Outcome.ABORTED:
            return (Cause.ABORT,)
        case Outcome.STOPPED:
            return (Cause.STOP,)


def _moves(status: JobStatus, causes: Sequence[Cause]) -> Moves | None:
    """Follow the causes through the job state machine; return None when one is not allowed in its state."""
    moves = []
    for cause in causes:
        target = next_status(status.state, cause)
        if target is None or isinstance(target, Removed):
            return None
        status = target
        moves.append((cause, status))
    return moves


def _moved(job: Job, moves: Moves, net: Net, run: Run, now: int) -> Job:
    if not moves:
        return job
    status = moves[-1][1]
    ends_now = has_ended(status) and job.ended_at is None
    return msgspec.structs.replace(
        job,
        status=status,
        started_at=job.started_at or now,
        ended_at=job.ended_at or now if has_ended(status) else None,
        error=run.error,
        verdict=verdict_of(net, run, now) if ends_now else job.verdict,
        has_failed=run.outcome is Outcome.FAILED,
        revision=job.revision + 1,
    )


def _job_parts(keys: Keys, before: Job, after: LoadedJob, moves: Moves, now: int) -> Sequence[Commit]:
    if not moves:
        return ()
    run = after.stored.run
    response = job_response(after.job, (after.net, run))
    saved = responses.save(keys, after.job, response, attempts(run), before)
    return (jobs.save(keys, before, after.job, moves, now), saved)

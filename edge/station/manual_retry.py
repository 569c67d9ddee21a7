"""What a person has retried: the work of a dead letter, and the commands of a job that have no answer."""

from typing import assert_never

import msgspec
import structlog

from edge.foundation.errors import Refused
from edge.foundation.instant import Clock
from edge.foundation.text import Text
from edge.model.job_state import Cause, JobState, JobStatus, has_ended
from edge.sfc.signal import Phase
from edge.station.job_call import next_run_id
from edge.station.runs import Runs
from edge.station.start import plan_start
from edge.store import dead_letters, jobs, runs, work
from edge.store import stream_of_samples as telemetry
from edge.store.client import Store
from edge.store.commit import Commit, Committed, join
from edge.store.dead_letters import Letter, LetterKind
from edge.store.runs import NO_CONSUMER, Outgoing
from edge.store.work import WorkKind

_STREAM_LENGTH = 100_000
"""The largest length that the settings allow: a retry trims nothing."""


async def retry_letter(store: Store, letter_id: str, letter: Letter, clock: Clock) -> None:
    """Retry the work of a letter, and remove the letter.

    A job that failed runs again from its beginning, under its id, as if the MES had cleared and stored it. A stop is
    sent again; a batch of telemetry is evaluated again. Raises Refused when there is nothing left to do, when a person
    must act first, or when secrets of what would be used again are hidden.
    """
    while True:
        match letter.kind:
            case LetterKind.COMMAND if letter.details["phase"] == Phase.STOP:
                again = await _stop(store, letter)
            case LetterKind.COMMAND | LetterKind.START | LetterKind.DECISION | LetterKind.DEADLINE:
                again = await _run(store, letter.job_id, clock())
            case LetterKind.LATE:
                advice = "Use its data where it belongs, then drop the letter."
                raise Refused("late_result", "a late result cannot be repeated", advice)
            case LetterKind.TELEMETRY | LetterKind.UNREADABLE if letter.is_redacted:
                problem = "secrets in the letter are hidden by ***, so a retry would use wrong values"
                raise Refused("redacted", problem, "Have its sender send it again, then drop the letter.")
            case LetterKind.TELEMETRY:
                # Without a producer it is evaluated although its number has passed.
                again = telemetry.append(store.keys, {**letter.details, "producer": ""}, _STREAM_LENGTH)
            case LetterKind.UNREADABLE:
                again = _enter(store, letter)
            case _:
                assert_never(letter.kind)
        commit = join((again, dead_letters.delete(store.keys, letter_id)))
        if isinstance(await store.commit(commit), Committed):
            return


async def _run(store: Store, job_id: str, now: int) -> Commit:
    job = await jobs.load(store, job_id)
    if job is None:
        raise Refused(
            "unknown_job",
            Text.of("job {job_id!r} is not stored any more", job_id=job_id),
            "Store its order: edge jobs store",
        )
    if not has_ended(job.status):
        raise Refused(
            "not_ended",
            Text.of("job {job_id!r} has not ended", job_id=job_id),
            Text.of("Look at it: edge jobs show {job_id}", job_id=job_id),
        )
    status = JobStatus(JobState.ALLOWED_TO_START)
    new = jobs.Job(
        order=job.order,
        scope=job.scope,
        status=status,
        correlation_id=next_run_id(job.correlation_id),
        comment=job.comment,
        stored_at=now,
    )
    saved = jobs.save(store.keys, None, new, ((Cause.STORE_AND_START, status),), now)
    removed = jobs.remove(store.keys, job, Cause.CLEAR, now)
    # The guards of the removal are enough: the saved job replaces the removed one in the same commit.
    return join((removed, Commit(operations=saved.operations), plan_start(store.keys, new, now)))


async def _stop(store: Store, letter: Letter) -> Commit:
    stored_run = await runs.load(store, letter.job_id)
    if stored_run is None:
        reason = Text.of("the run of job {job_id!r} is not stored any more", job_id=letter.job_id)
        raise Refused("unknown_job", reason, "Stop the equipment by hand, then drop the letter.")
    details = letter.details
    stop = Outgoing(Phase.STOP, details["command_id"], details["step"], details["type_id"])
    outbox = (*await runs.load_outbox(store, letter.job_id, NO_CONSUMER), stop)
    added = work.add(store.keys, letter.scope, WorkKind.SEND, letter.job_id)
    return join((runs.queue_commands(store.keys, stored_run, outbox, NO_CONSUMER), added))


def _enter(store: Store, letter: Letter) -> Commit:
    if not letter.details:
        raise Refused("empty", "nothing is known of what it was", "Drop it.")
    return work.add_fields(store.keys, letter.scope, letter.details)


logger = structlog.get_logger(__name__)


async def resend(active_runs: Runs, job_id: str) -> int:
    """Queue every command of a job that has no answer to be sent again; return how many.

    Equipment that recognises a repeated command id drops it; for a start that is sent once, the outcome is looked for.
    Raises Refused(`unknown_job`) for a job that does not run, Unavailable when the store is gone.
    """
    store = active_runs.store
    while True:
        loaded = await active_runs.load(job_id)
        if loaded is None or loaded.stored.run.ended:
            raise Refused(
                "unknown_job",
                Text.of("job {job_id!r} does not run", job_id=job_id),
                Text.of("Look at it: edge jobs show {job_id}", job_id=job_id),
            )
        again = tuple(msgspec.structs.replace(outgoing, again=True) for outgoing in loaded.unanswered())
        if not again:
            return 0
        waiting = await runs.load_outbox(store, job_id, NO_CONSUMER)
        outbox = tuple(dict.fromkeys((*waiting, *again)))
        parts = (
            runs.queue_commands(store.keys, loaded.stored, outbox, NO_CONSUMER),
            work.add(store.keys, loaded.job.scope, WorkKind.SEND, job_id),
        )
        active_runs.invalidate(job_id)
        if isinstance(await store.commit(join(parts)), Committed):
            logger.info("commands queued again", job=job_id, commands=len(again))
            return len(again)

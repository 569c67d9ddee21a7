"""Reads a job with its run and its response from the store, for people and programs that look at it."""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field

from edge.foundation.errors import Defect, Refused
from edge.foundation.instant import Clock, now_ms
from edge.foundation.text import Text
from edge.foundation.ticks import in_slices
from edge.model.acceptance import validate_id
from edge.model.isa95 import JobResponse
from edge.model.job_state import JobState
from edge.sfc.history import DecisionRecord, read_record
from edge.sfc.net import Net
from edge.sfc.replay import Difference, differing_fields, replay, starts_at_the_beginning
from edge.sfc.run import NO_UNSENT, Run, Sending
from edge.sfc.signal import Mirrors
from edge.station.runs import lock_holders, net_of
from edge.store import jobs, responses, runs
from edge.store.archive_backlog import JobDocuments
from edge.store.client import Store
from edge.store.jobs import Job
from edge.store.runs import StoredRun
from edge.store.set_mirrors import load_copies
from edge.store.version import DocumentTooNew

_REMOVED_WITHIN_MS = 1000
"""A command is removed from its outbox half a second after it was sent."""


class StartWait(StrEnum):
    """Why a job that has no run yet is not started."""

    START_TIME = "start time"
    """Its StartTime is ahead."""
    GATEWAY = "no gateway"
    """It may start: no gateway that serves its scope has taken it yet."""
    CALL = "not started"
    """No client has called Start."""


def start_wait(job: Job, now: int) -> StartWait:
    """Return why a job that has no run is not started; `now` is an instant of the reference clock."""
    if job.status.state is not JobState.ALLOWED_TO_START:
        return StartWait.CALL
    return StartWait.START_TIME if job.earliest_start > now else StartWait.GATEWAY


class StoredJob(Struct, frozen=True):
    """A job with its run and compiled recipe, both None before its start; `holders` hold locks for which it waits.

    `mirrors` are the copies of mirrored sets that its conditions ask for, `unsent` the commands that are not known as
    sent.
    """

    job: Job
    run: Run | None
    net: Net | None
    response: JobResponse | None
    holders: Mapping[str, Text] = field(default_factory=dict)
    mirrors: Mirrors = field(default_factory=dict)
    unsent: Mapping[str, Sending] = NO_UNSENT


async def find(store: Store, job_id: str, clock: Clock = now_ms) -> StoredJob | None:
    """Read a job; None when there is none. Raises Refused when the stored data cannot be decoded.

    `clock` is that of the jobs where `unsent` counts.
    """
    try:
        job = None if any(validate_id("JobOrderID", job_id)) else await jobs.load(store, job_id)
        stored_run = await runs.load(store, job_id) if job else None
        response = await responses.load(store, job) if job else None
        missing = stored_run.run.locks.missing if stored_run else ()
        holders = await lock_holders(store, missing) if missing else {}
        net = net_of(stored_run.recipe) if stored_run else None
        copies = await load_copies(store, net.mirrors) if net and net.mirrors else {}
    except (ValueError, KeyError) as error:
        reason = Text.of(
            "the stored data of job order {job_id!r} cannot be decoded: {reason}", job_id=job_id, reason=repr(error)
        )
        raise Refused("unreadable", reason, "Restore a backup: edge restore --help") from error
    if job is None:
        return None
    if stored_run is None:
        return StoredJob(job, None, None, response)
    unsent = _unsent(stored_run, clock(), is_current=not store.may_lack_notes)
    return StoredJob(job, stored_run.run, net, response, holders, copies, unsent)


def _unsent(stored: StoredRun, now: int, *, is_current: bool) -> Mapping[str, Sending]:
    """Return the commands that wait in an outbox, without those that may just have been sent.

    One with a begun mark may have left, and each one whose removal from the outbox may not have been committed.
    """
    waiting, due = stored.unsent, now - _REMOVED_WITHIN_MS
    associations = stored.run.associations.values() if waiting else ()
    return {
        association.command_id: Sending.NOT_YET if is_current and not association.begun else Sending.MAYBE
        for association in associations
        if association.command_id in waiting and (association.armed_at or 0) <= due
    }


async def load(store: Store, job_id: str, clock: Clock = now_ms) -> StoredJob:
    """Read a job. Raises Refused when there is none."""
    stored_job = await find(store, job_id, clock)
    if stored_job is None:
        raise Refused(
            "unknown_job", Text.of("there is no job order {job_id!r}", job_id=job_id), "Find its id: edge jobs list"
        )
    return stored_job


def of_documents(documents: JobDocuments) -> StoredJob:
    """Return the job that archived documents state. Raises Refused when they cannot be decoded."""
    try:
        stored_run = runs.read_run(documents.run, "") if documents.run else None
        return StoredJob(
            jobs.read_job(documents.job),
            stored_run.run if stored_run else None,
            net_of(stored_run.recipe) if stored_run else None,
            responses.read_response(documents.response) if documents.response else None,
        )
    except (Defect, DocumentTooNew, ValueError, KeyError) as error:
        reason = Text.of("the archived data of the job cannot be decoded: {reason}", reason=repr(error))
        raise Refused("unreadable", reason, "Read it with the release that archived it, or a later one.") from error


def recorded_of_documents(documents: JobDocuments) -> "RecordedRun | NotRecorded":
    """Return the run that archived documents state, with the records of its decisions."""
    try:
        if not documents.run:
            return NotRecorded("the job was never started")
        stored_run = runs.read_run(documents.run, "")
        net = net_of(stored_run.recipe)
        found = runs.read_decisions(documents.entries, stored_run.run.started_at or 0)
        records = tuple(read_record(net, stored_run.run, decision) for decision in found)
    except (Defect, DocumentTooNew, KeyError, ValueError) as error:
        return NotRecorded(f"the archived run cannot be read: {error}")
    return RecordedRun(stored_run, net, records) if records else NotRecorded("no decision about the job is recorded")


class RecordedRun(Struct, frozen=True):
    """The run of a job as it is stored, with its compiled recipe and the records of its decisions."""

    stored: StoredRun
    net: Net
    records: tuple[DecisionRecord, ...]


class NotRecorded(Struct, frozen=True):
    """There is nothing to show or to replay, and why."""

    reason: str


class JobReplay(Struct, frozen=True):
    """A replayed job: the number of its decisions, those that differ, and the fields that differ at the end.

    Fields are compared only for the recipe that the run has kept.
    """

    job_id: str
    decisions: int
    differences: tuple[Difference, ...]
    fields: tuple[str, ...]

    @property
    def is_same(self) -> bool:
        """Return whether the replay made the recorded decisions."""
        return not self.differences and not self.fields


async def load_recorded(store: Store, job_id: str, newest: int = 0, rest_s: float = 0.0) -> RecordedRun | NotRecorded:
    """Read the run of a job with the `newest` records of its history; with 0 all of them.

    It pauses `rest_s` seconds after each millisecond: a gateway has other work.
    """
    try:
        stored_run = await runs.load(store, job_id)
        if stored_run is None:
            return NotRecorded(f"there is no run of job {job_id!r}: a job has one once it was started")
        net = net_of(stored_run.recipe)
        stored_decisions = await runs.load_decisions(store, job_id, stored_run.run.started_at or 0, newest)
        records = tuple(
            await in_slices((read_record(net, stored_run.run, decision) for decision in stored_decisions), rest_s)
        )
    except (Defect, DocumentTooNew, KeyError, ValueError) as error:
        return NotRecorded(f"the run of job {job_id!r} cannot be read: {error}")
    if not records:
        return NotRecorded(f"no decision about job {job_id!r} is recorded: see [retention] decisions")
    return RecordedRun(stored_run, net, records)


def replay_recorded(recorded: RecordedRun, other: Net | None = None) -> JobReplay | NotRecorded:
    """Replay a run with its own recipe, or with another one."""
    run = recorded.stored.run
    if not starts_at_the_beginning(recorded.records):
        first = recorded.records[0].number
        return NotRecorded(f"the history of job {run.job_id!r} begins at decision {first}: the earlier ones are gone")
    if lost := next((record for record in recorded.records if not record.is_whole), None):
        return NotRecorded(f"the run of job {run.job_id!r} no longer keeps the result of decision {lost.number}")
    repeated = replay(other or recorded.net, run, recorded.records)
    fields = () if other else differing_fields(run, repeated.run)
    return JobReplay(run.job_id, len(recorded.records), repeated.differences, fields)

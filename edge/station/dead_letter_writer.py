"""Writes a dead letter for work that met a defect repeatedly, and fails its job."""

from typing import assert_never

import msgspec
import structlog

from edge.foundation.errors import Unavailable
from edge.foundation.text import Text
from edge.model.job_state import Cause, has_ended
from edge.sfc.signal import Abort, Answer, Ignored, Phase, Signal
from edge.station.decision import Decision, MethodRequest, NotAllowed, end_job_without_run
from edge.station.runs import NoRun, Runs
from edge.store import dead_letters, jobs, runs, work
from edge.store.background import Isolated
from edge.store.commit import Commit, Committed, Stale, join
from edge.store.dead_letters import Letter, LetterKind
from edge.store.jobs import Job
from edge.store.runs import Outgoing
from edge.store.work import UnreadableEntry, Work, WorkKind

logger = structlog.get_logger(__name__)


class DeadLetterWriter:
    """Writes dead letters. Every call raises Unavailable when the store is unavailable, and can be repeated then."""

    def __init__(self, runs: Runs) -> None:
        self._store = runs.store
        self._runs = runs

    async def work(self, asked: Work, error: Exception) -> None:
        """Write the letter of a work entry; its job ends as aborted in every state."""
        reason = _defect(_what(asked.kind), error)
        kind = LetterKind.START if asked.kind is WorkKind.START_RECIPE else LetterKind.DECISION
        letter = Letter(kind, asked.scope, asked.job_id, reason, self._runs.clock())
        done = work.acknowledge(self._store.keys, asked.scope, (asked.entry_id,))
        also = join((self._add(letter), done))
        await self._fail(asked.job_id, Abort(reason), MethodRequest(Cause.ABORT), reason, also)
        _log(letter)

    async def unreadable(self, entry: UnreadableEntry) -> None:
        """Write the letter of an unreadable entry."""
        job_id = entry.fields.get("job_id", "")
        reason = entry.reason
        letter = Letter(LetterKind.UNREADABLE, entry.scope, job_id, reason, self._runs.clock(), entry.fields)
        done = work.acknowledge(self._store.keys, entry.scope, (entry.entry_id,))
        await self._store.commit(join((self._add(letter), done)))
        _log(letter)

    async def start(self, job: Job, error: Exception, done: Commit) -> bool:
        """Write the letter of a start; its job fails. Return False when the job was changed meanwhile."""
        letter = self._start_letter(job.scope, job.job_id, error)
        ended = self._end(job, _start_reason(error))
        written = isinstance(await self._store.commit(join((ended, done, self._add(letter)))), Committed)
        if written:
            _log(letter)
        return written

    async def turn(self, scope: str, job_id: str, error: Exception) -> None:
        """Write the letter of an unreadable job in the queue of starts; the jobs after it continue."""
        letter = self._start_letter(scope, job_id, error)
        left = await jobs.plan_dequeue(self._store, scope, job_id)
        await self._store.commit(join((left, self._add(letter))))
        _log(letter)

    async def deadline(self, job_id: str, error: Exception) -> None:
        """Write the letter of a deadline; its job ends as aborted. A job that has ended is kept for another period."""
        job, now = await self._read(job_id), self._runs.clock()
        keys = self._store.keys
        if job and has_ended(job.status):
            await self._store.commit(runs.set_timer(keys, job_id, now + self._runs.context.keep_ended_ms))
            return
        reason = _defect(Text.of("its deadline"), error)
        letter = Letter(LetterKind.DEADLINE, job.scope if job else "", job_id, reason, now)
        if job is None:
            await self._store.commit(join((runs.set_timer(keys, job_id, None), self._add(letter))))
        else:
            await self._fail(job_id, Abort(reason), MethodRequest(Cause.ABORT), reason, self._add(letter))
        _log(letter)

    async def command(self, job_id: str, scope: str, outgoing: Outgoing, error: Exception) -> None:
        """Write the letter of a command, which is its answer at the job. A stop has no answer."""
        reason = Text.of("cannot be sent: {name}: {reason}", name=type(error).__name__, reason=error)
        details = {"phase": outgoing.phase.value, "command_id": outgoing.command_id}
        details |= {"step": outgoing.step, "type_id": outgoing.type_id}
        letter = Letter(LetterKind.COMMAND, scope, job_id, reason, self._runs.clock(), details)
        if outgoing.phase is Phase.STOP:
            await self._store.commit(self._add(letter))
        else:
            answer = Answer(outgoing.command_id, ok=False, data=None, error=reason)
            await self._fail(job_id, answer, None, reason, self._add(letter))
        _log(letter)

    def _start_letter(self, scope: str, job_id: str, error: Exception) -> Letter:
        return Letter(LetterKind.START, scope, job_id, _start_reason(error), self._runs.clock())

    def _add(self, letter: Letter) -> Commit:
        return dead_letters.add(self._store.keys, letter, self._runs.context.keep_letters_ms)

    async def _fail(self, job_id: str, signal: Signal, asked: MethodRequest | None, reason: Text, also: Commit) -> None:
        """Write the failure of a job by a signal, or without its run where there is none, together with `also`."""
        job = None
        try:
            match await self._runs.signal(job_id, signal, asked, lambda _: also):
                case Decision():
                    return
                case NoRun():
                    job = await jobs.load(self._store, job_id)
                case Ignored() | NotAllowed() | Stale():
                    # The job has ended or does not need the command.
                    pass
        except Unavailable:
            raise
        except Exception:
            # The defect may also prevent reading the job.
            logger.exception("job cannot be ended in order", job=job_id)
            job = await self._read(job_id)
        while job is not None and not has_ended(job.status):
            waits = await runs.plan_remove_waits(self._store, job.scope, job_id)
            if isinstance(await self._store.commit(join((self._end(job, reason), waits, also))), Committed):
                return
            job = await self._read(job_id)
        await self._store.commit(also)

    async def _read(self, job_id: str) -> Job | None:
        # Nothing more can be done for an unreadable job: the letter names it.
        with Isolated(logger, "job cannot be read", job=job_id):
            return await jobs.load(self._store, job_id)
        return None

    def _end(self, job: Job, reason: Text) -> Commit:
        failed = msgspec.structs.replace(job, error=reason)
        ended = end_job_without_run(self._runs.context, job, failed, Cause.FAIL, self._runs.clock())
        return join((ended, runs.finish(self._store.keys, job.job_id)))


def _log(letter: Letter) -> None:
    logger.error(
        "dead letter written", kind=letter.kind.value, scope=letter.scope, job=letter.job_id, reason=str(letter.reason)
    )


def _start_reason(error: Exception) -> Text:
    return Text.of("its start met a defect of this software: {name}", name=type(error).__name__)


def _defect(what: Text, error: Exception) -> Text:
    name = type(error).__name__
    return Text.of("{what} met a defect of this software: {name}: {reason}", what=what, name=name, reason=error)


def _what(kind: WorkKind) -> Text:
    match kind:
        case WorkKind.START_RECIPE:
            return Text.of("its start")
        case WorkKind.SEND:
            return Text.of("taking over what was decided of it")
        case WorkKind.LOCK:
            return Text.of("its lock")
        case _:
            assert_never(kind)

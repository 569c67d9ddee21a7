"""Takes what equipment says, answers and events, to the run it belongs to."""

import dataclasses
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

import msgspec
import structlog

from edge.errors import Refused
from edge.model.acceptance import MAX_BYTES, MAX_TEXT_LENGTH, RESERVED_ID_STARTS, validate_id
from edge.model.equipment_trace import TraceKind
from edge.model.job_state import JobState
from edge.sfc.advance import MAX_EARLY_EVENTS
from edge.sfc.command_id import parse_command_id
from edge.sfc.run import KeptEvent, is_outstanding
from edge.sfc.signal import Answer, Event, Ignored
from edge.station.decision import Decision, LoadedJob, NotAllowed
from edge.station.dispatch import command_of
from edge.station.equipment import Command, EquipmentAnswer, EquipmentEvent, Task
from edge.station.equipment_stats import EquipmentStats
from edge.station.runs import NoRun, Runs
from edge.store import dedupe, jobs, responses, runs
from edge.store.client import Store
from edge.store.commit import Commit, Stale, join
from edge.store.refused import RefusedMessage, record_refusal

logger = structlog.get_logger(__name__)

_YET_TO_START = frozenset({JobState.NOT_ALLOWED_TO_START, JobState.ALLOWED_TO_START})


class Answers:
    """The station as one piece of equipment sees it. What it takes is committed when it returns.

    Only commands of `type_ids` are the equipment's to answer; None are all.
    """

    def __init__(self, store: Store, runs: Runs, dedupe_ms: int, type_ids: Collection[str] | None = None) -> None:
        self.stats = EquipmentStats()
        """What the equipment has told us."""
        self.listeners: list[Callable[[TraceKind, Any], None]] = []
        """Who is told what passes between us and the equipment."""
        self._store = store
        self._runs = runs
        self._dedupe_ms = dedupe_ms
        self._type_ids = type_ids

    async def answer(self, answer: EquipmentAnswer) -> None:
        """Take the answer to a command; the id of the command tells whose it is, at whichever instance it arrives."""
        key = parse_command_id(answer.command_id)
        if key is None or any(validate_id("JobOrderID", key.job_id)):
            logger.warning("answer to a command that is not ours", command=answer.command_id)
            self.stats.record_ignored()
            return
        at = self._runs.clock()
        self.stats.record_contact(at)
        sent_at = _sent_at(self._runs.cached(key.job_id), answer.command_id)
        loaded = await self._runs.get(key.job_id)
        if loaded and self._is_for_other_equipment(loaded, answer.command_id):
            logger.warning("answer to a command of other equipment", job=key.job_id, command=answer.command_id)
            self.stats.record_ignored()
            return
        try:
            data, error = _kept(answer.data), answer.error and answer.error[:MAX_TEXT_LENGTH]
        except Refused as refusal:
            data, error = None, answer.error or f"its result is too large: {refusal.message}"
        signal = Answer(answer.command_id, ok=error is None, data=data, error=error)
        match await self._runs.signal(key.job_id, signal):
            case Ignored(kind, reason):
                logger.info("answer ignored", job=key.job_id, command=answer.command_id, kind=kind, reason=reason)
                self.stats.record_ignored()
            case NoRun():
                logger.info("answer ignored", job=key.job_id, command=answer.command_id, reason="the job is gone")
                self.stats.record_ignored()
            case Decision():
                self.stats.record_answer(at, sent_at, error)
            case NotAllowed() | Stale():
                pass

    def _is_for_other_equipment(self, loaded: LoadedJob, command_id: str) -> bool:
        """Tell whether a command was sent to other equipment: somebody may have learnt or guessed its id."""
        run, actions = loaded.stored.run, loaded.net.actions
        return self._type_ids is not None and any(
            run.associations[key].command_id == command_id
            and actions[key.partition("/")[0]].type_id not in self._type_ids
            for key in run.open
        )

    async def event(self, event: EquipmentEvent) -> Task | None:
        """Take an event: for the job it names, else for the one that has waited longest; else discard it.

        Raises Refused(`too_large`) for one that holds more than is kept.
        """
        self.stats.record_contact(self._runs.clock())
        event = dataclasses.replace(event, data=_kept(event.data))
        declined: set[str] = set()
        while True:
            given = await dedupe.load_answer(self._store, event.source, event.event_id)
            if given is not None:
                return msgspec.json.decode(given, type=Task | None)
            job_id = await self._addressee(event, declined)
            if job_id is None or job_id in declined:
                logger.debug("event discarded: nobody waits for it", type=event.type_id, scope=event.scope)
                self.stats.record_ignored()
                if not _names_its_job(event):
                    # It tells of a part that is gone: repeated, it must not pass the next one either.
                    await self._store.commit(self._mark(event, None))
                return None
            signal = Event(event.type_id, event.data, id=_identity(event), named=_names_its_job(event))
            match await self._runs.signal(job_id, signal, also=partial(self._mark, event)):
                case Decision() as decision:
                    return _task(decision)
                case Ignored(reason=reason):
                    logger.info("event ignored", job=job_id, type=event.type_id, reason=reason)
                    declined.add(job_id)
                case NoRun() if await self._keep(job_id, event) or await self._has_begun(job_id):
                    continue
                case NoRun() | NotAllowed():
                    logger.info("event ignored", job=job_id, type=event.type_id, reason="the job does not run")
                    declined.add(job_id)
                case Stale():
                    # The same event came in twice at a time: look again, its answer is given now.
                    continue

    async def record_refusal(self, message: RefusedMessage) -> None:
        """Keep a message that cannot be taken, for a person to look at, and count it."""
        self.stats.record_contact(self._runs.clock())
        self.stats.record_refused(message.reason)
        await self._store.commit(record_refusal(self._store.keys, message))

    async def outstanding(self, scopes: Collection[str], type_ids: Collection[str]) -> list[Command]:
        """Give the commands of these types that wait for an answer, as the store has them."""
        found: list[Command] = []
        for job_id in await runs.active_jobs(self._store):
            loaded = await self._runs.load_readable(job_id)
            if loaded and loaded.job.scope in scopes:
                found += (
                    command_of(loaded, each.phase, each.command_id, each.step)
                    for each in loaded.unanswered()
                    if each.type_id in type_ids
                )
        return found

    async def is_outstanding(self, command_id: str) -> bool:
        """Tell whether a command still waits for an answer, as the store has it."""
        key = parse_command_id(command_id)
        loaded = await self._runs.load(key.job_id) if key else None
        return loaded is not None and is_outstanding(loaded.stored.run, command_id)

    def trace(self, what: TraceKind, data: Any) -> None:
        """Hand on what passes between us and the equipment to who records it just now."""
        for watch in self.listeners:
            watch(what, data)

    async def _addressee(self, event: EquipmentEvent, declined: set[str]) -> str | None:
        """Give the job that an event is for, besides those that declined it; None when there is none."""
        if event.job_id:
            return event.job_id
        if event.correlation_id:
            return await responses.find_job(self._store, event.correlation_id)
        while job_id := await runs.longest_waiting(self._store, event.scope, event.type_id, declined):
            if self._runs.cached(job_id) or await self._runs.load_readable(job_id):
                break
            # One that nobody can read waits for ever: those behind it have their turn.
            declined.add(job_id)
        return job_id

    async def _keep(self, job_id: str, event: EquipmentEvent) -> bool:
        """Keep an event for the job it names, which has yet to start; False when it has no use for it."""
        # What cannot be the id of a job may be the name of another of our keys.
        job = None if job_id.startswith(RESERVED_ID_STARTS) else await jobs.load(self._store, job_id)
        if job is None or job.status.state not in _YET_TO_START or len(job.early) >= MAX_EARLY_EVENTS:
            return False
        kept = KeptEvent(event.type_id, _identity(event), event.data)
        after = msgspec.structs.replace(job, early=(*job.early, kept), revision=job.revision + 1)
        now = self._runs.clock()
        parts = [jobs.save(self._store.keys, job, after, (), now), self._mark(event, None)]
        if job.status.state is JobState.ALLOWED_TO_START and job.earliest_start <= now:
            parts.append(jobs.enqueue_start(self._store.keys, after))
        # Kept, or somebody was faster: either way the next look at the event tells.
        await self._store.commit(join(parts))
        return True

    async def _has_begun(self, job_id: str) -> bool:
        """Tell whether a job that had no run a moment ago has begun one."""
        return await self._runs.load(job_id) is not None

    def _mark(self, event: EquipmentEvent, decision: Decision | None) -> Commit:
        answer = msgspec.json.encode(_task(decision) if decision else None).decode()
        return dedupe.mark(self._store.keys, event.source, event.event_id, answer, self._dedupe_ms)


def _identity(event: EquipmentEvent) -> str:
    """Name an event apart from those of other sources; a source is a URI and has no blanks."""
    return f"{event.source} {event.event_id}"


def _sent_at(loaded: LoadedJob | None, command_id: str) -> int | None:
    """Tell since when a command waits for its answer; None when we do not hold its run."""
    if loaded is None:
        return None
    run = loaded.stored.run
    for key in run.open:
        each = run.associations[key]
        if each.command_id == command_id:
            return each.armed_at
    return None


def _kept(data: object) -> Any:
    """Give data as it will be read back, so that an instance that holds a run and one that loads it decide alike.

    Raises Refused(`too_large`): with each change of the job, its results go to Redis, to the MES and to OPC UA clients.
    """
    written = msgspec.json.encode(data)
    if len(written) > MAX_BYTES:
        problem = f"{len(written)} bytes of JSON, where {MAX_BYTES} can be kept"
        raise Refused("too_large", problem, "Send what recipe and MES need, and where the rest is to be found.")
    return msgspec.json.decode(written)


def _names_its_job(event: EquipmentEvent) -> bool:
    return bool(event.job_id or event.correlation_id)


def _task(decision: Decision) -> Task | None:
    """Give the work an event was used for; None when it is kept for later."""
    if decision.taken is None:
        return None
    action, run = decision.loaded.net.actions[decision.taken], decision.loaded.stored.run
    return Task(run.job_id, action.name, action.parameters | run.parameters)

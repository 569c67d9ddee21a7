"""Applies the events of one piece of equipment to the jobs that wait for them, each event once."""

import functools

import msgspec
import structlog
from msgspec import Struct

from edge.foundation.rate_limit import LogThrottle
from edge.model.acceptance import RESERVED_ID_STARTS
from edge.model.job_state import JobState
from edge.sfc.advance import MAX_EARLY_EVENTS
from edge.sfc.run import KeptEvent
from edge.sfc.signal import Event, Ignored
from edge.station.decision import Decision, NotAllowed
from edge.station.equipment import EquipmentEvent, Kept, NoRoom, Task
from edge.station.equipment_watch import EquipmentStats
from edge.station.runs import NoRun, Runs
from edge.station.start import plan_start
from edge.store import dedupe, jobs, responses, runs
from edge.store.commit import Absent, Commit, Stale, join
from edge.store.dedupe import DiscardedEvent, equipment_sender

EventReply = Task | Kept | None
"""The work that the event was used for, that it is kept for its job, or None when it was discarded."""


def reply_of(decision: Decision) -> EventReply:
    """Return the reply to an event that a run has used or kept."""
    run = decision.loaded.stored.run
    if decision.taken is None:
        return Kept(run.job_id)
    action = decision.loaded.net.actions[decision.taken]
    return Task(run.job_id, action.name, action.parameters | run.parameters)


def encode_reply(reply: EventReply) -> str:
    """Encode a reply for the store."""
    return msgspec.json.encode(reply if isinstance(reply, Task) else _Stored(reply.job_id) if reply else None).decode()


def decode_reply(text: str) -> EventReply:
    """Decode a stored reply, also of an earlier release: a kept event was stored as discarded.

    Raises Refused(`repeated_id`) for the answer to a message that is not an event.
    """
    found = msgspec.json.decode(text)
    if found is None:
        return None
    if isinstance(found, dict) and "kept" in found:
        return Kept(found["kept"])
    try:
        return msgspec.convert(found, Task)
    except msgspec.ValidationError:
        raise dedupe.repeated_id() from None


class _Stored(msgspec.Struct, frozen=True):
    kept: str


logger = structlog.get_logger(__name__)

_YET_TO_START = frozenset({JobState.NOT_ALLOWED_TO_START, JobState.ALLOWED_TO_START})


class _NewEvent(Struct, frozen=True):
    """An event that has no reply yet; `discarded` is how it is remembered when no job takes it, None for no need."""

    discarded: DiscardedEvent | None
    has_room: bool = True


class EquipmentEvents:
    """The events of the equipment `name`. The effect of an event is committed when `apply` returns."""

    def __init__(self, runs: Runs, name: str, dedupe_ms: int, stats: EquipmentStats) -> None:
        self._store = runs.store
        self._runs = runs
        self._name = name
        self._sender = equipment_sender(name)
        self._dedupe_ms = dedupe_ms
        self._stats = stats
        self._faults = LogThrottle(logger)

    async def apply(self, event: EquipmentEvent) -> EventReply:
        """Apply an event to the job it names, else to the job that has waited longest; else discard it.

        Raises Unavailable while the equipment has used its share of the marks, and without the store.
        """
        declined: set[str] = set()
        while True:
            given = await self._reply_given(event)
            if not isinstance(given, _NewEvent):
                return given
            job_id = await self._addressee(event, declined)
            if job_id is None or job_id in declined:
                if not _names_its_job(event) and (task := await self._take_elsewhere(event)) is not None:
                    return task
                if await self._discard(event, given):
                    return None
                continue
            if fault := dedupe.room_fault(self._store, self._sender):
                raise NoRoom(fault, "Find the sender with: edge marks list")
            signal = Event(event.type_id, event.data, id=_identity(event), named=_names_its_job(event))
            taken = functools.partial(self._mark_taken, event, given)
            match await self._runs.signal(job_id, signal, also=taken):
                case Decision() as decision:
                    return reply_of(decision)
                case Ignored(reason=reason):
                    self._log_ignored(event, job_id, str(reason))
                    declined.add(job_id)
                case NoRun() if await self._keep(job_id, event) or await self._has_begun(job_id):
                    continue
                case NoRun() | NotAllowed():
                    self._log_ignored(event, job_id, "the job does not run")
                    declined.add(job_id)
                case Stale():  # the same event was decided elsewhere: its committed reply is read now
                    continue

    async def _take_elsewhere(self, event: EquipmentEvent) -> Task | None:
        """Return what an event that no job waits for was used for."""
        for take in self._runs.event_takers:
            if (task := await take(self._name, event)) is not None:
                return task
        return None

    def _log_ignored(self, event: EquipmentEvent, job_id: str, reason: str) -> None:
        key = f"{event.type_id} {reason}"
        self._faults.info("event ignored", key, job=job_id, type=event.type_id, reason=reason, equipment=self._name)

    async def _addressee(self, event: EquipmentEvent, declined: set[str]) -> str | None:
        """Return the job for an event, without the jobs that declined it; None when there is none."""
        if event.job_id:
            return event.job_id
        if event.correlation_id:
            return await responses.find_job(self._store, event.correlation_id)
        while job_id := await runs.longest_waiting(self._store, event.scope, event.type_id, declined):
            if self._runs.cached(job_id) or await self._runs.load_readable(job_id):
                break
            # An unreadable run would wait without end: use the next one.
            declined.add(job_id)
        return job_id

    async def _keep(self, job_id: str, event: EquipmentEvent) -> bool:
        """Keep an event for the job it names, which has not started; return False when the job cannot use it."""
        # A text that is not a valid job id could form the name of another key.
        job = None if job_id.startswith(RESERVED_ID_STARTS) else await jobs.load(self._store, job_id)
        if job is None or job.status.state not in _YET_TO_START or len(job.early) >= MAX_EARLY_EVENTS:
            return False
        kept_event = KeptEvent(event.type_id, _identity(event), event.data)
        after = msgspec.structs.replace(job, early=(*job.early, kept_event), revision=job.revision + 1)
        now = self._runs.clock()
        parts = [jobs.save(self._store.keys, job, after, (), now), self._mark(event, Kept(job_id))]
        if job.status.state is JobState.ALLOWED_TO_START:
            # Writing the job removes it from the queue of starts.
            parts.append(plan_start(self._store.keys, after, now))
        # Kept, or decided elsewhere: either way the committed reply is read next.
        await self._store.commit(join(parts))
        return True

    async def _has_begun(self, job_id: str) -> bool:
        """Return whether a job that had no run a moment ago has begun one."""
        return await self._runs.load(job_id) is not None

    async def _reply_given(self, event: EquipmentEvent) -> _NewEvent | EventReply:
        """Return the reply that was given to an event, or that it is new."""
        keys, marked = self._store.keys, dedupe.query_answer(self._store.keys, event.source, event.event_id)
        if _names_its_job(event):
            given = await self._store.fetch(marked)
            return _NewEvent(None) if given is None else decode_reply(given)
        new = DiscardedEvent(self._name, event.source, event.event_id, self._runs.clock())
        store_query, known_before, room = new.query_known(keys), new.query_known_before(keys), new.query_room(keys)
        replies = await self._store.fetch_all(marked, store_query, known_before, room)
        if (text := replies.value(marked)) is not None:
            return decode_reply(text)
        if replies.value(store_query) or replies.value(known_before):
            self._stats.record_ignored()
            return None
        return _NewEvent(new, has_room=replies.value(room))

    async def _discard(self, event: EquipmentEvent, new: _NewEvent) -> bool:
        """Discard an event that no job waits for; return False when another instance has decided about it."""
        # The event belongs to an earlier part: its repetition must not pass the next part either.
        if new.discarded and new.has_room:
            answered = Absent(self._store.keys.cededupe(dedupe.digest(event.source, event.event_id)))
            remembered = new.discarded.remember(self._store.keys)
            if isinstance(await self._store.commit(join((remembered, Commit((answered,))))), Stale):
                return False
        logger.debug("event discarded", type=event.type_id, scope=event.scope)
        self._stats.record_ignored()
        return True

    def _mark_taken(self, event: EquipmentEvent, new: _NewEvent, decision: Decision) -> Commit:
        guards = new.discarded.guards(self._store.keys) if new.discarded else Commit()
        return join((guards, self._mark(event, reply_of(decision))))

    def _mark(self, event: EquipmentEvent, reply: EventReply) -> Commit:
        keys, text = self._store.keys, encode_reply(reply)
        return dedupe.mark(keys, event.source, event.event_id, text, self._dedupe_ms, self._sender)


def _identity(event: EquipmentEvent) -> str:
    """Return the identity of an event among all sources; a source is a URI without blanks."""
    return f"{event.source} {event.event_id}"


def _names_its_job(event: EquipmentEvent) -> bool:
    return bool(event.job_id or event.correlation_id)

"""Executes job method calls: the eleven methods of ISA95JobOrderReceiverObjectType.

The facts for a call are read in one round trip, and a recipe that is not cached in a second one. The guards of the
commit of the call detect later changes. What was accepted lately is remembered: a failover loses what the new primary
had not received, and who ordered such a job has the answer that it was accepted.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Final, TypeAlias, assert_never

import msgspec
import structlog
from msgspec import Struct

from edge.access.mode import ModeWatch
from edge.foundation.instant import Clock, now_ms
from edge.foundation.listeners import notify
from edge.foundation.rate_limit import LogThrottle
from edge.foundation.text import Text
from edge.model.acceptance import Allowed, refusal_reasons, validate_id, validate_order
from edge.model.event_types import METHOD_TYPE
from edge.model.isa95 import IdCall, JobOrder, OrderCall, ReturnStatus
from edge.model.job_state import (
    NEW,
    ORDER_METHODS,
    STATE_TEXTS,
    Cause,
    JobState,
    JobStatus,
    Removed,
    next_status,
    timed_status,
)
from edge.sfc.signal import Ignored, Signal
from edge.station.decision import Decision, MethodRequest, NotAllowed, end_job_without_run, method_signal
from edge.station.job_call import CallAnswer, JobCall, StoredAnswer, call_digest, refuse_expired, run_id_of
from edge.station.retention import plan_removal
from edge.station.runs import NoRun, Runs
from edge.station.start import FoundRecipe, NoRecipe, RecipeLookup, plan_start
from edge.store import dedupe, ended_jobs, jobs, resources
from edge.store.client import Store
from edge.store.commit import Commit, Committed, Stale, join
from edge.store.dead_letters import RefusedMessage, record_decline
from edge.store.dedupe import caller
from edge.store.jobs import Job
from edge.store.keys import Keys
from edge.store.query import Replies, StoreQuery


class CallIdentity(Struct, frozen=True):
    """The identity of a call, under which its answer is stored: source and id of its event, and its transaction."""

    source: str
    event_id: str
    scope: str
    transaction: str | None


class OrderFacts(Struct, frozen=True):
    """What Store, StoreAndStart and Update depend on.

    `allowed` holds the named resources that the scope allows, `removed_at` is when a job of this id was removed.
    `undelivered` counts the ended jobs whose result the MES has not received in time.
    """

    before: Job | None
    removed_at: int | None
    allowed: Allowed
    open_jobs: int
    undelivered: int
    recipe: FoundRecipe | NoRecipe | None

    @property
    def guard(self) -> Commit:
        """Return the guard that the recipe is unchanged."""
        return self.recipe.guard if isinstance(self.recipe, FoundRecipe) else Commit()


def _answer_queries(keys: Keys, identity: CallIdentity) -> tuple[StoreQuery[str | None], ...]:
    """Return the queries of the stored answer to a call: that to its event, then that of its transaction."""
    event = dedupe.query_answer(keys, identity.source, identity.event_id)
    if identity.transaction is None:
        return (event,)
    return (event, dedupe.query_transaction_answer(keys, identity.scope, identity.transaction))


def _stored_answer(replies: Replies, queries: Iterable[StoreQuery[str | None]]) -> str | None:
    """Return the first stored answer; None when the call is new."""
    return next((answer for query in queries if (answer := replies.value(query)) is not None), None)


async def read_answer(store: Store, identity: CallIdentity) -> str | None:
    """Return the stored answer to a call; None when it is new."""
    queries = _answer_queries(store.keys, identity)
    return _stored_answer(await store.fetch_all(*queries), queries)


async def read_order_facts(
    store: Store, identity: CallIdentity, order: JobOrder, recipes: RecipeLookup | None
) -> str | OrderFacts:
    """Return the stored answer to a call with an order, else the facts for its plan."""
    keys, scope = store.keys, identity.scope
    answered = _answer_queries(keys, identity)
    before = jobs.query_job(keys, order.job_order_id)
    removed_at = dedupe.query_removal(keys, order.job_order_id)
    allowed = resources.query_named(keys, scope, order)
    open_jobs, waiting = jobs.query_open_count(keys, scope), ended_jobs.query_undelivered(keys, scope)
    replies = await store.fetch_all(*answered, before, removed_at, allowed, open_jobs, waiting)
    if (answer := _stored_answer(replies, answered)) is not None:
        return answer
    return OrderFacts(
        before=replies.value(before),
        removed_at=replies.value(removed_at),
        allowed=replies.value(allowed),
        open_jobs=replies.value(open_jobs),
        undelivered=replies.value(waiting),
        recipe=await recipes.find(scope, order) if recipes else None,
    )


async def read_job(store: Store, identity: CallIdentity, job_id: str) -> str | Job | None:
    """Return the stored answer to a call about a stored job, else the job."""
    answered, job = _answer_queries(store.keys, identity), jobs.query_job(store.keys, job_id)
    replies = await store.fetch_all(*answered, job)
    answer = _stored_answer(replies, answered)
    return replies.value(job) if answer is None else answer


_MOST: Final = 1000
_WITHIN_MS: Final = 600_000
_SHOWN_MS: Final = 3_600_000
"""How long a loss is a problem of the gateway: a person compares the orders then."""
_MOST_IN_LINE: Final = 100
_MOST_EXAMPLES: Final = 3
_ORDERS: Final = frozenset({Cause.STORE, Cause.STORE_AND_START})

logger = structlog.get_logger(__name__)


class _Acceptance(Struct, frozen=True):
    """When a call was answered, and when its sender sent it, each in milliseconds since the epoch."""

    at: int
    sent_at: int


class AcceptedJobs:
    """The latest accepted jobs of each store, by its prefix; a job that was removed on request is forgotten."""

    def __init__(self, clock: Clock = now_ms) -> None:
        self._clock = clock
        self._accepted: OrderedDict[tuple[str, str], _Acceptance] = OrderedDict()
        self._lost: Mapping[str, float] = {}
        self._lost_at = 0

    def note(self, prefix: str, call: JobCall, answer: CallAnswer, host_ms: int) -> None:
        """Record the effect of a call that was answered, at an instant of the clock of the store's host."""
        if answer.status is not ReturnStatus.NO_ERROR:
            return
        match call.arguments:
            case OrderCall(job_order=order) if call.method in _ORDERS:
                now = self._clock()
                self._accepted[prefix, order.job_order_id] = _Acceptance(now, min(call.sent_at or host_ms, host_ms))
                if len(self._accepted) > _MOST:
                    self._accepted.popitem(last=False)
            case arguments if call.method in {Cause.CANCEL, Cause.CLEAR} and not isinstance(arguments, OrderCall):
                self._accepted.pop((prefix, arguments.job_order_id), None)

    async def report_lost(self, store: Store) -> None:
        """Log the jobs that this store does not have, a hundred in a line, and forget them. Raises Unavailable.

        One with a tombstone was removed: by any gateway, by a command, or at the end of its retention.
        """
        now, prefix = self._clock(), store.keys.prefix
        recent = [
            name
            for (of, name), acceptance in self._accepted.items()
            if of == prefix and now - acceptance.at < _WITHIN_MS
        ]
        missing = await jobs.missing(store, recent)
        queries = [dedupe.query_removal(store.keys, job_id) for job_id in missing]
        removals, lost = await store.fetch_all(*queries), dict[str, float]()
        for job_id, query in zip(missing, queries, strict=True):
            accepted, removed_at = self._accepted.pop((prefix, job_id)), removals.value(query)
            if removed_at is None or removed_at < accepted.sent_at:
                lost[job_id] = (now - accepted.at) / 1000
        if lost:
            self._lost, self._lost_at = lost, now
        for start in range(0, len(lost), _MOST_IN_LINE):
            part = dict(islice(lost.items(), start, start + _MOST_IN_LINE))
            logger.error("accepted jobs lost in a failover", count=len(lost), accepted_seconds_ago=part)

    def problems(self) -> Iterator[Text]:
        """Yield a sentence about the last loss, for an hour."""
        if self._lost and self._clock() - self._lost_at < _SHOWN_MS:
            count, examples = len(self._lost), ", ".join(islice(self._lost, _MOST_EXAMPLES))
            if count == 1:
                yield Text.of("1 accepted job was lost in a failover: {job}", job=examples)
            else:
                more = f"{examples}, …" if count > _MOST_EXAMPLES else examples
                yield Text.of("{count} accepted jobs were lost in a failover: {jobs}", count=count, jobs=more)


_RUN_STATES = frozenset({JobState.RUNNING, JobState.INTERRUPTED})


class _Change(Struct, frozen=True):
    """The call changes the stored job; `due` is the instant at which the job is due because of it."""

    commit: Commit
    due: int | None = None


class _ToRun(Struct, frozen=True):
    """The call is for the running recipe: it decides, and job and run are written together."""

    job_id: str
    signal: Signal


class _ToRemove(Struct, frozen=True):
    """The job is to be removed, with all that it has left but a tombstone."""

    job: Job


_NOTHING = _Change(Commit())
_Plan: TypeAlias = _Change | CallAnswer | _ToRun | _ToRemove
_DONE = CallAnswer(ReturnStatus.NO_ERROR)
_REMOVED = "the job order was removed after this call was sent"
_UNDELIVERED = "{count} results wait for the MES: subscribe to them, clear them, or export them with edge jobs export"
_BEGIN_WORK = ORDER_METHODS | {Cause.START, Cause.RESUME}
"""The methods that are refused while no new call can be marked; those that end work are not."""
_START_WORK = frozenset({Cause.STORE_AND_START, Cause.START, Cause.RESUME})
"""The methods that a maintenance mode refuses."""
_UNKNOWN = CallAnswer(ReturnStatus.UNKNOWN_JOB_ORDER_ID, ("no such job order in this scope",))


class JobService:
    """Executes job methods for every interface."""

    def __init__(
        self,
        store: Store,
        runs: Runs,
        max_job_orders: int,
        dedupe_ms: int,
        wall: Clock | None = None,
        recipes: RecipeLookup | None = None,
        max_undelivered: int | None = None,
        mode: ModeWatch | None = None,
        accepted_jobs: AcceptedJobs | None = None,
    ) -> None:
        """Create the service; `wall` is the clock of expiry times; the clock of the runs may lag behind it.

        With `recipes`, an order that cannot run is refused when it is stored, not only at its start. With
        `max_undelivered`, so are orders while that many results wait for the MES. With `mode`, calls that start work
        are refused during maintenance.
        """
        self._store = store
        self._runs = runs
        self._max_job_orders = max_job_orders
        self._dedupe_ms = dedupe_ms
        self._wall = wall or runs.clock
        self._recipes = recipes
        self._max_undelivered = max_undelivered
        self._mode = mode
        self._accepted_jobs = accepted_jobs or AcceptedJobs()
        self._refusals = LogThrottle(logger)
        self.listeners: list[Callable[[int], None]] = []
        """Called with the StartTime, in milliseconds since the epoch, of a job that has to wait for it."""

    @property
    def runs(self) -> Runs:
        """Return the runs on which this service works."""
        return self._runs

    @property
    def dedupe_ms(self) -> int:
        """Return how long a call is remembered, in milliseconds."""
        return self._dedupe_ms

    async def call(self, call: JobCall) -> CallAnswer:
        """Execute a call; its effect is in the store when this returns.

        Raises Unavailable when the store is unavailable, Refused(`expired`) for an expired call,
        Refused(`repeated_id`) when another message, or a call with other content, had its source and id.
        """
        answer = await self._execute(call)
        self._accepted_jobs.note(self._store.keys.prefix, call, answer, self._wall())
        return answer

    async def _execute(self, call: JobCall) -> CallAnswer:
        while True:
            facts = await self._read(call)
            if isinstance(facts, str):
                await self._store.settle()
                return _repeated(call, facts)
            if call.method in _BEGIN_WORK and (fault := dedupe.room_fault(self._store, caller(call.source))):
                # Answered without a mark: the same call may be sent again later.
                no_room = CallAnswer(ReturnStatus.UNABLE_TO_ACCEPT_JOB_ORDER, (fault,))
                self._log_refusal(call, no_room)
                return no_room
            if refusal := await self._refuse_in_maintenance(call):
                self._log_refusal(call, refusal)
                return refusal
            refuse_expired(call.expires_at, self._wall())
            answer = await self._carry_out(call, self._plan(call, facts))
            if answer is not None:
                if answer.reasons:
                    self._log_refusal(call, answer)
                return answer

    def _log_refusal(self, call: JobCall, answer: CallAnswer) -> None:
        key = f"{call.scope} {call.method} {answer.reason}"
        self._refusals.warning(
            "job method refused", key, method=call.method, scope=call.scope, reason=str(answer.reason)
        )

    async def _refuse_in_maintenance(self, call: JobCall) -> CallAnswer | None:
        """Return the refusal of a call that would start work; without a mark, so that it may be sent again later."""
        mode = self._mode
        if mode is None or mode.in_force is None or call.method not in _START_WORK:
            return None
        # The mode may have been switched off since the last look.
        await mode.refresh()
        if mode.in_force is None:
            return None
        return CallAnswer(ReturnStatus.UNABLE_TO_ACCEPT_JOB_ORDER, (mode.message(call.languages),))

    async def _refresh(self, stale_key: str) -> None:
        """Drop what is old after a stale commit."""
        if self._recipes:
            self._recipes.forget(stale_key)
        if self._mode:
            await self._mode.refresh_after(stale_key)

    async def _read(self, call: JobCall) -> str | OrderFacts | Job | None:
        """Return the stored answer to a call, else the facts for its plan."""
        transaction = _transaction_of(call) if _has_transaction(call) else None
        identity = CallIdentity(call.source, call.event_id, call.scope, transaction)
        match call.arguments:
            case OrderCall(job_order=order) if _may_be_stored(order.job_order_id):
                return await read_order_facts(self._store, identity, order, self._recipes)
            case IdCall(job_order_id=job_id) if _may_be_stored(job_id):
                return await read_job(self._store, identity, job_id)
            case _:
                return await read_answer(self._store, identity)

    def _plan(self, call: JobCall, facts: OrderFacts | Job | None) -> _Plan:
        match call.arguments, facts:
            case OrderCall(job_order=order), _ if faults := validate_order(order):
                return CallAnswer(ReturnStatus.INVALID_REQUEST, tuple(faults))
            case OrderCall() as arguments, OrderFacts() as found:
                return self._plan_order(call, arguments, found)
            case IdCall() as arguments, Job() as job if job.scope == call.scope:
                return self._plan_change(call, arguments, job)
            case _:
                return _UNKNOWN

    async def _carry_out(self, call: JobCall, plan: _Plan) -> CallAnswer | None:
        """Execute a plan; return None when another instance was faster and the call has to be planned again."""
        match plan:
            case _Change():
                return await self._write(call, plan, _DONE)
            case CallAnswer():
                return await self._write(call, _NOTHING, plan)
            case _ToRun(job_id, signal):
                return await self._signal_run(call, job_id, signal)
            case _ToRemove(job):
                # By the clock of the caller, which also sets the time of its orders.
                removed_at = call.sent_at or self._wall()
                now = self._runs.clock()
                removal = await plan_removal(self._store, job, call.method, now, removed_at, self._dedupe_ms)
                return await self._write(call, _Change(removal), _DONE)
            case _:
                assert_never(plan)

    async def _write(self, call: JobCall, change: _Change, answer: CallAnswer) -> CallAnswer | None:
        parts = [change.commit, self._mark(call, answer)]
        if answer.reasons:
            parts.append(record_decline(self._store.keys, _declined(call, answer)))
        match await self._store.commit(join(parts)):
            case Committed():
                if change.due is not None:
                    notify(self.listeners, change.due)
                return answer
            case Stale(key):
                await self._refresh(key)
                return None

    async def _signal_run(self, call: JobCall, job_id: str, signal: Signal) -> CallAnswer | None:
        method_request = MethodRequest(call.method, call.arguments.comment or ())
        match await self._runs.signal(job_id, signal, method_request, lambda _: self._mark(call, _DONE)):
            case Decision():
                return _DONE
            case Ignored(reason=reason):
                return await self._write(call, _NOTHING, CallAnswer(ReturnStatus.INVALID_JOB_ORDER_STATUS, (reason,)))
            case NotAllowed() | NoRun():
                return await self._write(call, _NOTHING, _not_in_this_state(call.method, None))
            case Stale(key):
                await self._refresh(key)
                return None

    def _plan_order(self, call: JobCall, arguments: OrderCall, facts: OrderFacts) -> _Change | CallAnswer:
        """Plan Store, StoreAndStart and Update."""
        before, allowed = facts.before, facts.allowed
        if call.method is Cause.UPDATE:
            if before is None or before.scope != call.scope:
                return _UNKNOWN
            if next_status(before.status.state, Cause.UPDATE) is None:
                return _not_in_this_state(call.method, before.status)
        elif before is not None:
            if before.correlation_id == run_id_of(call) and before.order != arguments.job_order:
                # The call was forgotten, its job is still here and was updated since.
                raise dedupe.repeated_id()
            return CallAnswer(ReturnStatus.INVALID_JOB_ORDER_STATUS, ("a job order of this id is stored already",))
        elif facts.removed_at is not None and call.sent_at is not None and call.sent_at <= facts.removed_at:
            # The order was sent before its job was stored and removed: a broker delivered it again.
            return CallAnswer(ReturnStatus.INVALID_JOB_ORDER_STATUS, (_REMOVED,))
        if reasons := refusal_reasons(arguments.job_order, allowed):
            return CallAnswer(ReturnStatus.UNABLE_TO_ACCEPT_JOB_ORDER, tuple(reasons))
        if isinstance(facts.recipe, NoRecipe):
            return CallAnswer(ReturnStatus.UNABLE_TO_ACCEPT_JOB_ORDER, (facts.recipe.reason,))
        if before is not None:
            return self._replace(call, before, arguments, facts)
        limit = self._max_job_orders if allowed.max_job_orders is None else allowed.max_job_orders
        if facts.open_jobs >= limit:
            reason = Text.of(
                "the station holds {limit} job orders that have not ended, and may hold no more", limit=limit
            )
            return CallAnswer(ReturnStatus.UNABLE_TO_ACCEPT_JOB_ORDER, (reason,))
        if self._max_undelivered is not None and facts.undelivered >= self._max_undelivered:
            reason = Text.of(_UNDELIVERED, count=facts.undelivered)
            return CallAnswer(ReturnStatus.UNABLE_TO_ACCEPT_JOB_ORDER, (reason,))
        return self._store_new(call, arguments, facts, limit)

    def _replace(self, call: JobCall, before: Job, arguments: OrderCall, facts: OrderFacts) -> _Change:
        job = msgspec.structs.replace(
            before,
            order=arguments.job_order,
            comment=arguments.comment or (),
            causation_id=call.event_id,
            trace=call.trace,
            revision=before.revision + 1,
        )
        now = self._runs.clock()
        saved = jobs.save(self._store.keys, before, job, ((Cause.UPDATE, job.status),), now)
        return self._with_start(join((saved, facts.guard)), job, now)

    def _store_new(self, call: JobCall, arguments: OrderCall, facts: OrderFacts, limit: int) -> _Change:
        now = self._runs.clock()
        job = Job(
            order=arguments.job_order,
            scope=call.scope,
            status=NEW[call.method],
            correlation_id=run_id_of(call),
            comment=arguments.comment or (),
            stored_at=now,
            causation_id=call.event_id,
            trace=call.trace,
        )
        job = _timed(job, job.status, now)
        saved = jobs.save(self._store.keys, None, job, ((call.method, job.status),), now)
        guards = (jobs.require_capacity(self._store.keys, job, limit), facts.guard)
        return self._with_start(join((saved, *guards)), job, now)

    def _plan_change(self, call: JobCall, arguments: IdCall, job: Job) -> _Plan:
        """Plan the methods that name a stored job order."""
        target = next_status(job.status.state, call.method)
        if target is None:
            return _not_in_this_state(call.method, job.status)
        now = self._runs.clock()
        if isinstance(target, Removed):
            return _ToRemove(job)
        if job.status.state in _RUN_STATES:
            return _ToRun(job.job_id, method_signal(call.method, call.by))
        remarked = msgspec.structs.replace(job, comment=arguments.comment or job.comment)
        if call.method is Cause.ABORT:
            aborted = msgspec.structs.replace(remarked, error=Text.of("aborted by {by}", by=call.by))
            return _Change(end_job_without_run(self._runs.context, job, aborted, call.method, now))
        moved = _timed(msgspec.structs.replace(remarked, revision=job.revision + 1), target, now)
        saved = jobs.save(self._store.keys, job, moved, ((call.method, moved.status),), now)
        return self._with_start(saved, moved, now)

    def _with_start(self, saved: Commit, job: Job, now: int) -> _Change:
        """Add the start of a job to its commit when the job is allowed to start."""
        if job.status.state is not JobState.ALLOWED_TO_START:
            return _Change(saved)
        started = join((saved, plan_start(self._store.keys, job, now)))
        return _Change(started, job.earliest_start if job.earliest_start > now else None)

    def _mark(self, call: JobCall, answer: CallAnswer) -> Commit:
        text = msgspec.json.encode(answer).decode()
        keys = self._store.keys
        kept = msgspec.json.encode(StoredAnswer(answer.status, answer.reasons, call_digest(call))).decode()
        marked = dedupe.mark(keys, call.source, call.event_id, kept, self._dedupe_ms)
        if self._mode and call.method in _START_WORK and answer.status is ReturnStatus.NO_ERROR:
            marked = join((self._mode.guard, marked))
        if not _has_transaction(call):
            return marked
        transaction = _transaction_of(call)
        if answer.status is ReturnStatus.NO_ERROR:
            commit = dedupe.mark_transaction(keys, call.scope, transaction, text, self._dedupe_ms, call.source)
            return join((marked, commit))
        # A declined call may be retried, unless another call of the same transaction has succeeded.
        return join((marked, dedupe.transaction_is_new(keys, call.scope, transaction)))


def _timed(job: Job, status: JobStatus, now: int) -> Job:
    """Return a job that has yet to start with its status: Waiting while its StartTime lies ahead."""
    return msgspec.structs.replace(job, status=timed_status(status, is_early=job.earliest_start > now))


def _repeated(call: JobCall, stored: str) -> CallAnswer:
    """Return the stored answer to a repeated call. Raises Refused(`repeated_id`) for one with other content."""
    stored_answer = dedupe.decode_answer(stored, StoredAnswer)
    if stored_answer.digest and stored_answer.digest != call_digest(call):
        raise dedupe.repeated_id()
    return CallAnswer(stored_answer.status, stored_answer.reasons)


def _declined(call: JobCall, answer: CallAnswer) -> RefusedMessage:
    return RefusedMessage(
        way=call.source,
        event_type=METHOD_TYPE.format(call.method),
        event_id=call.event_id,
        kind="declined",
        reason=Text.of("ReturnStatus {status}: {reason}", status=Text(answer.status.words), reason=answer.reason),
        payload=msgspec.json.encode(call.arguments),
    )


def _may_be_stored(job_id: str) -> bool:
    """Return whether a text can be the id of a job: other texts could form the name of another key."""
    return not any(validate_id("JobOrderID", job_id))


def _has_transaction(call: JobCall) -> bool:
    return call.transaction != ""


def _transaction_of(call: JobCall) -> str:
    """Return the name of a transaction: a transaction has one call of each method."""
    return call.transaction if call.method is Cause.STORE_AND_START else f"{call.method}\n{call.transaction}"


def _not_in_this_state(method: Cause, status: JobStatus | None) -> CallAnswer:
    reason = (
        Text.of("{method} is not allowed in state {state}", method=method, state=STATE_TEXTS[status.state])
        if status
        else Text.of("{method} is not allowed in its present state", method=method)
    )
    return CallAnswer(ReturnStatus.INVALID_JOB_ORDER_STATUS, (reason,))

"""Starts jobs in the order of the queue of starts: finds the recipe and begins the run, or fails the job."""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Sequence
from typing import Any

import msgspec
import structlog
from msgspec import Struct

from edge.access.mode import ModeWatch
from edge.foundation.backoff import MOST_TRIES, delay_after_defects
from edge.foundation.errors import Unavailable
from edge.foundation.instant import Clock
from edge.foundation.text import Text, join_texts
from edge.model.isa95 import JobOrder, Parameter
from edge.model.job_state import Cause, JobState
from edge.model.json_value import plain_value
from edge.model.recipe import RECIPE_DATASCHEMA, is_recipe_schema
from edge.model.recipe_name import NO_RECIPE_NAME, RecipeName
from edge.sfc.advance import advance
from edge.sfc.compiler import RejectedRecipe
from edge.sfc.net import Net
from edge.sfc.run import new_run
from edge.sfc.signal import Advanced, Event
from edge.station.dead_letter_writer import DeadLetterWriter
from edge.station.decision import begin, end_job_without_run
from edge.station.runs import Runs
from edge.station.sender import Dispatch
from edge.store import instance_leases, jobs, resources, runs, work
from edge.store.client import Store
from edge.store.commit import Commit, Committed, Stale, join
from edge.store.jobs import Job
from edge.store.keys import Keys
from edge.store.version import DocumentTooNew
from edge.store.work import Work, WorkKind

_UNGUARDED = Commit()


class FoundRecipe(Struct, frozen=True):
    """The compiled recipe of a job order, and its parameters by id; `guard` fails once the Work Master has changed."""

    net: Net
    parameters: dict[str, Any]
    guard: Commit = _UNGUARDED
    name: RecipeName = NO_RECIPE_NAME


class _KnownMaster(Struct, frozen=True):
    """The recipe of a Work Master as read last."""

    net: Net
    parameters: tuple[Parameter, ...] | None
    guard: Commit
    name: RecipeName


class NoRecipe(Struct, frozen=True):
    """The reason why a job order cannot run."""

    reason: Text


_MAX_KNOWN = 64


class RecipeLookup:
    """Finds recipes in the Work Masters of a scope and caches them.

    A cached recipe may be old: a commit that uses it takes its guard. When the guard fails, call `forget`.
    """

    def __init__(
        self,
        store: Store,
        compiler: Callable[[str], Net | RejectedRecipe],
        unrouted: Callable[[Net], Sequence[str]] = lambda _: (),
        mirrors: Collection[str] = (),
    ) -> None:
        """Create the lookup; `unrouted` returns the command types of a recipe that no equipment takes.

        `mirrors` are the names of the mirrored sets that there are.
        """
        self._store = store
        self._compiler = compiler
        self._unrouted = unrouted
        self._mirrors = frozenset(mirrors)
        self._known: dict[tuple[str, str], _KnownMaster] = {}

    def forget(self, stale: str) -> None:
        """Remove the recipes of the Work Master at a key from the cache."""
        for name, known_master in tuple(self._known.items()):
            if any(guard.key == stale for guard in known_master.guard.guards):
                del self._known[name]

    async def find(self, scope: str, order: JobOrder) -> FoundRecipe | NoRecipe:
        """Return the recipe of an order. Raises Unavailable when the store is gone."""
        masters = order.work_master_id or ()
        if not masters:
            return NoRecipe(Text.of("the job order names no Work Master"))
        if len(masters) > 1:
            return NoRecipe(Text.of("the job order names {count} Work Masters; name one", count=len(masters)))
        work_master = masters[0]
        known = self._known.get((scope, work_master.id)) or await self._load(scope, work_master.id)
        if isinstance(known, NoRecipe):
            return known
        if unrouted := self._unrouted(known.net):
            return NoRecipe(Text.of("no equipment takes commands of type {types}", types=", ".join(unrouted)))
        if absent := sorted(known.net.mirrors - self._mirrors):
            return NoRecipe(
                Text.of(
                    "its conditions ask for a mirror that this gateway has not: [mirror.{mirror}]", mirror=absent[0]
                )
            )
        parameters = merged_parameters(known.parameters, work_master.parameters, order.job_order_parameters)
        return FoundRecipe(known.net, parameters, known.guard, known.name)

    async def _load(self, scope: str, work_master_id: str) -> _KnownMaster | NoRecipe:
        found = await resources.load_work_master_at_revision(self._store, work_master_id, scope)
        if found is None:
            return NoRecipe(
                Text.of("Work Master {work_master!r} is not known to this station", work_master=work_master_id)
            )
        master = found.work_master
        if not is_recipe_schema(master.dataschema):
            return NoRecipe(
                Text.of(
                    "Work Master {work_master!r} holds no SFC recipe (dataschema {dataschema})",
                    work_master=work_master_id,
                    dataschema=RECIPE_DATASCHEMA,
                )
            )
        net = self._compiler(msgspec.json.encode(master.data).decode())
        if isinstance(net, RejectedRecipe):
            faults = join_texts("; ", net.texts)
            return NoRecipe(
                Text.of(
                    "the recipe of Work Master {work_master!r} is refused: {faults}",
                    work_master=work_master_id,
                    faults=faults,
                )
            )
        known_master = _KnownMaster(net, master.parameters, Commit(guards=(found.revision,)), found.recipe)
        self._known[scope, work_master_id] = known_master
        if len(self._known) > _MAX_KNOWN:
            del self._known[next(iter(self._known))]
        return known_master


def merged_parameters(*lists: tuple[Parameter, ...] | None) -> dict[str, Any]:
    """Merge parameters by id: those of a later list replace those of an earlier one."""
    return {parameter.id: _plain(parameter) for parameters in lists for parameter in parameters or ()}


def _plain(parameter: Parameter) -> object:
    if parameter.subparameters:
        return {subparameter.id: _plain(subparameter) for subparameter in parameter.subparameters}
    return plain_value(parameter.value)


logger = structlog.get_logger(__name__)


class Starter:
    """Performs the work `start_recipe`."""

    def __init__(
        self,
        store: Store,
        runs: Runs,
        dispatch: Dispatch,
        mode: ModeWatch | None = None,
        mirrors: Collection[str] = (),
    ) -> None:
        """Create the starter; during a maintenance mode of `mode` jobs stay in the queue of starts.

        `mirrors` are the names of the mirrored sets for conditions.
        """
        self._mode = mode
        self._store = store
        self._runs = runs
        self._recipes = RecipeLookup(store, runs.compiled, dispatch.unrouted, mirrors)
        self._dead_letters = DeadLetterWriter(runs)
        self._in_hand: set[str] = set()
        self._choosing = asyncio.Lock()

    async def start(self, entry: Work) -> None:
        """Begin the run of the job whose turn it is, and acknowledge the work, in one commit.

        There is at least one such work entry for each job in the queue of starts. An entry may start another job than
        the one that caused it: the queue decides. Raises Unavailable when the store is unavailable, TooNew when only
        jobs of a newer release are left.
        """
        done = work.acknowledge(self._store.keys, entry.scope, (entry.entry_id,))
        if await self._is_left_queued(done):
            return
        seen: set[str] = set()
        finished = False
        left: DocumentTooNew | None = None
        while not finished:
            chosen, expected = await self._choose(entry, seen)
            if chosen is None and left:
                raise left
            if chosen is None:
                # The job was revoked, cancelled, postponed, or started by an earlier entry.
                await self._store.commit(done)
                return
            job_id, queued = chosen
            try:
                finished = await self._start(entry.scope, job_id, done, expected, queued=queued)
            except DocumentTooNew as error:
                left = error
            finally:
                seen.add(job_id)
                self._in_hand.discard(job_id)

    async def _is_left_queued(self, done: Commit) -> bool:
        """Acknowledge work during maintenance without a start: the jobs stay queued, and a sweep adds their work again.

        Kept entries would fill the worker, and delay the commands behind them.
        """
        mode = self._mode
        while mode is not None and mode.in_force is not None:
            if isinstance(await self._store.commit(join((mode.guard, done))), Committed):
                return True
            await mode.refresh()
        return False

    async def _choose(self, entry: Work, seen: set[str]) -> tuple[tuple[str, bool] | None, Job | None]:
        """Return the first job that no other entry is starting here, and whether it is in the queue of starts.

        The job that caused the entry is read in the same round trip, because it is usually the first.
        """
        async with self._choosing:
            passed = self._in_hand | seen
            keys = self._store.keys
            queue = jobs.query_queued_starts(keys, entry.scope, len(passed) + 1)
            asked = jobs.query_job(keys, entry.job_id)
            replies = await self._store.fetch_all(queue, asked)
            first, expected = replies.value(queue), None
            # An unreadable job is handled when its turn comes.
            with contextlib.suppress(Exception):
                expected = replies.value(asked)
            # The requested job comes last: it is in the queue, or its entry is older than the queue.
            for job_id in (*first, entry.job_id):
                if job_id not in passed:
                    self._in_hand.add(job_id)
                    return (job_id, job_id in first), expected
        return None, expected

    async def _start(self, scope: str, job_id: str, done: Commit, expected: Job | None, *, queued: bool) -> bool:
        """Start a job, or fail it; return False when it must not start now or cannot be read.

        `expected` is the job that was read before the queue was known; it may be another one.
        """
        tries = 0
        while True:
            job = None
            try:
                job = expected if expected and expected.job_id == job_id else await jobs.load(self._store, job_id)
                expected = None
                if job is None or job.status.state is not JobState.ALLOWED_TO_START:
                    return False
                if self._mode and self._mode.in_force:
                    return False
                if not queued and job.earliest_start > self._runs.clock():
                    await self._wait_for_start_time(job)
                    return False
                if await self._begin(job, done):
                    return True
            except (Unavailable, DocumentTooNew):
                raise
            except Exception as error:
                # It must not delay the jobs after it, nor fail the job of the entry, which may be another one.
                logger.exception("start met a defect", job=job_id)
                tries += 1
                if tries < MOST_TRIES:
                    await asyncio.sleep(delay_after_defects(tries))
                elif job is None:
                    await self._dead_letters.turn(scope, job_id, error)
                    return False
                elif await self._dead_letters.start(job, error, done):
                    return True

    async def _wait_for_start_time(self, job: Job) -> None:
        """Set the timer of a job whose StartTime has not come; a job in the queue of starts is not judged again."""
        planned = plan_start(self._store.keys, job, self._runs.clock())
        await self._store.commit(join((jobs.unchanged(self._store.keys, job.job_id, job), planned)))

    async def _begin(self, job: Job, done: Commit) -> bool:
        """Begin the run of a job, or fail the job at once; return False when the job was changed meanwhile."""
        found = await self._recipes.find(job.scope, job.order)
        if isinstance(found, NoRecipe):
            return await self._fail(job, found.reason, done)
        net = found.net
        run = new_run(job.job_id, job.scope, job.correlation_id, found.parameters)
        for event in job.early:
            kept = advance(net, run, Event(event.type_id, event.data, event.id, named=True), self._runs.clock())
            run = kept.run if isinstance(kept, Advanced) else run
        mirrors = self._runs.mirrors_for(net)
        decision = begin(self._runs.context, job, run, net, self._runs.clock(), mirrors, found.name)
        guards = (found.guard, self._mode.guard) if self._mode else (found.guard,)
        result = await self._runs.commit(decision, join((*guards, done)))
        if isinstance(result, Stale):
            self._recipes.forget(result.key)
            if self._mode:
                await self._mode.refresh_after(result.key)
        return isinstance(result, Committed)

    async def _fail(self, job: Job, reason: Text, done: Commit) -> bool:
        logger.error("job fails at its start", job=job.job_id, scope=job.scope, reason=str(reason))
        failed = msgspec.structs.replace(job, error=reason)
        commit = end_job_without_run(self._runs.context, job, failed, Cause.FAIL, self._runs.clock())
        return isinstance(await self._store.commit(join((commit, done))), Committed)


def plan_start(keys: Keys, job: Job, now: int) -> Commit:
    """Return the commit that queues a job that is allowed to start, or sets the timer of its StartTime."""
    if job.earliest_start > now:
        return runs.set_timer(keys, job.job_id, job.earliest_start)
    return join(
        (
            jobs.enqueue_start(keys, job),
            runs.set_timer(keys, job.job_id, None),
            work.add(keys, job.scope, WorkKind.START_RECIPE, job.job_id),
        )
    )


SWEEP_INTERVAL_S = 60.0


class StartSweep:
    """Repairs the queue of starts of some scopes once a minute.

    A job without a timer returns to the queue; a queue that is longer than its work stream gets work entries; work of
    an unregistered consumer is claimed, and `on_claimed` is called.
    """

    def __init__(
        self,
        store: Store,
        scopes: Collection[str],
        clock: Clock,
        on_claimed: Callable[[], None],
        interval_s: float = SWEEP_INTERVAL_S,
        mode: ModeWatch | None = None,
    ) -> None:
        """Create the sweep; during a maintenance mode of `mode` it adds no work, and it runs at once after its end."""
        self._store = store
        self._scopes = tuple(scopes)
        self._clock = clock
        self._on_claimed = on_claimed
        self._interval_s = interval_s
        self._mode = mode
        self._wake = asyncio.Event()
        if mode:
            mode.listeners.append(lambda _: self._wake.set())

    async def run(self) -> None:
        """Run a sweep at each interval until cancelled."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._interval_s):
                    await self._wake.wait()
            self._wake.clear()
            try:
                await self.sweep()
            except Unavailable as error:
                logger.debug("store unavailable, retrying", task="start sweep", reason=error.message)
            except Exception:
                # A scope that cannot be repaired must not end the gateway; the next sweep tries again.
                logger.exception("start sweep failed")

    async def sweep(self) -> None:
        """Repair every scope once."""
        await work.create_groups(self._store, self._scopes)
        for scope in self._scopes:
            await self._return_jobs(scope)
            if not (self._mode and self._mode.in_force):
                await self._add_entries(scope)
            await self._claim_strays(scope)

    async def _return_jobs(self, scope: str) -> None:
        keys = self._store.keys
        open_ids = await jobs.list_open(self._store, scope)
        allowed = await jobs.load_allowed(self._store, open_ids)
        queued = set(await jobs.queued_starts(self._store, scope, len(open_ids) + 1))
        timed = await runs.jobs_with_timer(self._store, [job.job_id for job in allowed])
        for job in allowed:
            if job.job_id in queued or job.job_id in timed or job.status.state is not JobState.ALLOWED_TO_START:
                continue
            planned = plan_start(keys, job, self._clock())
            result = await self._store.commit(join((jobs.unchanged(keys, job.job_id, job), planned)))
            if isinstance(result, Committed):
                logger.warning("job returned to the queue of starts", job=job.job_id, scope=scope)

    async def _add_entries(self, scope: str) -> None:
        queued = await jobs.queued_starts(self._store, scope, _MOST_QUEUED)
        missing = len(queued) - await work.length(self._store, scope)
        if missing > 0:
            added = [work.add(self._store.keys, scope, WorkKind.START_RECIPE, job_id) for job_id in queued[:missing]]
            await self._store.commit(join(added))
            logger.warning("work entries added", scope=scope, entries=missing)

    async def _claim_strays(self, scope: str) -> None:
        for stray in await instance_leases.unregistered(
            self._store, scope, await work.pending_consumers(self._store, scope)
        ):
            claimed = await work.claim_from(self._store, stray, (scope,))
            if claimed:
                logger.warning("work claimed", scope=scope, former=stray, entries=claimed)
                self._on_claimed()


_MOST_QUEUED = 10_000

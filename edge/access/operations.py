"""Schedules operations and decides their states; executes those that are due.

One runs at a time on a store, whichever gateway executes it.
"""

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Final, TypeAlias, assert_never

import structlog
from msgspec import Struct
from msgspec.structs import replace

from edge.access.locks import hold_lock
from edge.foundation.errors import EdgeError, Refused, unwrap_group
from edge.foundation.task_group import TaskGroup
from edge.foundation.text import Text
from edge.model.lock import LockKind
from edge.model.plant import Operation, OperationState, OperationType
from edge.store import operations
from edge.store.background import poll_store, renewal
from edge.store.client import Store
from edge.store.commit import NOTHING, Commit, Committed, join
from edge.store.operations import StoredOperation
from edge.store.server_time import server_time

INTERRUPTED: Final = Text.of("interrupted")
"""The error of an operation whose owner died."""


class Claim(Struct, frozen=True):
    """An instance begins it; it owns it until an instant."""

    owner: str
    until: int


class Renew(Struct, frozen=True):
    """Its owner lives, and reports the present stage."""

    owner: str
    until: int
    text: str | Text = ""


class Finish(Struct, frozen=True):
    """Its owner has completed it, or it failed with an error."""

    owner: str
    result: str | Text = ""
    error: str | Text = ""


class Cancel(Struct, frozen=True):
    """A person cancels it: at once while it waits, else its owner ends it."""

    by: str


class Interrupt(Struct, frozen=True):
    """Nothing but time: its owner may be dead."""


OperationEvent: TypeAlias = Claim | Renew | Finish | Cancel | Interrupt


def transition(operation: Operation, event: OperationEvent, now: int) -> Operation | None:
    """Return the operation after an event; None when the event is not possible in its state."""
    state = operation.state
    match event:
        case Claim(owner, until) if state is OperationState.SCHEDULED and operation.due <= now:
            return replace(operation, state=OperationState.RUNNING, owner=owner, until=until, started=now)
        case Renew(owner, until, text) if state is OperationState.RUNNING and operation.owner == owner:
            return replace(operation, until=until, text=text)
        case Finish(owner, result, error) if state is OperationState.RUNNING and operation.owner == owner:
            if operation.cancelled_by and error:
                return _ended(operation, OperationState.CANCELLED, now)
            ended = _ended(operation, OperationState.FAILED if error else OperationState.DONE, now)
            return replace(ended, result=result, error=error)
        case Cancel(by) if state is OperationState.SCHEDULED:
            return replace(_ended(operation, OperationState.CANCELLED, now), cancelled_by=by)
        case Cancel(by) if state is OperationState.RUNNING:
            return replace(operation, cancelled_by=by)
        case Interrupt() if state is OperationState.RUNNING and (operation.until or 0) <= now:
            return replace(_ended(operation, OperationState.FAILED, now), error=INTERRUPTED)
        case Claim() | Renew() | Finish() | Cancel() | Interrupt():
            return None
        case _:
            assert_never(event)


def next_at(time_of_day: str, now: datetime) -> datetime:
    """Return the next instant at which clocks of the zone of `now` show HH:MM. Raises ValueError for another form."""
    at = time.strptime(time_of_day, "%H:%M")
    today = now.replace(hour=at.tm_hour, minute=at.tm_min, second=0, microsecond=0)
    return today if today > now else today + timedelta(days=1)


def _ended(operation: Operation, state: OperationState, now: int) -> Operation:
    return replace(operation, state=state, ended=now, until=None)


logger = structlog.get_logger(__name__)

LEASE_MS: Final = 10_000
ONE_AT_A_TIME: Final = "any"
"""The object of the lock that every operation holds."""
_LOOK_EVERY_S = 1.0
_LOOKS_PER_CHECK = 5
"""The owners are checked at every fifth look only: the lease of a dead one takes longer to expire."""
_REPORT_EVERY_S = 0.5

Report: TypeAlias = Callable[[float, str | Text], None]
"""Receives the progress of an operation, from 0 to 100, and its present stage."""
Executor: TypeAlias = Callable[[Operation, Report], Coroutine[Any, Any, str | Text]]
"""Executes an operation and returns its result. Raises EdgeError."""
_Stage: TypeAlias = tuple[float, str | Text]


async def schedule_operation(
    store: Store,
    type: OperationType,
    by: str,
    due: int,
    arguments: Mapping[str, str],
    *,
    daily: str = "",
    also: Callable[[], Awaitable[Commit]] | None = None,
) -> Operation:
    """Schedule an operation and return it; `also` adds to each attempt of the commit. Raises Unavailable."""
    now = await server_time(store)
    operation = Operation(
        id=uuid.uuid4().hex[:12], type=type, by=by, due=max(due, 0), created=now, arguments=arguments, daily=daily
    )
    while True:
        added = await also() if also else NOTHING
        if isinstance(await store.commit(join((operations.create(store.keys, operation), added))), Committed):
            return operation


async def change_operation(
    store: Store, id: str, event: OperationEvent, also: Callable[[], Awaitable[Commit]] | None = None
) -> Operation:
    """Apply an event to an operation and return it after the commit.

    Raises Refused (`unknown_operation`, `invalid_state`), and Unavailable when the store is gone.
    """
    while True:
        stored_operation = await operations.load(store, id)
        if stored_operation is None:
            raise Refused(
                "unknown_operation", Text.of("there is no operation {id!r}.", id=id), "List them: edge operations list"
            )
        after = transition(stored_operation.operation, event, await server_time(store))
        if after is None:
            raise Refused(
                "invalid_state",
                Text.of("operation {id} is {state}.", id=id, state=stored_operation.operation.state),
                "It cannot be changed so.",
            )
        added = await also() if also else NOTHING
        saved = operations.save(store.keys, stored_operation, after, stored_operation.progress)
        if isinstance(await store.commit(join((saved, added))), Committed):
            return after


def _accepts_all(_: Operation) -> bool:
    return True


class OperationRunner:
    """Executes the due operations of a store for one instance."""

    def __init__(
        self,
        store: Store,
        instance: str,
        executors: Mapping[OperationType, Executor],
        wall: Callable[[], datetime],
        look_every_s: float = _LOOK_EVERY_S,
        lease_ms: int = LEASE_MS,
        accepts: Callable[[Operation], bool] = _accepts_all,
    ) -> None:
        """Create the runner; `wall` returns the local time, by which daily operations are scheduled again.

        Operations that it does not accept are left to other instances.
        """
        self._store = store
        self._instance = instance
        self._executors = executors
        self._wall = wall
        self._look_every_s = look_every_s
        self._lease_ms = lease_ms
        self._accepts = accepts
        self._looks = 0

    async def run(self) -> None:
        """Execute until cancelled; retry while the store is unavailable."""
        await poll_store(self._store.defects, "operations", self.look, self._look_every_s)

    async def look(self) -> None:
        """Execute the operations that are due; first, at every fifth look, fail those of dead owners.

        Raises Unavailable without the store.
        """
        now, due = await operations.read_due(self._store, self._executors)
        if self._looks % _LOOKS_PER_CHECK == 0:
            await self._fail_interrupted(await operations.load_all(self._store), now)
        self._looks += 1
        for id in due:
            with suppress(Refused):  # another instance executes an operation
                await self._execute_alone(id)

    async def _now(self) -> int:
        return await server_time(self._store)

    async def _fail_interrupted(self, stored: Sequence[StoredOperation], now: int) -> None:
        for stored_operation in stored:
            if after := transition(stored_operation.operation, Interrupt(), now):
                commit = operations.save(self._store.keys, stored_operation, after, stored_operation.progress)
                if isinstance(await self._store.commit(commit), Committed):
                    logger.error("operation interrupted", operation=after.id, type=after.type, owner=after.owner)
        ended = [operation for operation in stored if operation.operation.has_ended]
        for item in ended[operations.KEPT :]:
            await self._store.commit(operations.remove(self._store.keys, item))

    async def _execute_alone(self, id: str) -> None:
        stored_operation = await operations.load(self._store, id)
        if stored_operation is None or not self._accepts(stored_operation.operation):
            return
        owner = f"{self._instance} {uuid.uuid4().hex[:8]}"
        async with hold_lock(self._store, LockKind.OPERATION, ONE_AT_A_TIME, owner, Text.of("operation {id}", id=id)):
            operation = await operations.load(self._store, id)
            now = await self._now()
            claimed = transition(operation.operation, Claim(owner, now + self._lease_ms), now) if operation else None
            if operation is None or claimed is None:
                return
            again = self._repetition(claimed, now)
            commit = join((operations.save(self._store.keys, operation, claimed, 0.0), again))
            if isinstance(await self._store.commit(commit), Committed):
                logger.info("operation started", operation=id, type=claimed.type, by=claimed.by)
                await self._execute(claimed)

    def _repetition(self, operation: Operation, now: int) -> Commit:
        """Return the commit that schedules a daily operation again."""
        if not operation.daily:
            return NOTHING
        due = round(next_at(operation.daily, self._wall()).timestamp() * 1000)
        again = Operation(
            id=uuid.uuid4().hex[:12],
            type=operation.type,
            by=operation.by,
            due=due,
            created=now,
            arguments=operation.arguments,
            daily=operation.daily,
        )
        return operations.create(self._store.keys, again)

    async def _execute(self, operation: Operation) -> None:
        latest: list[_Stage] = [(0.0, "")]
        try:
            result = await self._work(operation, latest)
            finish = Finish(operation.owner, error=Text.of("cancelled"))
            if result is not None:
                finish, latest[0] = Finish(operation.owner, result=result), (100.0, "")
        except EdgeError as error:
            finish = Finish(operation.owner, error=error.text)
        except Exception as error:  # a defect in one operation must not stop the others
            logger.exception("operation failed", operation=operation.id)
            cause = error.exceptions[0] if isinstance(error, ExceptionGroup) else error
            finish = Finish(operation.owner, error=f"{type(cause).__name__}: {cause}")
        await self._save(operation.id, finish, latest[0][0])
        logger.info("operation ended", operation=operation.id, type=operation.type, error=str(finish.error) or None)

    async def _work(self, operation: Operation, latest: list[_Stage]) -> str | Text | None:
        """Return the result of an operation, None when it was cancelled; its lease is renewed meanwhile.

        The work never continues alone: without its lease another instance executes the operation.
        """

        def report(progress: float, text: str | Text) -> None:
            latest[0] = (min(100.0, max(0.0, progress)), text)

        with unwrap_group():
            async with TaskGroup() as tasks:
                work = tasks.create_task(self._executors[operation.type](operation, report))
                lease = tasks.create_task(self._keep(operation, latest, work), name=f"lease of {operation.id}")
                work.add_done_callback(lambda _: lease.cancel())
        return None if work.cancelled() else work.result()

    async def _keep(self, operation: Operation, latest: list[_Stage], work: asyncio.Task[str | Text]) -> None:
        """Renew the lease with the progress until cancelled; cancel the work when a person asked for it."""

        async def renew() -> None:
            progress, text = latest[0]
            with renewal(Text.of("the lease of operation {id}", id=operation.id)):
                after = await self._save(
                    operation.id, Renew(operation.owner, await self._now() + self._lease_ms, text), progress
                )
            if after is None or after.cancelled_by:
                work.cancel()

        await poll_store(self._store.defects, "operation", renew, _REPORT_EVERY_S)

    async def _save(self, id: str, event: OperationEvent, progress: float) -> Operation | None:
        """Apply an event with the progress; return None when the operation is no longer ours."""
        while True:
            stored_operation = await operations.load(self._store, id)
            after = transition(stored_operation.operation, event, await self._now()) if stored_operation else None
            if stored_operation is None or after is None:
                return None
            if isinstance(
                await self._store.commit(operations.save(self._store.keys, stored_operation, after, progress)),
                Committed,
            ):
                return after


def listed(stored: StoredOperation, now: int) -> Operation:
    """Return an operation as it is shown: one whose owner is dead is shown as failed before a gateway has seen it."""
    return transition(stored.operation, Interrupt(), now) or stored.operation

"""Execute the calls of the MES and of sidecars about the gateway: its maintenance mode, and the locks of the store."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

import msgspec

from edge.access.audit_trail import AuditTrail, plan_append
from edge.access.localization import localize
from edge.access.locks import delete_locks, find_locks
from edge.access.mode import ModeRequest, SwitchOff, SwitchOn, mode_in_force, switch_mode
from edge.foundation.errors import Refused
from edge.model.cloudevent import CloudEvent
from edge.model.event_types import LOCKS_METHOD_TYPE, MAINTENANCE_METHOD_TYPE
from edge.model.instant import milliseconds, utc
from edge.model.isa95 import ReturnStatus
from edge.model.lock import LockCall, LockKind, LocksAnswer, lock_info
from edge.model.plant import MAINTENANCE_METHODS, Maintenance, MaintenanceAnswer, MaintenanceCall, MaintenanceKind
from edge.northbound.reply import CallEffect, Handler, arguments_of, call_record, languages_of, replying
from edge.store import dedupe, mode
from edge.store.client import Store
from edge.store.commit import Commit
from edge.store.locks import StoredLock
from edge.store.server_time import server_time


class MaintenanceCalls:
    """The maintenance mode as the MES switches it."""

    def __init__(
        self,
        store: Store,
        trail: AuditTrail,
        switched: Callable[[], Awaitable[object]],
        running: Callable[[], int],
        dedupe_ms: int,
    ) -> None:
        """Record each switch in `trail`; `running` counts the jobs that have not ended.

        `switched` is called after each switch.
        """
        self._store = store
        self._trail = trail
        self._switched = switched
        self._running = running
        self._dedupe_ms = dedupe_ms

    @property
    def table(self) -> Mapping[str, Handler]:
        """Return the calls by their CloudEvents type."""
        return {
            MAINTENANCE_METHOD_TYPE.format(method): replying(partial(self.call, method))
            for method in MAINTENANCE_METHODS
        }

    async def call(self, method: str, event: CloudEvent, origin: str) -> MaintenanceAnswer:
        """Execute a method of MAINTENANCE_METHODS; the same event again has no second effect. Raises Refused."""
        call = arguments_of(event, MaintenanceCall, "Send Message, Until, Now, Gateway and By, or none.", {})
        if method == "Show" or await dedupe.load_answer(self._store, event.source, event.id) is not None:
            return await self._answer(event)
        request = _mode_request(method, call, event.source)
        change = CallEffect(f"maintenance {method.lower()}", call.gateway or "*", call.message, call.by)
        record = call_record(self._trail, event, origin, change)
        mark = dedupe.mark(self._store.keys, event.source, event.id, method, self._dedupe_ms)
        clock, keep = self._trail.clock, self._trail.keep
        await switch_mode(self._store, call.gateway, request, record, clock, keep, mark)
        self._trail.copy(record)
        await self._switched()
        return await self._answer(event)

    async def _answer(self, event: CloudEvent) -> MaintenanceAnswer:
        maintenance = mode_in_force(await mode.load(self._store, self._trail.instance))
        if maintenance is None:
            return MaintenanceAnswer(return_status=ReturnStatus.NO_ERROR, on=False, running_jobs=self._running())
        message = localize(maintenance.message, await mode.load_texts(self._store), languages_of(event))
        return maintenance_answer(maintenance, message, self._running())


def maintenance_answer(found: Maintenance, message: str, running_jobs: int) -> MaintenanceAnswer:
    """Return a mode that is on as it is sent."""
    return MaintenanceAnswer(
        return_status=ReturnStatus.NO_ERROR,
        on=True,
        kind=found.kind,
        message=message,
        since=utc(found.since) if found.since else None,
        until=None if found.until is None else utc(found.until),
        by=found.by,
        running_jobs=running_jobs,
    )


def _mode_request(method: str, call: MaintenanceCall, source: str) -> ModeRequest:
    if method == "Off":
        return SwitchOff()
    kind = MaintenanceKind.NOW if call.now else MaintenanceKind.DRAIN
    return SwitchOn(call.by or source, kind, call.message, None if call.until is None else milliseconds(call.until))


class LockCalls:
    """The locks of the store as the MES sees them."""

    def __init__(self, store: Store, trail: AuditTrail) -> None:
        self._store = store
        self._trail = trail

    @property
    def table(self) -> Mapping[str, Handler]:
        """Return the calls by their CloudEvents type."""
        return {
            LOCKS_METHOD_TYPE.format("List"): replying(self.list_locks),
            LOCKS_METHOD_TYPE.format("Delete"): replying(self.delete),
        }

    async def list_locks(self, event: CloudEvent, _origin: str) -> LocksAnswer:
        """Return the locks of a kind, or all. Raises Refused for wrong arguments."""
        return await self._answer(
            await self._find(arguments_of(event, LockCall, "Send Kind, Ids, Force and By, or none.", {}))
        )

    async def delete(self, event: CloudEvent, origin: str) -> LocksAnswer:
        """Delete locks and return them. Raises Refused for wrong arguments, and while an owner lives."""
        call = arguments_of(event, LockCall, "Send Kind, Ids, Force and By, or none.", {})
        stored_locks = await self._find(call)
        action = "locks delete --force" if call.force else "locks delete"
        subject = ", ".join(f"{lock.kind} {lock.object_id}" for lock in stored_locks) or "-"
        record = call_record(self._trail, event, origin, CallEffect(action, subject, by=call.by))

        async def audit(_: Sequence[StoredLock]) -> Commit:
            return await plan_append(self._store, [record], self._trail.keep)

        try:
            await delete_locks(self._store, stored_locks, audit, force=call.force)
        except Refused as refusal:
            self._trail.record(msgspec.structs.replace(record, status=refusal.message))
            raise
        self._trail.copy(record)
        return await self._answer(stored_locks)

    async def _find(self, call: LockCall) -> list[StoredLock]:
        kinds = (call.kind,) if call.kind else tuple(LockKind)
        return await find_locks(self._store, kinds, call.ids)

    async def _answer(self, found: Sequence[StoredLock]) -> LocksAnswer:
        now = await server_time(self._store)
        locks = tuple(lock_info(lock.kind, lock.object_id, lock.lock, now) for lock in found if lock.lock)
        return LocksAnswer(return_status=ReturnStatus.NO_ERROR, locks=locks)

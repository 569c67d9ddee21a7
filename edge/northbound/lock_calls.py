"""Execute the lock methods of the MES and of sidecars: list locks, and delete those of dead owners."""

from collections.abc import Mapping, Sequence

import msgspec

from edge.access.audit_trail import AuditTrail, plan_append
from edge.access.locks import delete_locks, find_locks
from edge.foundation.errors import Refused
from edge.model.audit import AuditRecord
from edge.model.cloudevent import CloudEvent
from edge.model.event_types import LOCKS_METHOD_TYPE
from edge.model.isa95 import ReturnStatus, read_payload
from edge.model.lock import LockKind
from edge.model.lock_message import LockCall, LocksAnswer, lock_info
from edge.northbound.further_calls import FurtherCall, replying
from edge.store.client import Store
from edge.store.commit import Commit
from edge.store.locks import StoredLock
from edge.store.server_time import server_time


class LockCalls:
    """The locks of the store as the MES sees them."""

    def __init__(self, store: Store, trail: AuditTrail) -> None:
        self._store = store
        self._trail = trail

    @property
    def table(self) -> Mapping[str, FurtherCall]:
        """Return the calls by their CloudEvents type."""
        return {
            LOCKS_METHOD_TYPE.format("List"): replying(self.list_locks),
            LOCKS_METHOD_TYPE.format("Delete"): replying(self.delete),
        }

    async def list_locks(self, event: CloudEvent, _origin: str) -> LocksAnswer:
        """Return the locks of a kind, or all. Raises Refused for wrong arguments."""
        return await self._answer(await self._find(_arguments(event)))

    async def delete(self, event: CloudEvent, origin: str) -> LocksAnswer:
        """Delete locks and return them. Raises Refused for wrong arguments, and while an owner lives."""
        call = _arguments(event)
        found = await self._find(call)
        is_rpc = origin == "rpc"
        record = AuditRecord(
            at=self._trail.clock(),
            kind="rpc.call" if is_rpc else "mes.call",
            instance=self._trail.instance,
            user=call.by or event.source,
            application=event.source if call.by else "",
            address="" if is_rpc else origin,
            action="locks delete --force" if call.force else "locks delete",
            subject=", ".join(f"{stored_lock.kind} {stored_lock.object_id}" for stored_lock in found) or "-",
            status="Good",
        )

        async def audit(_: Sequence[StoredLock]) -> Commit:
            return await plan_append(self._store, [record], self._trail.keep)

        try:
            await delete_locks(self._store, found, audit, force=call.force)
        except Refused as refusal:
            self._trail.record(msgspec.structs.replace(record, status=refusal.message))
            raise
        self._trail.copy(record)
        return await self._answer(found)

    async def _find(self, call: LockCall) -> list[StoredLock]:
        kinds = (call.kind,) if call.kind else tuple(LockKind)
        return await find_locks(self._store, kinds, call.ids)

    async def _answer(self, found: Sequence[StoredLock]) -> LocksAnswer:
        now = await server_time(self._store)
        locks = tuple(
            lock_info(stored_lock.kind, stored_lock.object_id, stored_lock.lock, now)
            for stored_lock in found
            if stored_lock.lock
        )
        return LocksAnswer(return_status=ReturnStatus.NO_ERROR, locks=locks)


def _arguments(event: CloudEvent) -> LockCall:
    try:
        return read_payload(event.data if event.data is not None else {}, LockCall)
    except msgspec.ValidationError as error:
        reason = f"the payload does not have the arguments of {event.type}: {error}."
        raise Refused("invalid_payload", reason, "Send Kind, Ids, Force and By, or none.") from None

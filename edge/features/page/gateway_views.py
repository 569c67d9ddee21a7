"""Reads what the store has about the gateways: operations, locks, sessions, components."""

from edge.access.locks import find_locks
from edge.access.operations import listed
from edge.features.page.gateway_models import (
    ComponentView,
    Fleet,
    LockList,
    LockView,
    OperationList,
    OperationView,
    SessionOverview,
    SessionView,
)
from edge.features.page.instants import utc
from edge.model.lock import LockKind
from edge.store import components, operations, sessions
from edge.store.client import Store
from edge.store.operations import StoredOperation
from edge.store.server_time import server_time


async def list_operations(store: Store) -> OperationList:
    """Return every operation, the newest first."""
    now = await server_time(store)
    return OperationList(operations=tuple(_operation(each, now) for each in await operations.load_all(store)))


def _operation(stored: StoredOperation, now: int) -> OperationView:
    found = listed(stored, now)
    return OperationView(
        id=found.id,
        type=found.type.value,
        state=found.state.value,
        progress=stored.progress,
        text=found.text,
        by=found.by,
        daily=found.daily,
        due_at=utc(found.due) if found.due else None,
        created_at=utc(found.created),
        ended_at=utc(found.ended),
        result=found.result,
        error=found.error,
        has_ended=found.has_ended,
    )


async def list_locks(store: Store) -> LockList:
    """Return every lock."""
    now = await server_time(store)
    found = await find_locks(store, tuple(LockKind), ())
    return LockList(
        locks=tuple(
            LockView(
                kind=each.kind.value,
                id=each.object_id,
                owner=each.lock.holder.owner,
                reason=each.lock.holder.reason,
                since=since,
                alive=not each.lock.holder.has_expired(now),
                waiters=tuple(waiter.owner for waiter in each.lock.waiters),
            )
            for each in found
            if each.lock and (since := utc(each.lock.holder.since))
        )
    )


async def list_sessions(store: Store) -> SessionOverview:
    """Return every session, the one active last first."""
    return SessionOverview(
        sessions=tuple(
            SessionView(
                id=id,
                user=each.user,
                role=each.role,
                way=each.way,
                gateway=each.instance,
                address=each.address,
                client=each.client,
                since=utc(each.since),
                last_activity=at,
            )
            for id, (each, at) in (await sessions.load_all(store)).items()
        )
    )


async def list_components(store: Store) -> Fleet:
    """Return the components on the store by their ids."""
    found = (await components.load_all(store)).values()
    return Fleet(
        components=tuple(
            ComponentView(
                id=each.component.id,
                kind=each.component.kind,
                version=each.component.version,
                host=each.component.host,
                seen_at=utc(each.seen_s * 1000) if each.seen_s else None,
                problems=each.component.problems,
                jobs=each.component.jobs,
                alarms=each.component.alarms,
                certificate_expiry=each.component.certificate_expiry,
                drift=each.component.drift or "",
            )
            for each in found
        )
    )

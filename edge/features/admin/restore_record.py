"""Records a restore in the restored store: as an operation that has ended, and in the audit trail."""

import uuid
from pathlib import Path

from edge.access.audit_trail import plan_append
from edge.config import Settings
from edge.model.audit import AuditRecord
from edge.model.plant import Operation, OperationState, OperationType
from edge.store import operations
from edge.store.client import Store
from edge.store.commit import Committed, join
from edge.store.server_time import server_time


async def record_restore(store: Store, settings: Settings, file: Path, by: str, started: int) -> Operation:
    """Write the operation and its audit record in one commit. Raises Unavailable.

    No gateway executes a restore: it replaces the store that it would work on, and with it the record of its begin.
    """
    ended = await server_time(store)
    operation = Operation(
        id=uuid.uuid4().hex[:12],
        type=OperationType.RESTORE,
        state=OperationState.DONE,
        by=by,
        owner="edge restore",
        due=started,
        created=started,
        started=started,
        ended=ended,
        result=str(file),
    )
    record = AuditRecord(
        at=ended,
        kind="cli.call",
        instance=settings.gateway.name,
        user=by,
        action="restore",
        subject=str(file),
        status="Good",
        comment=operation.id,
    )
    while True:
        audited = await plan_append(store, [record], settings.retention.audit)
        done = operations.save(store.keys, operations.StoredOperation(operation, 0.0, None), operation, 100.0)
        if isinstance(await store.commit(join((done, audited))), Committed):
            return operation

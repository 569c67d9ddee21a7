"""A restored store has the restore in its operations and its audit trail."""

from pathlib import Path

import msgspec

from edge.access.audit_trail import find_faults
from edge.config import Settings
from edge.features.admin.restore import record_restore
from edge.store import audit, operations
from edge.store.client import Store

NOW = 1_790_000_000_000


async def test_restore_is_recorded_in_operations_and_audit_trail(store: Store) -> None:
    done = await record_restore(store, Settings(), Path("gw.tar.gz"), "anna", NOW)
    assert (done.type, done.state, done.by, done.result) == ("restore", "done", "anna", "gw.tar.gz")
    (stored_operation,) = await operations.load_all(store)
    assert (stored_operation.operation, stored_operation.progress) == (done, 100.0)
    assert (await operations.read_due(store, [done.type]))[1] == []
    sealed = [sealed_record async for sealed_record in audit.read_all(store)]
    assert list(find_faults(sealed, await audit.load_head(store), 1000)) == []
    (record,) = (msgspec.json.decode(sealed_record.text) for sealed_record in sealed)
    assert (record["action"], record["user"], record["comment"]) == ("restore", "anna", done.id)

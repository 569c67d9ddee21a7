"""An operation is printed with its result or error, and as interrupted before a gateway reports it."""

import json

from edge.access.operations import Claim, change_operation, schedule_operation
from edge.model.operation import OperationType
from edge.store import operations
from edge.store.client import Store
from edge.store.server_time import server_time
from tests.cli.calling import Edge


async def test_interrupted_operation_is_shown_without_a_gateway(edge: Edge, store: Store) -> None:
    scheduled = await schedule_operation(store, OperationType.BACKUP, "anna", 0, {})
    claimed = await change_operation(store, scheduled.id, Claim("gw-1", await server_time(store) - 1))
    found = await operations.load(store, scheduled.id)
    assert found
    await store.commit(operations.save(store.keys, found, claimed, 40.0))
    shown = json.loads((await edge("operations", "show", scheduled.id, "--json")).output)
    assert (shown["state"], shown["error"], shown["progress"], shown["owner"]) == (
        "failed",
        "interrupted",
        40.0,
        "gw-1",
    )
    text = (await edge("operations", "watch", scheduled.id)).output
    assert "backup failed, 40 %" in text
    assert "error: interrupted" in text

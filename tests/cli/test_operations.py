"""`edge operations` schedules, shows, repeats and cancels the operations of gateways."""

import json

import pytest

from edge.access.operations import Claim, change_operation, schedule_operation
from edge.model.plant import OperationType
from edge.store import audit, operations
from edge.store.client import Store
from edge.store.server_time import server_time
from tests.cli.calling import Edge


async def test_operation_is_scheduled_shown_and_cancelled(edge: Edge, store: Store) -> None:
    scheduled = json.loads(
        (await edge("operations", "schedule", "backup", "--at", "02:00", "--daily", "--json")).output
    )
    assert (scheduled["type"], scheduled["daily"]) == ("backup", "02:00")
    assert "scheduled (02:00 daily)" in (await edge("operations", "list")).output
    assert (await edge("operations", "repeat", scheduled["id"])).exit_code == 1
    assert (await edge("operations", "cancel", scheduled["id"])).output == f"{scheduled['id']}: cancelled\n"
    assert (await edge("operations", "cancel", scheduled["id"])).exit_code == 1
    assert (await edge("operations", "watch", scheduled["id"])).exit_code == 1
    assert (await edge("operations", "repeat", scheduled["id"])).exit_code == 0
    states = sorted(load["state"] for load in json.loads((await edge("operations", "list", "--json")).output))
    assert states == ["cancelled", "scheduled"]
    actions = [json.loads(sealed_record.text)["action"] async for sealed_record in audit.read_all(store)]
    assert actions == ["operations schedule", "operations cancel", "operations cancel", "operations schedule"]


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (("schedule", "defrag"), 2),
        (("schedule", "backup", "--at", "25:00"), 2),
        (("schedule", "backup", "--daily"), 2),
        (("show", "nothing"), 1),
        (("watch", "nothing"), 1),
        (("cancel", "nothing"), 1),
    ],
)
async def test_call_with_wrong_arguments_schedules_no_operation(
    edge: Edge, arguments: tuple[str, ...], status: int
) -> None:
    assert (await edge("operations", *arguments)).exit_code == status
    assert json.loads((await edge("operations", "list", "--json")).output) == []


async def test_interrupted_operation_is_shown_without_a_gateway(edge: Edge, store: Store) -> None:
    scheduled = await schedule_operation(store, OperationType.BACKUP, "anna", 0, {})
    claimed = await change_operation(store, scheduled.id, Claim("gw-1", await server_time(store) - 1))
    stored_operation = await operations.load(store, scheduled.id)
    assert stored_operation
    await store.commit(operations.save(store.keys, stored_operation, claimed, 40.0))
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

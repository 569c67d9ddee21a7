"""Operations are stored by id, with their progress and a queue of those that wait."""

from msgspec.structs import replace

from edge.model.plant import Operation, OperationState, OperationType
from edge.store import operations
from edge.store.client import Store
from edge.store.commit import Committed, Stale

BACKUP = Operation(id="1", type=OperationType.BACKUP, by="anna", due=7, created=5)


async def test_operation_leaves_the_queue_when_it_starts(store: Store) -> None:
    assert isinstance(await store.commit(operations.create(store.keys, BACKUP)), Committed)
    assert isinstance(await store.commit(operations.create(store.keys, BACKUP)), Stale)
    assert (await operations.read_due(store, OperationType))[1] == ["1"]
    (stored_operation,) = await operations.load_all(store)
    assert (stored_operation.operation, stored_operation.progress) == (BACKUP, 0.0)
    running = replace(BACKUP, state=OperationState.RUNNING)
    assert isinstance(await store.commit(operations.save(store.keys, stored_operation, running, 41.25)), Committed)
    assert isinstance(await store.commit(operations.save(store.keys, stored_operation, running, 99.0)), Stale)
    assert (await operations.read_due(store, OperationType))[1] == []
    assert await store.execute("HGET", f"{store.keys.prefix}:operations:progress", "1") == "41.2"
    later = await operations.load(store, "1")
    assert later
    await store.commit(operations.remove(store.keys, later))
    assert await operations.load(store, "1") is None


async def test_operation_is_due_by_the_time_of_the_store(store: Store) -> None:
    now, _ = await operations.read_due(store, OperationType)
    first = replace(BACKUP, id="first", type=OperationType.UPGRADE_CHECK, due=now - 10)
    for operation in (
        replace(BACKUP, id="late", due=now + 3_600_000),
        replace(BACKUP, id="second", due=now - 5),
        first,
    ):
        await store.commit(operations.create(store.keys, operation))
    read_at, due_ids = await operations.read_due(store, OperationType)
    assert read_at >= now
    assert due_ids == ["first", "second"]


async def test_unreadable_operation_is_left_out(store: Store) -> None:
    await store.execute("HSET", store.keys.operations(), "1", "{no", "2", '{"id": 7}')
    assert await operations.load_all(store) == []

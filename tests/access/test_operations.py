"""Operations at a real store: claimed by one instance, renewed, interrupted, cancelled, repeated every day."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from edge.access.operations import (
    Cancel,
    Claim,
    Executor,
    OperationRunner,
    Report,
    change_operation,
    listed,
    schedule_operation,
)
from edge.foundation.errors import Defect, Refused, Unavailable
from edge.foundation.task_group import background_task
from edge.foundation.text import Text
from edge.model.lock import LockKind
from edge.model.plant import Operation, OperationState, OperationType, public_operation
from edge.store import locks, operations
from edge.store.client import Store
from edge.store.operations import StoredOperation
from edge.store.server_time import server_time

BACKUP = OperationType.BACKUP


def runner(store: Store, executor: Executor, name: str = "gw-1", lease_ms: int = 10_000) -> OperationRunner:
    return OperationRunner(store, name, {BACKUP: executor}, lambda: datetime(2026, 1, 1, 3, tzinfo=UTC), 0.01, lease_ms)


async def scheduled(store: Store, due: int = 0, daily: str = "") -> Operation:
    return await schedule_operation(store, BACKUP, "anna", due, {}, daily=daily)


async def found(store: Store, id: str) -> StoredOperation:
    stored_operation = await operations.load(store, id)
    assert stored_operation
    return stored_operation


async def until(store: Store, id: str, condition: Callable[[StoredOperation], bool]) -> StoredOperation:
    async with asyncio.timeout(60):
        while not condition(stored_operation := await found(store, id)):  # noqa: ASYNC110 - the store has no event
            await asyncio.sleep(0.01)
    return stored_operation


async def test_due_operation_is_executed_once_by_one_of_two_instances(store: Store) -> None:
    executed: list[str] = []

    async def work(operation: Operation, report: Report) -> str:
        report(50, "half")
        executed.append(operation.id)
        return "file"

    ids = [(await scheduled(store)).id for _ in range(3)]
    later = await scheduled(store, due=2**52)
    for _ in range(6):
        await asyncio.gather(runner(store, work).look(), runner(store, work, "gw-2").look())
    assert sorted(executed) == sorted(ids)
    stored_operation = await found(store, ids[0])
    assert (stored_operation.operation.state, stored_operation.operation.result, stored_operation.progress) == (
        "done",
        "file",
        100.0,
    )
    assert (await found(store, later.id)).operation.state is OperationState.SCHEDULED
    assert await store.execute("ZCARD", store.keys.operations_queue("backup")) == 1


async def test_operation_of_a_dead_instance_is_interrupted_with_its_progress(store: Store) -> None:
    async def work(_: Operation, __: Report) -> str:
        pytest.fail("it is not executed again by itself")

    operation = await scheduled(store)
    before, now = await found(store, operation.id), await server_time(store)
    claimed = await change_operation(store, operation.id, Claim("dead", now - 1))
    await store.commit(operations.save(store.keys, await found(store, operation.id), claimed, 40.0))
    shown = listed(await found(store, operation.id), await server_time(store))
    assert (before.operation.state, shown.state, str(shown.error)) == ("scheduled", "failed", "interrupted")
    await runner(store, work).look()
    stored_operation = await found(store, operation.id)
    assert (stored_operation.operation.state, str(stored_operation.operation.error), stored_operation.progress) == (
        "failed",
        "interrupted",
        40.0,
    )


async def test_running_operation_is_cancelled_by_a_person(store: Store) -> None:
    async def work(_: Operation, report: Report) -> str:
        report(40, "waits")
        await asyncio.Event().wait()
        return ""

    operation = await scheduled(store)
    async with background_task(runner(store, work).run(), "operations"):
        await until(store, operation.id, lambda stored: stored.progress == 40.0)
        (lock,) = await locks.load_all(store, LockKind)
        assert lock.kind == "operation"
        await change_operation(store, operation.id, Cancel("ben"))
        stored = await until(store, operation.id, lambda stored: stored.operation.has_ended)
        async with asyncio.timeout(60):
            while await locks.load_all(store, LockKind):  # noqa: ASYNC110 - the store has no event
                await asyncio.sleep(0.01)
    assert (stored.operation.state, stored.operation.cancelled_by) == ("cancelled", "ben")


@pytest.mark.parametrize(
    ("error", "text"), [(Unavailable("the disk is full"), "the disk is full"), (KeyError("x"), "KeyError: 'x'")]
)
async def test_failure_is_stored_and_the_next_operation_runs(store: Store, error: Exception, text: str) -> None:
    failures = [error]

    async def work(_: Operation, __: Report) -> str:
        if failures:
            raise failures.pop()
        return "file"

    first, second = await scheduled(store, due=1), await scheduled(store, due=2)
    await runner(store, work).look()
    assert str((await found(store, first.id)).operation.error) == text
    assert (await found(store, second.id)).operation.state is OperationState.DONE


async def test_daily_operation_is_scheduled_again_when_it_starts(store: Store) -> None:
    async def work(_: Operation, __: Report) -> str:
        return "file"

    await scheduled(store, daily="02:00")
    await runner(store, work).look()
    again, done = sorted(
        (stored_operation.operation for stored_operation in await operations.load_all(store)),
        key=lambda operation: -operation.due,
    )
    assert (done.state, again.state, again.daily) == ("done", "scheduled", "02:00")
    assert datetime.fromtimestamp(again.due / 1000, UTC) == datetime(2026, 1, 2, 2, tzinfo=UTC)


async def test_only_the_newest_ended_operations_are_kept(store: Store) -> None:
    async def work(_: Operation, __: Report) -> str:
        return ""

    for _ in range(operations.KEPT + 3):
        await change_operation(store, (await scheduled(store)).id, Cancel("ben"))
    await runner(store, work).look()
    assert len(await operations.load_all(store)) == operations.KEPT
    assert await store.execute("HLEN", store.keys.operations_progress()) == operations.KEPT


async def test_invalid_requests_are_refused(store: Store) -> None:
    with pytest.raises(Refused, match="there is no operation"):
        await change_operation(store, "nothing", Cancel("ben"))
    operation = await scheduled(store)
    await change_operation(store, operation.id, Cancel("ben"))
    with pytest.raises(Refused, match="is cancelled"):
        await change_operation(store, operation.id, Cancel("ben"))


async def test_work_ends_when_an_invalid_report_prevents_the_renewal(store: Store) -> None:
    ended = asyncio.Event()

    async def work(_: Operation, report: Report) -> str:
        report(1.0, "a file name that is not UTF-8: \udc80")
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return ""

    operation = await scheduled(store)
    async with asyncio.timeout(60):
        await runner(store, work).look()
    assert ended.is_set()
    assert "cannot be renewed" in str((await found(store, operation.id)).operation.error)


async def test_work_ends_when_its_lease_cannot_be_renewed(store: Store) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def work(_: Operation, __: Report) -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return ""

    await scheduled(store)
    async with asyncio.timeout(60):
        executing = asyncio.create_task(runner(store, work).look())
        await begun.wait()
        # The document of the operations is of a foreign type: no reading and no renewal succeeds.
        await store.execute("SET", store.keys.operations(), "foreign")
        with pytest.raises(Defect):
            await executing
    assert ended.is_set()


async def test_stage_and_result_are_kept_for_readers_of_each_language(store: Store) -> None:
    """The page showed them in English; those of earlier versions are strings."""

    async def work(operation: Operation, report: Report) -> Text:
        report(50, Text.of("asking the store"))
        await until(store, operation.id, lambda stored_operation: bool(stored_operation.operation.text))
        return Text.of("{count} objects read", count=3)

    operation = await scheduled(store)
    looking = asyncio.create_task(runner(store, work).look())
    running = await until(store, operation.id, lambda stored_operation: bool(stored_operation.operation.text))
    await looking
    assert public_operation(running.operation, 50, "de").text == "der Speicher wird gefragt"
    assert public_operation((await found(store, operation.id)).operation, 100, "fr").result == "3 objets lus"
    earlier = replace(running.operation, text="asking the store", result="/var/lib/gw.tar.gz")
    assert public_operation(earlier, 100, "de").result == "/var/lib/gw.tar.gz"

"""Operations in the store: their documents, their progress, and a queue for each type."""

from collections.abc import Iterable

import msgspec
import structlog
from msgspec import Struct

from edge.model.plant import Operation, OperationState, OperationType
from edge.store.client import Store
from edge.store.commit import Commit, HashField
from edge.store.keys import Keys

logger = structlog.get_logger(__name__)

KEPT = 100
"""Ended operations that are kept."""


class StoredOperation(Struct, frozen=True):
    """An operation as it was read, with its progress from 0 to 100; `text` guards its next commit."""

    operation: Operation
    progress: float
    text: str | None


async def load_all(store: Store) -> list[StoredOperation]:
    """Read every operation, the newest first; one that cannot be read is logged and left out."""
    documents, progress = await store.read(
        [("HGETALL", store.keys.operations()), ("HGETALL", store.keys.operations_progress())]
    )
    stored_operations = [_stored(id, text, progress.get(id)) for id, text in documents.items()]
    return sorted(
        (operation for operation in stored_operations if operation),
        key=lambda stored_operation: (-stored_operation.operation.created, stored_operation.operation.id),
    )


async def load(store: Store, id: str) -> StoredOperation | None:
    """Read an operation; None when there is none."""
    text, progress = await store.read(
        [("HGET", store.keys.operations(), id), ("HGET", store.keys.operations_progress(), id)]
    )
    return _stored(id, text, progress) if text is not None else None


async def read_due(store: Store, types: Iterable[OperationType]) -> tuple[int, list[str]]:
    """Return the time of the store in milliseconds, and the scheduled operations that are due by it, earliest first."""
    queues = [store.keys.operations_queue(type.value) for type in types]
    (seconds, microseconds), queued = await store.read([("TIME",), ("ZUNION", len(queues), *queues, "WITHSCORES")])
    now = int(seconds) * 1000 + int(microseconds) // 1000 + store.clock_ms
    return now, [id for id, due in queued if due <= now]


def create(keys: Keys, operation: Operation) -> Commit:
    """Write a new operation."""
    return save(keys, StoredOperation(operation, 0.0, None), operation, 0.0)


def save(keys: Keys, before: StoredOperation, after: Operation, progress: float) -> Commit:
    """Write the next state of an operation; Stale when it was changed meanwhile."""
    text, queue = msgspec.json.encode(after).decode(), keys.operations_queue(after.type.value)
    is_queued = after.state is OperationState.SCHEDULED
    queued = ("ZADD", queue, after.due, after.id) if is_queued else ("ZREM", queue, after.id)
    return Commit(
        (HashField(keys.operations(), after.id, before.text),),
        (
            ("HSET", keys.operations(), after.id, text),
            ("HSET", keys.operations_progress(), after.id, f"{progress:.1f}"),
            queued,
        ),
    )


def remove(keys: Keys, before: StoredOperation) -> Commit:
    """Remove an ended operation."""
    id = before.operation.id
    return Commit(
        (HashField(keys.operations(), id, before.text),),
        (("HDEL", keys.operations(), id), ("HDEL", keys.operations_progress(), id)),
    )


def _stored(id: str, text: str, progress: str | None) -> StoredOperation | None:
    try:
        return StoredOperation(msgspec.json.decode(text, type=Operation), float(progress or 0), text)
    except (msgspec.DecodeError, ValueError) as error:
        logger.error("operation cannot be read", operation=id, reason=str(error))
        return None

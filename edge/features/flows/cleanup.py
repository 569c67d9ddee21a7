"""Removes stale data: index entries without a flow, consumers of dead workers, tasks that are not needed."""

import functools
from collections.abc import Iterable
from typing import Any, Final

import msgspec
import structlog
from msgspec import Struct
from msgspec.structs import asdict, astuple

from edge.features.flows import keys as flows_keys
from edge.features.flows.node_task import QueuedTask, decode_task
from edge.features.flows.work_queue import GROUP, is_wanted
from edge.store.background import Isolated, poll_store
from edge.store.client import Store
from edge.store.commit import Absent, Commit, Committed, join, operation
from edge.store.reads import Entry, entries, escape_pattern, scan_keys

logger = structlog.get_logger(__name__)

CLEAN_UP_INTERVAL_S: Final = 3600.0
IDLE_MS: Final = 3_600_000
"""A consumer without tasks is removed after this: a worker that is only slow takes tasks more often."""
_MOST_TASKS: Final = 1000


class CleanUp(Struct, frozen=True):
    """How much was removed: index entries, consumers of dead workers, tasks for workers."""

    index_entries: int
    consumers: int
    tasks: int


async def keep_clean(store: Store, interval_s: float = CLEAN_UP_INTERVAL_S) -> None:
    """Clean up at each interval until cancelled."""
    await poll_store(store.defects, "flow clean-up", functools.partial(_clean_up_and_log, store), interval_s)


async def _clean_up_and_log(store: Store) -> None:
    # A key of another type below our prefix must not end the gateway.
    with Isolated(logger, "flow clean-up failed"):
        up = await clean_up(store)
        if any(astuple(up)):
            logger.info("flow leftovers removed", **asdict(up))


async def clean_up(store: Store, idle_ms: int = IDLE_MS) -> CleanUp:
    """Remove stale data and return the counts of removed items; raises Unavailable."""
    consumers = tasks = 0
    pattern = f"{escape_pattern(flows_keys.node_work(store.keys, ''))}*"
    for key in sorted({key async for batch in scan_keys(store, pattern) for key in batch}):
        tasks += await _remove_unwanted_tasks(store, key)
        consumers += await _remove_dead_consumers(store, key, idle_ms)
    return CleanUp(await _remove_index_entries(store), consumers, tasks)


async def _remove_index_entries(store: Store) -> int:
    keys = store.keys
    scheduled, running = await store.read(
        [("ZRANGE", flows_keys.flow_schedule(keys), 0, -1), ("SMEMBERS", flows_keys.flows_running(keys))]
    )
    listed = sorted({*scheduled, *running})
    there = await store.read([("EXISTS", flows_keys.flow(keys, flow_id)) for flow_id in listed])
    removed = 0
    for flow_id in (flow_id for flow_id, exists in zip(listed, there, strict=True) if not exists):
        parts = (
            Commit(guards=(Absent(flows_keys.flow(keys, flow_id)),)),
            operation("ZREM", flows_keys.flow_schedule(keys), flow_id),
            operation("SREM", flows_keys.flows_running(keys), flow_id),
        )
        removed += isinstance(await store.commit(join(parts)), Committed)
    return removed


async def _remove_unwanted_tasks(store: Store, key: str) -> int:
    """Remove the tasks of a stream whose attempt has ended or whose flow was deleted."""
    found = list(entries(await store.execute("XRANGE", key, "-", "+", "COUNT", _MOST_TASKS)))
    tasks = [_task(item) for item in found]
    texts = await store.read(
        [
            ("GET", flows_keys.node_task(store.keys, queued_task.flow_id, queued_task.cycle, queued_task.node_id))
            for queued_task in tasks
            if queued_task
        ]
    )
    left = iter(texts)
    unwanted = [
        entry.entry_id
        for entry, task in zip(found, tasks, strict=True)
        if task is None or not is_wanted(task, next(left))
    ]
    if unwanted:
        await store.commit(join(_removal(key, unwanted)))
    return len(unwanted)


def _removal(key: str, entry_ids: Iterable[str]) -> Iterable[Commit]:
    for entry_id in entry_ids:
        yield operation("XACK", key, GROUP, entry_id)
        yield operation("XDEL", key, entry_id)


def _task(entry: Entry) -> QueuedTask | None:
    try:
        return decode_task(entry.fields["task"])
    except (KeyError, msgspec.MsgspecError):
        return None


async def _remove_dead_consumers(store: Store, key: str, idle_ms: int) -> int:
    """Remove the consumers whose worker is not registered, and which hold no task that another one could take over."""
    removed = 0
    for group in await store.execute("XINFO GROUPS", key):
        if group["name"] != GROUP:
            continue
        consumers: list[dict[str, Any]] = await store.execute("XINFO CONSUMERS", key, GROUP)
        for consumer in consumers:
            name, is_idle = consumer["name"], not consumer["pending"] and consumer["idle"] >= idle_ms
            if is_idle and not await store.execute("EXISTS", flows_keys.worker(store.keys, name)):
                await store.execute("XGROUP DELCONSUMER", key, GROUP, name)
                removed += 1
    return removed

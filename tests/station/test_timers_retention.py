"""Expired jobs leave no key without a lifetime and no memory, in the gateway and in the server."""

import asyncio
import gc
import os
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from edge.app.features import features
from edge.config import RedisSettings
from edge.foundation.task_group import background_task
from edge.model.job_state import Cause
from edge.store import changes, dedupe, jobs
from edge.store.client import Store
from edge.store.commit import fields
from edge.store.keys import BACKLOG, OURS, PERMANENT, STREAM, key_specs
from edge.store.reads import entries
from edge.store.server_time import server_time
from tests.station.plant import (
    KEEP_ENDED_MS,
    SCOPE,
    TIGHTEN,
    Clock,
    FakeEquipment,
    Plant,
    action,
    all_keys,
    instance,
    linear,
    none_active,
    obliging,
    order,
    until,
)
from tests.store.servers import own_server

JOBS = int(os.environ.get("EDGE_EXPIRED", "1000"))
SIDE_BY_SIDE = 50
MAY_STAY = {PERMANENT, OURS, STREAM, BACKLOG}


async def run_and_expire(plant: Plant, tool: FakeEquipment, clock: Clock, name: str, many: int) -> None:
    """Run jobs, let the time pass for which they are kept, and see them gone."""
    for first in range(0, many, SIDE_BY_SIDE):
        ids = [f"{name}-{number}" for number in range(first, min(first + SIDE_BY_SIDE, many))]
        await asyncio.gather(*(plant.order(Cause.STORE_AND_START, order(job_id)) for job_id in ids))
        await until(lambda: _none_open(plant))
    await until(lambda: none_active(plant), deadline=120.0)
    tool.commands.clear()
    clock.now += KEEP_ENDED_MS
    plant.timers.expect(0)
    await until(lambda: _none_left(plant), deadline=120.0)


async def _none_open(plant: Plant) -> bool:
    return await jobs.count_open(plant.store, SCOPE) == 0


async def _none_left(plant: Plant) -> bool:
    return not await jobs.list_ids(plant.store, SCOPE)


async def forget_calls(plant: Plant) -> None:
    """Advance the time beyond `[retention] dedupe`."""

    async def marks() -> list[str]:
        return [key for key in await all_keys(plant.store) if ":cededupe:" in key or ":tombstone:" in key]

    await plant.store.read([("PEXPIRE", key, 1) for key in await marks()])

    async def forgotten() -> bool:
        return not await marks()

    await until(forgotten)
    await sweep_marks(plant)


async def sweep_marks(plant: Plant) -> None:
    """Remove the index of the marks, as the sweep of a gateway does when their time is over."""
    await dedupe.sweep_marks(plant.store, 0, await server_time(plant.store) + 1)


async def fill_streams(plant: Plant) -> None:
    """Bring the stream that is bounded by length to that length."""
    key = plant.store.keys.joborder_changes(SCOPE)
    (newest,) = entries(await plant.store.execute("XREVRANGE", key, "+", "-", "COUNT", 1))
    await plant.store.read([("XADD", key, "*", *fields(newest.fields)) for _ in range(changes.STREAM_LENGTH)])


async def used_memory(store: Store) -> int:
    return int((await store.execute("INFO", "memory"))["used_memory"])


def resident_kb() -> int:
    gc.collect()
    return int(re.findall(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text())[0])


def spec_of(key: str, prefix: str) -> str | None:
    """Return the lifetime of a key in the table of keys, by the longest pattern that fits."""
    features()
    fits = [
        (len(spec.pattern), spec.lifetime)
        for spec in key_specs()
        if re.fullmatch(re.sub(r"\\{\w+\\}", ".+", re.escape(spec.pattern)), key.removeprefix(f"{prefix}:"))
    ]
    return max(fits, key=lambda fit: fit[0])[1] if fits else None


async def immortal(store: Store, keys: Sequence[str]) -> list[str]:
    """Name the keys that have no lifetime and may not do without one."""
    lifetimes = await store.read([("PTTL", key) for key in keys])
    return [
        key
        for key, lifetime in zip(keys, lifetimes, strict=True)
        if lifetime == -1 and spec_of(key, store.keys.prefix) not in MAY_STAY
    ]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.untraced
async def test_expired_jobs_leave_no_key_without_a_lifetime_and_no_memory(
    tmp_path_factory: pytest.TempPathFactory, tool: FakeEquipment, clock: Clock
) -> None:
    tool.replies = obliging
    async with (
        own_server(Path(tmp_path_factory.mktemp("s")), "--appendfsync", "everysec") as server,
        instance(RedisSettings(url=server.url), {TIGHTEN: tool}, clock, max_job_orders=JOBS) as plant,
        plant.at_work(),
        background_task(plant.timers.run(), "timers"),
    ):
        await plant.teach("linear", linear(action("a", "one")))
        await run_and_expire(plant, tool, clock, "first", JOBS // 2)
        await fill_streams(plant)
        await forget_calls(plant)
        before = await used_memory(plant.store), resident_kb(), await all_keys(plant.store)
        await run_and_expire(plant, tool, clock, "then", JOBS)
        await sweep_marks(plant)
        assert await immortal(plant.store, await all_keys(plant.store)) == []
        await forget_calls(plant)
        after = await used_memory(plant.store), resident_kb(), await all_keys(plant.store)
        assert after[2] == before[2]
        assert await plant.store.execute("SCARD", plant.store.keys.sfc_active_jobs()) == 0
        assert await plant.store.execute("ZCARD", plant.store.keys.sfc_timers()) == 0
    assert after[0] < 1.1 * before[0], "the server's memory grows"
    assert after[1] < 1.1 * before[1], "our memory grows"

"""Statistics count keys without revealing names or contents."""

import json

import msgspec
import pytest

from edge.store import statistics
from edge.store.client import Store
from edge.store.statistics import _pattern


@pytest.mark.parametrize(
    ("key", "pattern"),
    [
        ("joborder:AXLE:1", "joborder:{id}"),
        ("joborder:list:station-1", "joborder:list:{scope}"),
        ("joborder:changes:_global", "joborder:changes:_global"),
        ("workmaster:list:s", "workmaster:list:{scope}"),
        ("equipment:list:s", "{kind}:list:{scope}"),
        ("sfc:waits:s:photo.v1", "sfc:waits:{scope}:{type_id}"),
        ("somebody's own", "?"),
    ],
)
def test_a_key_counts_for_its_pattern(key: str, pattern: str) -> None:
    assert _pattern(key) == pattern


async def test_keys_are_counted_without_their_names(store: Store) -> None:
    for job in ("CANARY-1", "CANARY-2"):
        await store.execute("HSET", store.keys.joborder(job), "rev", "1", "order", "canary")
    await store.execute("XADD", store.keys.sfc_work("s"), "*", "job_id", "CANARY-1")
    kinds = await statistics.read_key_statistics(store)
    assert (kinds["joborder:{id}"].keys, kinds["joborder:{id}"].entries) == (2, 4)
    assert kinds["sfc:work:{scope}"].entries == 1
    assert kinds["joborder:{id}"].bytes > 0
    assert "canary" not in msgspec.json.encode(kinds).decode().lower()


async def test_server_info_is_read_without_file_paths(store: Store) -> None:
    reported = await statistics.read_server_info(store)
    assert {"redis_version", "used_memory", "maxmemory_policy", "aof_enabled"} <= reported.keys()
    assert "executable" not in json.dumps(dict(reported), default=str)

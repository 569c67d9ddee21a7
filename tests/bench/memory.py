"""The memory of the engine over many jobs: it has to reach a plateau."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

from edge.config import RedisSettings
from edge.model.recipe import RECIPE_DATASCHEMA
from edge.station.settings import SettingsMethod, StationSettings
from edge.store.open_store import open_store
from tests.bench.engine import SCOPE, PromptEquipment, engine, linear_recipe, run_batch
from tests.bench.measure import Row

_SAMPLES = 10
_CONCURRENT = 100
_PAGE_KB = os.sysconf("SC_PAGE_SIZE") // 1024


async def memory_over_jobs(jobs: int) -> AsyncIterator[Row]:
    """Run jobs of one step, a hundred at a time; yield the memory of this process after each tenth of them."""
    async with open_store(RedisSettings(url="embedded:"), "bench") as store:
        master = {"ID": "WM", "data": linear_recipe(1), "dataschema": RECIPE_DATASCHEMA}
        await StationSettings(store).apply(SCOPE, "workmaster", SettingsMethod.PUT, master)
        equipment = PromptEquipment()
        async with engine(store, equipment) as (runs, service):
            for batch in range(jobs // _CONCURRENT):
                await run_batch(runs, service, [f"job-{batch}-{number}" for number in range(_CONCURRENT)])
                equipment.clear()
                done = (batch + 1) * _CONCURRENT
                if done % max(jobs // _SAMPLES, _CONCURRENT) == 0:
                    yield Row("memory", steps=1, conc=_CONCURRENT, stored_jobs=done, rss_kb=_rss_kb())


def _rss_kb() -> int:
    """Return the memory of this process now, in KiB."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE_KB

"""Examines the second Redis, which keeps samples in memory only."""

from collections.abc import AsyncIterator, Mapping

from edge.config import Settings
from edge.features.telemetry.sample_store import open_volatile
from edge.model.finding import HealthFinding, ok, warning

UNIT = "microdcs-edge-telemetry-store"


async def examine_volatile_store(settings: Settings) -> AsyncIterator[HealthFinding]:
    """Examine the store of volatile samples, where the settings have one. Raises Unavailable."""
    async with open_volatile(settings, "doctor") as store:
        if store is None:
            return
        info: Mapping[str, str] = await store.execute("INFO")
    subject = "volatile store"
    if int(info["aof_enabled"]):
        yield warning(subject, "it writes files: samples wear out the flash", f"Set `appendonly no` for {UNIT}.")
    elif info["maxmemory_policy"] != "noeviction" or not int(info["maxmemory"]):
        found = f"maxmemory {info['maxmemory']}, maxmemory-policy {info['maxmemory_policy']}"
        yield warning(subject, found, f"Set `maxmemory 64mb` and `maxmemory-policy noeviction` for {UNIT}.")
    else:
        yield ok(subject, f"samples in memory, {int(info['used_memory']) >> 20} of {int(info['maxmemory']) >> 20} MiB")

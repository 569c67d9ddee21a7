"""Decides where samples are kept: in memory where the store would wear out an SD card."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from edge.config import RedisSettings, Settings
from edge.features.telemetry.settings import TelemetrySettings
from edge.foundation.computer import Computer
from edge.foundation.task_group import TaskGroup
from edge.ports.batch import BatchError, decode_batch
from edge.ports.sample_lines import Sample
from edge.store import stream_of_samples as telemetry
from edge.store.client import Store
from edge.store.open_store import open_unchecked

_PACKAGED_SOCKET = "unix:///run/redis-microdcs/redis.sock"
_PACKAGED_DIRECTORY = "/var/lib/redis-microdcs"


def is_volatile(telemetry: TelemetrySettings, redis: RedisSettings, computer: Computer) -> bool:
    """Return whether samples are kept in the second Redis: as set, or where the packaged store is on an SD card."""
    if telemetry.mode == "off" or telemetry.keep != "auto":
        return telemetry.mode != "off" and telemetry.keep == "volatile"
    mount = computer.mount_of(_PACKAGED_DIRECTORY) if redis.url == _PACKAGED_SOCKET else None
    return mount is not None and computer.medium_of(mount) == "SD"


@asynccontextmanager
async def open_volatile(settings: Settings, consumer: str) -> AsyncIterator[Store | None]:
    """Yield the second Redis, which connects at its first use; None where samples are kept in the store."""
    telemetry = settings.section(TelemetrySettings)
    if not is_volatile(telemetry, settings.redis, Computer()):
        yield None
        return
    redis = RedisSettings(url=telemetry.volatile_url, prefix=settings.redis.prefix, durability="any")
    async with open_unchecked(redis, consumer) as store:
        yield store


async def follow_samples(stores: Sequence[Store], show: Callable[[Sample], None]) -> None:
    """Call `show` with every sample that is appended to one of the stores, until cancelled.

    Raises an exception group with Unavailable when a store is unavailable.
    """
    async with TaskGroup() as tasks:
        for store in stores:
            tasks.create_task(_follow(store, show), name="follow samples")


async def _follow(store: Store, show: Callable[[Sample], None]) -> None:
    async for entry in telemetry.follow(store):
        try:
            batch, _ = decode_batch(entry.fields)
        except BatchError:
            continue
        for line in batch.lines:
            if isinstance(line, Sample):
                show(line)

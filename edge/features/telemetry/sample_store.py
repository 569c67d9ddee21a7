"""Decides where samples are kept: in memory where the store would wear out an SD card."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from edge.config import RedisSettings, Settings
from edge.features.telemetry.settings import TelemetrySettings
from edge.foundation.computer import Computer
from edge.store.client import Store
from edge.store.opening import open_unchecked

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

"""Checks that a Redis server keeps its data, and that this version can read them."""

from collections.abc import Iterator, Mapping
from typing import Literal

from msgspec import Struct

from edge.errors import SettingsError
from edge.store.client import Store

STORE_VERSION = 1
"""The version of the stored data. A change that an older version would misread raises it and must convert the data."""

NEARLY_FULL = 0.85
"""The used part of the memory limit from which a server counts as nearly full."""


class MemoryUsage(Struct, frozen=True):
    """The memory that the data use and may use, in bytes; 0 for no limit."""

    used: int
    limit: int

    @property
    def fullness(self) -> float:
        """The used part of the limit; 0.0 without a limit."""
        return self.used / self.limit if self.limit else 0.0

    @property
    def is_nearly_full(self) -> bool:
        """Whether the server is nearly full."""
        return self.fullness >= NEARLY_FULL


async def memory(store: Store) -> MemoryUsage:
    """Return how full the server is."""
    info: Mapping[str, str] = await store.execute("INFO", "memory")
    return MemoryUsage(int(info["used_memory"]), int(info["maxmemory"]))


async def writes(store: Store) -> bool:
    """Return whether the server could write the last change to disk; while it cannot, it refuses further changes."""
    info: Mapping[str, str] = await store.execute("INFO", "persistence")
    return not int(info["aof_enabled"]) or info["aof_last_write_status"] == "ok"


async def check_server(store: Store, durability: Literal["required", "any"]) -> None:
    """Raise SettingsError when the server may lose decisions, or a newer version has written the store."""
    if durability == "required":
        info: list[Mapping[str, str]] = await store.read((("INFO", "memory"), ("INFO", "persistence")))
        if problems := list(_durability_problems({**info[0], **info[1]})):
            advice = (
                'Correct the configuration of the Redis server; or set [redis] durability = "any" and accept the loss.'
            )
            raise SettingsError([f"the Redis server {problem}" for problem in problems], advice)
    await store.execute("SET", store.keys.store_version(), STORE_VERSION, "NX")
    found = await store.execute("GET", store.keys.store_version())
    if int(found) > STORE_VERSION:
        raise SettingsError(
            [f"the store was written by a newer version: its data have version {found}, not {STORE_VERSION}"],
            "Install the newer version again, or restore a backup of the store that was made before it.",
        )


def _durability_problems(info: Mapping[str, str]) -> Iterator[str]:
    policy = info["maxmemory_policy"]
    if policy != "noeviction" and int(info["maxmemory"]):
        yield f"drops keys when it is full: its maxmemory-policy is {policy}, expected noeviction"
    if not int(info["aof_enabled"]):
        yield "does not write down each change: its appendonly is no, expected yes"

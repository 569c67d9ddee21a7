"""Looks whether a Redis server keeps what is entrusted to it, and whether we understand what it keeps."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from edge.errors import SettingsError
from edge.store.client import Store

FORM = 1
"""The form of what we keep. Raised by a change that an older version would misread; converting is then its business."""

NEARLY_FULL = 0.85
"""The part of its memory from which on a server is nearly full: there is still time to do something."""


@dataclass(frozen=True, slots=True)
class MemoryUsage:
    """How much memory the data take and may take, in bytes; a limit of 0 is none."""

    used: int
    limit: int

    @property
    def fullness(self) -> float:
        """The part of the limit that is taken, 0.0 where there is none."""
        return self.used / self.limit if self.limit else 0.0

    @property
    def is_nearly_full(self) -> bool:
        """Whether it is time to do something."""
        return self.fullness >= NEARLY_FULL


async def memory(store: Store) -> MemoryUsage:
    """Return how full the server is."""
    info: Mapping[str, Any] = await store.execute("INFO", "memory")
    return MemoryUsage(int(info["used_memory"]), int(info["maxmemory"]))


async def writes(store: Store) -> bool:
    """Return whether the server could write the last change to disk; while it cannot, it refuses all others."""
    info: Mapping[str, Any] = await store.execute("INFO", "persistence")
    return not int(info["aof_enabled"]) or info["aof_last_write_status"] == "ok"


async def check_server(store: Store, durability: Literal["required", "any"]) -> None:
    """Raise SettingsError where the store would forget decisions, or a newer version has written it in its own form."""
    if durability == "required":
        info: list[Mapping[str, Any]] = await store.read((("INFO", "memory"), ("INFO", "persistence")))
        if problems := list(_durability_problems({**info[0], **info[1]})):
            advice = (
                'Correct the configuration of the Redis server; or set [redis] durability = "any" and accept the loss.'
            )
            raise SettingsError([f"the Redis server {problem}" for problem in problems], advice)
    await store.execute("SET", store.keys.form(), FORM, "NX")
    form = await store.execute("GET", store.keys.form())
    if int(form) > FORM:
        raise SettingsError(
            [f"the store was written by a newer version, in form {form}; this version knows forms up to {FORM}"],
            "Install the newer version again, or restore a backup of the store that was made before it.",
        )


def _durability_problems(info: Mapping[str, Any]) -> Iterator[str]:
    policy = info["maxmemory_policy"]
    if policy != "noeviction" and int(info["maxmemory"]):
        yield f"drops keys when it is full: its maxmemory-policy is {policy}, expected noeviction"
    if not int(info["aof_enabled"]):
        yield "does not write down each change: its appendonly is no, expected yes"

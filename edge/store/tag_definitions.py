"""The definitions of tags that came from station files, by tag, as JSON; a counter shows each change."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from edge.store.client import Store
from edge.store.commit import Commit, RedisCommand
from edge.store.keys import Keys

_REVISION: Final = "rev"
_TAG: Final = "tag:"
"""Begins the field of a definition: a tag may have any name, also `rev`."""


@dataclass(frozen=True, slots=True)
class StoredDefinitions:
    """The definitions by tag, and how often they were changed."""

    revision: int = 0
    texts: Mapping[str, str] = field(default_factory=dict)


async def load(store: Store) -> StoredDefinitions:
    """Read all definitions."""
    found = await store.execute("HGETALL", store.keys.telemetry_definitions())
    texts = {name.removeprefix(_TAG): text for name, text in sorted(found.items()) if name.startswith(_TAG)}
    return StoredDefinitions(int(found.get(_REVISION, 0)), texts)


async def revision(store: Store) -> int:
    """Return how often the definitions were changed; 0 before the first."""
    return int(await store.execute("HGET", store.keys.telemetry_definitions(), _REVISION) or 0)


def save(keys: Keys, tag: str, text: str) -> Commit:
    """Write the definition of a tag."""
    return _change(keys, RedisCommand("HSET", (keys.telemetry_definitions(), f"{_TAG}{tag}", text)))


def remove(keys: Keys, tag: str) -> Commit:
    """Remove the definition of a tag."""
    return _change(keys, RedisCommand("HDEL", (keys.telemetry_definitions(), f"{_TAG}{tag}")))


def _change(keys: Keys, change: RedisCommand) -> Commit:
    counted = RedisCommand("HINCRBY", (keys.telemetry_definitions(), _REVISION, 1))
    return Commit(operations=(change, counted))

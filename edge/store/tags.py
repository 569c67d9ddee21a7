"""The last sample of each tag, as text."""

from collections.abc import Mapping

from edge.store.client import Store
from edge.store.commit import Commit, spread
from edge.store.keys import Keys


def save(keys: Keys, samples: Mapping[str, str]) -> Commit:
    """Write the last samples of tags."""
    return spread("HSET", (keys.tags(),), [each for pair in samples.items() for each in pair])


async def load(store: Store) -> dict[str, str]:
    """Read the last sample of every tag, by its name."""
    found: dict[str, str] = await store.execute("HGETALL", store.keys.tags())
    return dict(sorted(found.items()))


async def load_one(store: Store, name: str) -> str | None:
    """Read the last sample of a tag; None for an unknown one."""
    found: str | None = await store.execute("HGET", store.keys.tags(), name)
    return found

"""The last sample of each tag, as text."""

import re
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Final

from edge.store.client import Store
from edge.store.commit import Commit, join, spread
from edge.store.keys import Keys

_OF_GATEWAY: Final = re.compile(r"((?:gateway|equipment)\..+)\[([^\[\]]+)\]")
"""A tag that a gateway measured itself, with its name."""


def save(keys: Keys, samples: Mapping[str, str], gone: Collection[str] = ()) -> Commit:
    """Write the last samples of tags, and remove those that are gone."""
    written = spread("HSET", (keys.tags(),), [text for pair in samples.items() for text in pair])
    return join((written, spread("HDEL", (keys.tags(),), gone)))


async def load(store: Store) -> dict[str, str]:
    """Read the last sample of every tag, by its name.

    Tags of gateways have the name of their gateway, except those of this one, and where only one gateway has the tag.
    """
    found: dict[str, str] = await store.execute("HGETALL", store.keys.tags())
    of_gateways = {name: match for name in found if (match := _OF_GATEWAY.fullmatch(name))}
    gateways = Counter(match[1] for match in of_gateways.values())
    named: dict[str, str] = {}
    for name, text in found.items():
        match = of_gateways.get(name)
        is_plain = match and (match[2] == store.consumer or (gateways[match[1]] == 1 and match[1] not in found))
        named[match[1] if match and is_plain else name] = text
    return dict(sorted(named.items()))


async def load_one(store: Store, name: str) -> str | None:
    """Read the last sample of a tag, of this gateway before others; None for an unknown one."""
    key = store.keys.tags()
    own: str | None
    plain: str | None
    own, plain = await store.execute("HMGET", key, f"{name}[{store.consumer}]", name)
    if own is not None or plain is not None or not name.startswith(("gateway.", "equipment.")):
        return own if own is not None else plain
    return (await load(store)).get(name)

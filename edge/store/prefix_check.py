"""Checks that the keys below our prefix are ours before the first write."""

import functools
import re
from collections.abc import Mapping

from edge.foundation.errors import SettingsError
from edge.store.client import Store
from edge.store.keys import key_specs
from edge.store.scan import scan_keys

_SAMPLE = 200
"""The most keys that are examined; a store of ours without a mark is nearly empty."""


async def check_prefix(store: Store) -> None:
    """Raise SettingsError when another application keeps its data below our prefix."""
    if await store.execute("TYPE", store.keys.store_version()) == "string":
        return
    prefix = store.keys.prefix
    found = await _sample_keys(store, prefix)
    types = await store.read([("TYPE", key) for key in found])
    # A key that was removed meanwhile has no type.
    foreign = [
        f"{key} ({kind})"
        for key, kind in sorted(zip(found, types, strict=True))
        if kind != "none" and not _is_ours(key.removeprefix(f"{prefix}:"), kind)
    ]
    if foreign:
        shown = ", ".join(foreign[:3])
        problem = f"another application keeps its data in Redis below our prefix {prefix!r}: {shown}"
        raise SettingsError([problem], "Set [redis] prefix to a word that no other application uses.")


async def _sample_keys(store: Store, prefix: str) -> list[str]:
    """Return some keys below a prefix, however many keys other prefixes have."""
    found: list[str] = []
    async for batch in scan_keys(store, f"{prefix}:*"):
        found += batch
        if len(found) >= _SAMPLE:
            break
    return found


def _is_ours(name: str, kind: str) -> bool:
    """Return whether a key, by its name without the prefix and its type, can be one of ours."""
    return any(kind == spec.type and _expressions()[spec.name].fullmatch(name) for spec in key_specs())


@functools.cache
def _expressions() -> Mapping[str, re.Pattern[str]]:
    # A store with our mark needs none of these hundred.
    return {spec.name: spec.expression() for spec in key_specs()}

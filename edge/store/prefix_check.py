"""Looks whether what stands below our prefix is ours, before anything of ours is written there."""

from edge.errors import SettingsError
from edge.store.client import Store
from edge.store.keys import KEYS
from edge.store.scan import scan_keys

_SAMPLE = 200
"""How many keys are looked at where there are as many; a store of ours that has no mark yet is nearly empty."""


async def check_prefix(store: Store) -> None:
    """Raise SettingsError where another application keeps its data below our prefix."""
    if await store.execute("TYPE", store.keys.form()) == "string":
        return
    prefix = store.keys.prefix
    found = await _sample_keys(store, prefix)
    types = await store.read([("TYPE", key) for key in found])
    # One that is gone since has no type.
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
    """Find some keys below a prefix, among however many that are below others."""
    found: list[str] = []
    async for batch in scan_keys(store, f"{prefix}:*"):
        found += batch
        if len(found) >= _SAMPLE:
            break
    return found


def _is_ours(name: str, kind: str) -> bool:
    """Return whether a key, by its name without the prefix and its type, can be one of ours."""
    return any(kind == spec.type and _EXPRESSIONS[spec.name].fullmatch(name) for spec in KEYS)


_EXPRESSIONS = {spec.name: spec.expression() for spec in KEYS}

"""The reports of gateways about their equipment, for commands in other processes."""

from collections.abc import Mapping, Sequence

import msgspec

from edge.model.equipment_health import EquipmentReport
from edge.store.client import Store
from edge.store.commit import Commit, operation
from edge.store.keys import Keys

LIFETIME_MS = 86_400_000
"""How long a report is kept after it was written."""


def save(keys: Keys, consumer: str, report: EquipmentReport) -> Commit:
    """Write the report of a gateway and replace its last one."""
    return operation("SET", keys.health(consumer), msgspec.json.encode(report).decode(), "PX", LIFETIME_MS)


async def load(store: Store, consumers: Sequence[str]) -> Mapping[str, EquipmentReport | None]:
    """Return the last reports of these gateways; None for a gateway without a report."""
    texts = await store.read([("GET", store.keys.health(each)) for each in consumers])
    return {name: _report(text) for name, text in zip(consumers, texts, strict=True)}


async def load_registered(store: Store, scopes: Sequence[str]) -> Mapping[str, EquipmentReport | None]:
    """Return the reports of the gateways that are registered for these scopes, by name."""
    members = await store.read([("SMEMBERS", store.keys.instances(scope)) for scope in scopes])
    return await load(store, sorted(set().union(*members)))


def _report(text: str | None) -> EquipmentReport | None:
    try:
        return msgspec.json.decode(text, type=EquipmentReport) if text else None
    except (msgspec.DecodeError, RecursionError):
        # Another version may have written it; the next report replaces it.
        return None

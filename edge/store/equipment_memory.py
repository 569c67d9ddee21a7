"""What the store keeps about equipment: memory beyond a restart, disabled tools, reports of its health."""

from collections.abc import Mapping, Sequence

import msgspec

from edge.model.equipment_health import EquipmentReport
from edge.store.client import Store
from edge.store.commit import Commit, operation
from edge.store.keys import Keys


async def load_memory(store: Store, equipment: str) -> dict[str, str]:
    """Return the texts of a piece of equipment; empty for one that is new."""
    texts: dict[str, str] = await store.execute("HGETALL", store.keys.equipment_memory(equipment))
    return texts


async def save_memory(store: Store, equipment: str, texts: Mapping[str, str]) -> None:
    """Write these texts; the others stay. Writes nothing for an empty mapping."""
    if texts:
        fields = [part for field in texts.items() for part in field]
        await store.commit(operation("HSET", store.keys.equipment_memory(equipment), *fields))


async def keep_disabled(store: Store, place: str, since: int | None) -> None:
    """Keep that a tool is disabled since an instant, in milliseconds since the epoch; None: it is not disabled."""
    key = store.keys.disabled_tools()
    change = operation("HDEL", key, place) if since is None else operation("HSET", key, place, str(since))
    await store.commit(change)


async def is_disabled(store: Store, place: str) -> bool:
    """Return whether another system has disabled the tool at a place."""
    return bool(await store.execute("HEXISTS", store.keys.disabled_tools(), place))


REPORT_LIFETIME_MS = 86_400_000
"""How long a report is kept after it was written."""


def save_report(keys: Keys, consumer: str, report: EquipmentReport) -> Commit:
    """Write the report of a gateway and replace its last one."""
    return operation("SET", keys.health(consumer), msgspec.json.encode(report).decode(), "PX", REPORT_LIFETIME_MS)


async def load_reports(store: Store, consumers: Sequence[str]) -> Mapping[str, EquipmentReport | None]:
    """Return the last reports of these gateways; None for a gateway without a report."""
    texts = await store.read([("GET", store.keys.health(consumer)) for consumer in consumers])
    return {name: _report(text) for name, text in zip(consumers, texts, strict=True)}


async def load_registered_reports(store: Store, scopes: Sequence[str]) -> Mapping[str, EquipmentReport | None]:
    """Return the reports of the gateways that are registered for these scopes, by name."""
    members = await store.read([("SMEMBERS", store.keys.instances(scope)) for scope in scopes])
    return await load_reports(store, sorted(set().union(*members)))


def _report(text: str | None) -> EquipmentReport | None:
    try:
        return msgspec.json.decode(text, type=EquipmentReport) if text else None
    except (msgspec.DecodeError, RecursionError):
        # Another version may have written it; the next report replaces it.
        return None

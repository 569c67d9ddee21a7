"""What equipment needs beyond its connection and a restart: texts by their names, such as learnt revisions."""

from collections.abc import Mapping

from edge.store.client import Store
from edge.store.commit import operation


async def load(store: Store, equipment: str) -> dict[str, str]:
    """Return the texts of a piece of equipment; empty for one that is new."""
    texts: dict[str, str] = await store.execute("HGETALL", store.keys.equipment_memory(equipment))
    return texts


async def save(store: Store, equipment: str, texts: Mapping[str, str]) -> None:
    """Write these texts; the others stay. Writes nothing for an empty mapping."""
    if texts:
        fields = [part for field in texts.items() for part in field]
        await store.commit(operation("HSET", store.keys.equipment_memory(equipment), *fields))

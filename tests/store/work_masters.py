"""Reads the Work Masters of a store, for tests."""

from edge.model.isa95 import WorkMaster
from edge.store import resources
from edge.store.client import Store


async def work_master(store: Store, work_master_id: str, scope: str | None = None) -> WorkMaster | None:
    """Return a Work Master as a scope stored it, by default the first of them; None when there is none."""
    found = await resources.load_work_master_at_revision(store, work_master_id, scope)
    return found.work_master if found else None

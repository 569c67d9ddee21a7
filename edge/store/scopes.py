"""The scopes in a store, of every gateway that works on it."""

from edge.store.client import Store
from edge.store.scan import scan_keys


async def load_scopes(store: Store) -> set[str]:
    """Return the scopes that ever held a job, or that a gateway ever worked on."""
    work = store.keys.sfc_work("")
    worked_on = {key.removeprefix(work) async for batch in scan_keys(store, f"{work}*") for key in batch}
    held: set[str] = await store.execute("SMEMBERS", store.keys.active_scopes())
    return worked_on | held

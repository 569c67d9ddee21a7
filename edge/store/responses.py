"""Finds the job responses of a scope."""

from edge.model.isa95 import JobResponse
from edge.store.client import Store
from edge.store.jobs import read_response


async def load_all(store: Store, scope: str) -> list[JobResponse]:
    """Read the responses of all jobs of a scope that have started, in the order of their start."""
    ids = await store.execute("ZRANGE", store.keys.jobresponse_list(scope), 0, -1)
    found = await store.read([("HGETALL", store.keys.jobresponse(each)) for each in ids]) if ids else []
    # One that was removed in between has gone.
    return [response for stored in found if (response := read_response(stored))]

"""Finds the job responses of a scope."""

import msgspec

from edge.model.isa95 import JobResponse
from edge.store.client import Store


async def load_all(store: Store, scope: str) -> list[JobResponse]:
    """Read the responses of all jobs of a scope that have started, in the order of their start."""
    ids = await store.execute("ZRANGE", store.keys.jobresponse_list(scope), 0, -1)
    texts = await store.read([("HGET", store.keys.jobresponse(each), "response") for each in ids]) if ids else []
    # One that was removed in between has gone.
    return [msgspec.json.decode(text, type=JobResponse) for text in texts if text]

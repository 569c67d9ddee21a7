"""Finds the job responses of a scope."""

import structlog

from edge.model.isa95 import JobResponse
from edge.store.client import Store
from edge.store.jobs import read_response

logger = structlog.get_logger(__name__)


async def load_all(store: Store, scope: str) -> list[JobResponse]:
    """Read the responses of all jobs of a scope that have started, in the order of their start.

    One that cannot be read is logged and left out.
    """
    ids = await store.execute("ZRANGE", store.keys.jobresponse_list(scope), 0, -1)
    found = await store.read([("HGETALL", store.keys.jobresponse(each)) for each in ids]) if ids else []
    loaded = []
    for response_id, stored in zip(ids, found, strict=True):
        try:
            # One that was removed in between has gone.
            loaded += [response] if (response := read_response(stored)) else []
        except Exception:
            # One document that nobody can read must not hide the others.
            logger.exception("job response cannot be read", response=response_id)
    return loaded

"""A store knows the scopes of every gateway that works on it."""

from edge.model.isa95 import JobOrder
from edge.model.job_state import NEW, Cause
from edge.store import jobs, work
from edge.store.client import Store
from edge.store.jobs import Job
from edge.store.scopes import load_scopes


async def test_scope_is_listed_from_its_first_job_or_gateway(store: Store) -> None:
    assert await load_scopes(store) == set()
    await work.create_groups(store, ("station-1", "station-2"))
    order = JobOrder(job_order_id="J9")
    job = Job(order=order, scope="station-9", status=NEW[Cause.STORE], correlation_id="c", stored_at=1)
    await store.commit(jobs.save(store.keys, None, job, (), 1))
    assert await load_scopes(store) == {"station-1", "station-2", "station-9"}

"""Keys are found by their pattern, in more than one batch."""

from structlog.testing import capture_logs

from edge.model.isa95 import JobOrder
from edge.model.job_state import NEW, Cause
from edge.store import jobs, version, work
from edge.store.bulk_reads import load_readable, load_scopes, scan_keys
from edge.store.client import Store
from edge.store.commit import join, operation
from edge.store.jobs import Job
from edge.store.version import Document


async def test_all_keys_of_a_pattern_are_found_and_no_others(store: Store) -> None:
    ours = {store.keys.cededupe(str(number)) for number in range(3000)}
    await store.commit(join(operation("SET", key, "") for key in ours))
    await store.execute("SET", store.keys.counter("other"), "1")
    found = [batch async for batch in scan_keys(store, store.keys.cededupe("*"))]
    assert {key for batch in found for key in batch} == ours
    assert len(found) > 1
    assert [batch async for batch in scan_keys(store, store.keys.transdedupe("*"))] == []


async def test_missing_or_unreadable_document_does_not_hide_others(store: Store) -> None:
    for key, number in (("p:1", 1), ("p:2", 99), ("p:4", 1)):
        await store.execute("HSET", key, version.FIELD, number, "name", key)
    with capture_logs() as logs:
        found = await load_readable(
            store,
            ["p:4", "p:3", "p:2", "p:1"],
            lambda fields: version.upgrade_fields(Document.JOB_ORDER, fields)["name"],
        )
    assert found == ["p:4", "p:1"]
    assert [(entry["event"], entry["key"]) for entry in logs] == [("document cannot be read", "p:2")]


async def test_empty_key_list_returns_no_documents(store: Store) -> None:
    assert await load_readable(store, [], dict) == []


async def test_scope_is_listed_from_its_first_job_or_gateway(store: Store) -> None:
    assert await load_scopes(store) == set()
    await work.create_groups(store, ("station-1", "station-2"))
    order = JobOrder(job_order_id="J9")
    job = Job(order=order, scope="station-9", status=NEW[Cause.STORE], correlation_id="c", stored_at=1)
    await store.commit(jobs.save(store.keys, None, job, (), 1))
    assert await load_scopes(store) == {"station-1", "station-2", "station-9"}

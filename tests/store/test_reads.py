"""Entries of streams are read alike, from every command that returns them."""

import asyncio

import pytest
from structlog.testing import capture_logs

from edge.model.isa95 import JobOrder
from edge.model.job_state import NEW, Cause
from edge.store import jobs, version, work
from edge.store.client import Store
from edge.store.commit import join, operation
from edge.store.jobs import Job
from edge.store.reads import (
    BEGINNING,
    Entry,
    StreamPage,
    create_group,
    entries,
    load_readable,
    load_scopes,
    page_of,
    reachable,
    scan_keys,
)
from edge.store.version import Document


@pytest.mark.parametrize("raw", [[("1-0", ["a", "1", "b", "2"])], [("1-0", {"a": "1", "b": "2"})]])
def test_entries_are_read_alike_in_both_protocol_versions(
    raw: list[tuple[str, list[str] | dict[str, str] | None]],
) -> None:
    assert list(entries(raw)) == [Entry("1-0", {"a": "1", "b": "2"})]


def test_deleted_pending_entry_has_no_fields() -> None:
    assert list(entries([("1-0", None)])) == [Entry("1-0", {})]


def test_page_skips_unreadable_entries_and_continues_after_them() -> None:
    raw = [(f"{number}-0", {"a": str(number)}) for number in range(4)]

    def odd(entry: Entry) -> str | None:
        return entry.entry_id if int(entry.fields["a"]) % 2 else None

    assert page_of(raw, 4, odd) == StreamPage(("1-0", "3-0"), "3-0")
    assert page_of(raw, 5, odd) == StreamPage(("1-0", "3-0"), "")
    assert page_of(raw[:1], 1, odd) == StreamPage((), "0-0")
    assert page_of([], 1, odd) == StreamPage((), "")


@pytest.mark.parametrize(
    ("position", "expected"),
    [("150-0", "150-0"), ("149-7", "149-7"), ("150-1", "150-0"), ("178-0", "150-0")],
    ids=["at the end", "before it", "just ahead", "of another history"],
)
async def test_position_ahead_of_its_stream_is_set_back(
    store: Store, unique: str, position: str, expected: str
) -> None:
    for entry_id in ("100-0", "150-0"):
        await store.execute("XADD", f"{unique}:s", entry_id, "a", "b")
    assert await reachable(store, f"{unique}:s", position) == expected


async def test_position_in_a_stream_without_entries_is_the_beginning(store: Store, unique: str) -> None:
    assert await reachable(store, f"{unique}:s", "178-0") == BEGINNING


async def test_concurrent_creation_of_a_group_succeeds(store: Store) -> None:
    """The slower one took the answer for an outage: a warning, and a second of waiting."""
    await asyncio.gather(*(create_group(store, f"stream-{number % 5}", "g") for number in range(20)))
    for number in range(5):
        assert [value["name"] for value in await store.execute("XINFO GROUPS", f"stream-{number}")] == ["g"]


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

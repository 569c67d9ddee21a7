"""Documents of removed jobs wait for the archive as they were."""

import pytest

from edge.store.archive_backlog import EndedJob, ended_among, load_backlog, load_documents, read_backlog_text
from edge.store.client import Store
from edge.store.commit import operation


async def test_documents_of_an_unknown_job_are_none(store: Store) -> None:
    assert await load_documents(store, "J1", "c1") is None


@pytest.mark.parametrize("text", ["", "!!!", "AAAA", "eJwDAAAAAAE=", "eJyrrgUAAXUA+Q=="])
def test_damaged_entry_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        read_backlog_text(text)


async def test_backlog_is_read_in_parts(store: Store) -> None:
    for number in range(300):
        await store.commit(operation("HSET", store.keys.archive_backlog("s"), f"c{number}", "x" * 100))
    assert 0 < len(await load_backlog(store, "s", 100)) <= 100


async def test_only_ended_jobs_of_the_scope_are_returned(store: Store) -> None:
    for job_id, scope, state in (("J1", "s", "ENDED"), ("J2", "s", "RUNNING"), ("J3", "t", "ENDED")):
        fields = ("scope", scope, "state", state, "correlation_id", "c", "rev", "3")
        await store.commit(operation("HSET", store.keys.joborder(job_id), *fields))
    assert await ended_among(store, "s", ["J1", "J2", "J3", "J4"]) == [EndedJob("J1", "c", 3, 0)]

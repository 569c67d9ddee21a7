"""Missing and unreadable documents are skipped, and the others are read."""

from structlog.testing import capture_logs

from edge.store import version
from edge.store.client import Store
from edge.store.tolerant_read import load_readable
from edge.store.version import Document


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
    assert [(each["event"], each["key"]) for each in logs] == [("document cannot be read", "p:2")]


async def test_empty_key_list_returns_no_documents(store: Store) -> None:
    assert await load_readable(store, [], dict) == []

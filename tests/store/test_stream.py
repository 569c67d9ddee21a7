"""Entries of streams are read alike, from every command that returns them."""

import asyncio

import pytest

from edge.store.client import Store
from edge.store.stream import BEGINNING, Entry, StreamPage, create_group, entries, page_of, reachable


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

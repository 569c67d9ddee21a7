"""Entries of streams are read alike, from every command that returns them."""

import pytest

from edge.store.stream import Entry, entries


@pytest.mark.parametrize("raw", [[("1-0", ["a", "1", "b", "2"])], [("1-0", {"a": "1", "b": "2"})]])
def test_entries_read_alike_however_the_protocol_wrote_their_fields(
    raw: list[tuple[str, list[str] | dict[str, str] | None]],
) -> None:
    assert list(entries(raw)) == [Entry("1-0", {"a": "1", "b": "2"})]


def test_an_entry_that_was_dropped_since_it_was_taken_has_no_fields() -> None:
    assert list(entries([("1-0", None)])) == [Entry("1-0", {})]

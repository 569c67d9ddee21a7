"""A chain of audit records shows every gap and change; only the oldest records may be removed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from edge.access.audit_trail import START, find_faults, head_of, seal
from edge.model.audit import ChainHead, SealedRecord

KEEP = 100

_texts = st.lists(st.text(max_size=20), min_size=1, max_size=12)


def numbers_of_faults(records: list[SealedRecord], head: ChainHead, keep: int = KEEP) -> list[int]:
    return [fault.number for fault in find_faults(records, head, keep)]


@given(_texts, _texts)
def test_chain_written_in_two_parts_has_no_faults(first: list[str], second: list[str]) -> None:
    records = seal(START, first)
    records += seal(head_of(records), second)
    assert numbers_of_faults(records, head_of(records)) == []
    assert [record.number for record in records] == list(range(1, len(first) + len(second) + 1))


@given(_texts, st.data())
def test_every_change_of_a_record_is_detected(texts: list[str], data: st.DataObject) -> None:
    records = seal(START, texts)
    head, index = head_of(records), data.draw(st.integers(0, len(records) - 1))
    changed = data.draw(
        st.sampled_from(
            [
                [*records[:index], *records[index + 1 :]],
                [*records[:index], replace(records[index], text=records[index].text + "x"), *records[index + 1 :]],
                [*records[:index], replace(records[index], digest="0" * 64), *records[index + 1 :]],
                [*records[:index], records[index], records[index], *records[index + 1 :]],
            ]
        )
    )
    assert numbers_of_faults(changed, head)


@pytest.mark.parametrize("count", [KEEP, KEEP + 5])
def test_chain_without_its_oldest_records_is_complete_when_it_is_full(count: int) -> None:
    records = seal(START, map(str, range(KEEP + 50)))[-count:]
    assert numbers_of_faults(records, head_of(records)) == []


def test_missing_oldest_records_of_a_partly_filled_chain_are_detected() -> None:
    records = seal(START, map(str, range(20)))
    assert numbers_of_faults(records[5:], head_of(records)) == [6]


def test_missing_newest_records_are_detected() -> None:
    records = seal(START, map(str, range(20)))
    assert numbers_of_faults(records[:-3], head_of(records)) == [17]


def test_empty_stream_with_a_chain_head_is_detected() -> None:
    assert numbers_of_faults([], ChainHead(7, "ab")) == [7]
    assert numbers_of_faults([], START) == []

"""Batches are encoded as text without loss; invalid lines are named."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.ports.batch import (
    MAX_TEXT_LENGTH,
    Batch,
    BatchError,
    decode_batch,
    encode_batch,
    fault_of,
    is_name,
    plausible_time,
)
from edge.ports.sample_lines import Line, Occurrence, Quality, Sample

values = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text(max_size=20)
names = st.text(min_size=1).filter(is_name)
samples = st.builds(Sample, st.integers(0, 2**45), names, values, st.sampled_from(Quality), st.none() | st.text())
occurrences = st.builds(Occurrence, st.integers(0, 2**45), names, st.none() | st.text(), values)


@given(st.lists(samples | occurrences, max_size=5), st.integers(0, 2**45))
def test_batch_is_read_back_unchanged(lines: list[Line], at: int) -> None:
    batch = Batch("p", 3, at, tuple(lines))
    fields = encode_batch(batch)
    assert all(isinstance(text, str) for text in fields.values())
    decoded, faults = decode_batch(fields)
    assert faults == ()
    # NaN differs from itself; its text does not.
    assert repr(decoded) == repr(batch)
    types = [type(line.value) for line in decoded.lines if isinstance(line, Sample)]
    assert types == [type(line.value) for line in lines if isinstance(line, Sample)]


def test_unreadable_lines_are_named_and_skipped() -> None:
    fields = {"producer": "p", "number": "1", "at": "5", "0": "{", "1": '{"at": 1, "tag": "t", "value": 2}'}
    batch, faults = decode_batch(fields)
    assert (batch.lines, len(faults)) == ((Sample(1, "t", 2),), 1)


@pytest.mark.parametrize("value", ["[1]", "{}", str(2**64), '"' + "x" * 4_097 + '"'])
def test_sample_of_another_program_with_an_unusable_value_is_uncertain(value: str) -> None:
    fields = {"producer": "p", "number": "1", "at": "5", "0": f'{{"at": 1, "tag": "t", "value": {value}}}'}
    batch, faults = decode_batch(fields)
    assert (batch.lines, len(faults)) == ((Sample(1, "t", None, Quality.UNCERTAIN),), 1)


def test_line_of_another_program_with_an_unusable_name_is_skipped() -> None:
    fields = {
        "producer": "p",
        "number": "1",
        "at": "5",
        "0": '{"at": 1, "tag": "", "value": 2}',
        "1": '{"at": 1, "occurrence": ""}',
    }
    batch, faults = decode_batch(fields)
    assert (batch.lines, len(faults)) == ((), 2)


@pytest.mark.parametrize("fields", [{}, {"producer": "p", "number": "x", "at": "1"}, {"producer": "p", "number": "1"}])
def test_entry_that_is_not_a_batch_is_refused(fields: dict[str, str]) -> None:
    with pytest.raises(BatchError):
        decode_batch(fields)


@pytest.mark.parametrize(
    ("tag", "value"),
    [
        ("", 1),
        ("x" * 201, 1),
        ("a\nb", 1),
        ("t", 2**64),
        ("t", "x" * (MAX_TEXT_LENGTH + 1)),
        ("t", {"a": 1}),
        ("t", [1]),
        ("t", b"x"),
    ],
)
def test_invalid_sample_has_a_fault(tag: str, value: Any) -> None:
    assert fault_of(Sample(1, tag, value))


@pytest.mark.parametrize("value", [None, True, 1, -(2**63), 2**63, 2**64 - 1, 1.5, math.nan, math.inf, "text"])
def test_valid_values_have_no_fault(value: Any) -> None:
    assert fault_of(Sample(1, "t", value)) is None


@pytest.mark.parametrize(
    ("source", "latest", "expected"),
    [
        (99_000, 0, 99_000),
        (0, 0, 100_000),
        (39_999, 0, 100_000),
        (101_000, 0, 101_000),
        (4_000_000_000_000, 0, 100_000),
        (99_000, 99_500, 99_500),
    ],
)
def test_implausible_source_time_is_replaced_by_a_monotonic_time(source: int, latest: int, expected: int) -> None:
    assert max(latest, plausible_time(source, 100_000)) == expected

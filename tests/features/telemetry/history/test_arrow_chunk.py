"""Tests of chunks: every value is read back exactly, and other programs read the same values."""

import io
import math

import nanoarrow as na
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.features.telemetry.history.arrow_chunk import (
    decode_chunk,
    encode_chunk,
    encode_schema,
)
from edge.ports.sample_lines import Quality, Sample

VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 63) - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
)
SAMPLES = st.builds(
    Sample,
    at=st.integers(0, 1 << 50),
    tag=st.sampled_from(["a", "b.c", "b", "Ä", "\U0001f600"]),
    value=VALUES,
    quality=st.sampled_from(Quality),
    process=st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    job=st.none() | st.text("J1", max_size=3),
    action=st.none() | st.text("A1", max_size=3),
    carrier=st.none() | st.text("C1", max_size=3),
)


@given(st.lists(SAMPLES, min_size=1, max_size=30))
def test_every_sample_is_read_back_by_tag_in_order_of_time(samples: list[Sample]) -> None:
    chunk = decode_chunk(encode_chunk(samples), encode_schema())
    assert len(chunk) == len(samples)
    assert list(chunk.tags()) == sorted({sample.tag for sample in samples})
    for tag in chunk.tags():
        expected = sorted((sample for sample in samples if sample.tag == tag), key=lambda sample: sample.at)
        found = [chunk.sample(row) for row in chunk.rows(tag, 0, 1 << 62)]
        assert found == expected
        assert [type(sample.value) for sample in found] == [type(sample.value) for sample in expected]


def test_range_includes_its_start_and_excludes_its_end() -> None:
    chunk = decode_chunk(encode_chunk([Sample(at, "t", at) for at in (1, 2, 3, 4)]), encode_schema())
    assert [chunk.at(row) for row in chunk.rows("t", 2, 4)] == [2, 3]
    assert not chunk.rows("other", 0, 9)


def test_nan_and_infinities_are_read_back() -> None:
    chunk = decode_chunk(encode_chunk([Sample(1, "t", math.nan), Sample(2, "t", -math.inf)]), encode_schema())
    first, second = (chunk.sample(row).value for row in chunk.rows("t", 0, 9))
    assert math.isnan(first)
    assert second == -math.inf


def test_schema_and_chunks_are_one_arrow_stream() -> None:
    stream = encode_schema() + encode_chunk([Sample(1, "a", 1.5)]) + encode_chunk([Sample(2, "a", "x")])
    batches = na.ArrayStream.from_readable(io.BytesIO(stream)).read_all().to_pylist()
    assert [(batch["tag"], batch["value"], batch["text"]) for batch in batches] == [("a", 1.5, None), ("a", None, "x")]
    assert batches[0]["at"].isoformat() == "1970-01-01T00:00:00.001000+00:00"


@pytest.mark.parametrize("data", [b"", b"garbage", encode_chunk([Sample(1, "a", 1)])[:-20]])
def test_data_that_is_not_a_chunk_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="record batch"):
        decode_chunk(data, encode_schema())

"""The JobOrderID of a code: valid for every text, and different for different codes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.features.readers.scanned_job import to_job_order_id
from edge.model.acceptance import validate_id

_codes = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("VIN-7", "VIN-7"),
        ("50%", "50%"),
        ("ÜML/7 +#", "ÜML/7 +#"),
        ("010950110153000310AB-123\x1d21SER1", "010950110153000310AB-123%1D21SER1"),
        ("A\t5%", "A%095%25"),
        ("A%1D", "A%251D"),
        ("A%1d", "A%1d"),
        ("A\u00a0B", "A%C2%A0B"),
    ],
)
def test_code_with_a_separator_is_percent_encoded_as_job_order_id(code: str, expected: str) -> None:
    assert to_job_order_id(code) == expected


@given(_codes)
def test_every_code_has_a_valid_job_order_id(code: str) -> None:
    assert [text for text in validate_id("JobOrderID", to_job_order_id(code)) if "begin with" not in str(text)] == []


@given(st.text("A%\x1d12D5", max_size=8), st.text("A%\x1d12D5", max_size=8))
def test_different_codes_have_different_job_order_ids(one: str, other: str) -> None:
    assert (to_job_order_id(one) == to_job_order_id(other)) is (one == other)

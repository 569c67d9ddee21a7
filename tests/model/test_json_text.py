"""JSON from a file is validated as strictly as from a message; errors contain the position."""

import pytest

from edge.foundation.errors import Refused
from edge.model.json_text import read_json_text


def test_byte_order_mark_is_ignored() -> None:
    assert read_json_text(b'\xef\xbb\xbf{"steps": []}') == {"steps": []}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "not JSON: Expecting value: line 1 column 1"),
        (b'{\n "steps": [,]}', "line 2 column 12"),
        (b"\xff", "not JSON"),
        (b"[" * 100_000, "not JSON: maximum recursion depth exceeded"),
        (b"9" * 5000, "not JSON"),
        (b"[NaN]", "malformed"),
        (b"1e400", "out of range"),
        (rb'"\ud800"', "application/json"),
        (b"[" * 100 + b"]" * 100, "nested"),
    ],
)
def test_text_that_a_gateway_would_refuse_is_refused(text: bytes, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        read_json_text(text)

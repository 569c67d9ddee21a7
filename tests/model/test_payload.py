"""A payload without a content type is JSON, MessagePack or text, and none of them fails."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.model.payload import decode_payload


@pytest.mark.parametrize(
    ("payload", "value"),
    [
        (b"", ""),
        (b"\n", 10),
        (b" ", " "),
        (b" [1]", [1]),
        (b"5", 5),
        (b"42", 42),
        (b"81.5", 81.5),
        (b"true", True),
        (b'{"v": 1}', {"v": 1}),
        (b"on", "on"),
        (msgspec.msgpack.encode({"v": 1.5}), {"v": 1.5}),
        (msgspec.msgpack.encode(300), 300),
        (b"\xc3", True),
        (b"[" * 50_000, "[" * 50_000),
        (b"\x91" * 50_000, ...),
    ],
)
def test_payload_is_json_else_messagepack_else_text(payload: bytes, value: Any) -> None:
    decoded = decode_payload(payload)
    assert value is ... or decoded == value


@given(st.binary(max_size=200))
def test_no_payload_raises(payload: bytes) -> None:
    decode_payload(payload)


@given(st.binary(min_size=2, max_size=50))
def test_no_payload_is_both_json_and_messagepack(payload: bytes) -> None:
    """The order in which they are tried decides nothing."""
    decoded = []
    for decode in (msgspec.json.decode, msgspec.msgpack.decode):
        try:
            decoded.append(decode(payload))
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
    assert len(decoded) <= 1

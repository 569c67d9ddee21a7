"""A payload without a content type is JSON, MessagePack or text; anything else is refused with one error."""

import struct
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.model.payload import UnreadablePayloadError, decode_msgpack, decode_payload


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
    ],
)
def test_payload_is_json_else_messagepack_else_text(payload: bytes, value: Any) -> None:
    decoded = decode_payload(payload)
    assert decoded == value


@pytest.mark.parametrize("payload", [b"52.0\xb0C", b"\xff\xfe\x00", b"\x91" * 50_000], ids=["latin-1", "bytes", "bomb"])
def test_undecodable_bytes_are_refused_not_replaced(payload: bytes) -> None:
    with pytest.raises(UnreadablePayloadError):
        decode_payload(payload)


@given(st.binary(max_size=200))
def test_any_payload_decodes_or_raises_unreadable_payload_error(payload: bytes) -> None:
    with suppress(UnreadablePayloadError):
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


class EndsAtTheLimit:
    """Has a finalizer that the collector calls at the last level of a decoder."""

    def __del__(self) -> None:
        raise RecursionError


def test_finalizer_at_the_limit_of_recursion_fails_no_test() -> None:
    """The collector called one within the decoder of `bomb`, and failed the test."""
    EndsAtTheLimit()


@pytest.mark.parametrize(
    ("nanoseconds", "microseconds"), [(999_999_900, 999_999), (999_999_999, 999_999), (0, 0), (999_999_000, 999_999)]
)
def test_largest_instant_of_dotnet_is_read_from_messagepack(nanoseconds: int, microseconds: int) -> None:
    """It escaped as a ValueError that nothing expected."""
    extension = b"\xc7\x0c\xff" + struct.pack(">Iq", nanoseconds, 253_402_300_799)
    payload = b"\x81\xa2at" + extension
    expected = datetime(9999, 12, 31, 23, 59, 59, microseconds, tzinfo=UTC)
    assert decode_msgpack(payload) == {"at": expected}
    assert decode_payload(payload) == {"at": expected}


@pytest.mark.parametrize("seconds", [253_402_300_800, 2**62, -(2**62)])
def test_instant_beyond_the_calendar_is_unreadable(seconds: int) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_msgpack(b"\xc7\x0c\xff" + struct.pack(">Iq", 0, seconds))

"""A payload is decoded by its content type, if it can be stored and read again."""

from typing import Any

import msgspec
import pytest

from edge.foundation.errors import Refused
from edge.model.cloudevent import MAX_NESTING, MSGPACK, decode_data, encode_data


def nested(levels: int) -> bytes:
    return b"[" * levels + b"1" + b"]" * levels


@pytest.mark.parametrize(
    ("content_type", "payload", "data"),
    [
        ("application/json", b'{"a": [1, null, "x"]}', {"a": [1, None, "x"]}),
        ("", b"1.5", 1.5),
        ("Application/JSON; charset=utf-8", b"true", True),
        ("application/vnd.maker+json", b"{}", {}),
        (MSGPACK, msgspec.msgpack.encode({"a": [1, None]}), {"a": [1, None]}),
        ("application/x-msgpack; a=b", b"\x01", 1),
        ("text/nothing", b"", None),
    ],
)
def test_a_payload_is_decoded_by_its_media_type(content_type: str, payload: bytes, data: Any) -> None:
    assert decode_data(content_type, payload) == data


@pytest.mark.parametrize("content_type", ["application/json; charset=utf-8", "application/msgpack; a=b", MSGPACK])
def test_encoded_data_is_decoded_by_the_same_content_type(content_type: str) -> None:
    assert decode_data(content_type, encode_data(content_type, {"a": 1})) == {"a": 1}


@pytest.mark.parametrize(
    ("content_type", "payload", "words"),
    [
        ("application/json", b"{", "the payload is not application/json"),
        ("application/json", b"\xff", "the payload is not application/json"),
        (MSGPACK, b"\xc1", "the payload is not application/msgpack"),
        ("text/xml", b"<a/>", "'text/xml' is not supported"),
        (MSGPACK, msgspec.msgpack.encode([msgspec.msgpack.Ext(1, b"x")]), "extension type"),
        (MSGPACK, b"\x81\x01\x02", "a key that is not a text"),
        ("application/json", b"1" + b"0" * 400, "whole number beyond every double"),
        ("application/json", nested(MAX_NESTING + 1), f"nested deeper than {MAX_NESTING} levels"),
        ("application/json", nested(100_000), "the payload is not application/json"),
    ],
)
def test_unreadable_or_unstorable_payload_is_refused(content_type: str, payload: bytes, words: str) -> None:
    with pytest.raises(Refused, match=words) as refusal:
        decode_data(content_type, payload)
    assert refusal.value.kind == "unreadable"
    assert refusal.value.advice


def test_nesting_up_to_the_limit_is_decoded() -> None:
    assert decode_data("application/json", nested(MAX_NESTING))

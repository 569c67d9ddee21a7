"""A packed message is read with any fragmentation, and any other bytes are refused as malformed."""

from contextlib import suppress
from typing import Any

import msgpack
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.foundation.errors import Refused
from edge.links.rpc_transport import MAX_NESTING, Frames, InvalidRequest, Notification, Request, Response, encode
from edge.model.isa95 import MethodAnswer, ReturnStatus

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)
METHODS = st.text(max_size=100)
IDS = st.integers(0, 2**32 - 1)
MESSAGES = st.one_of(
    st.builds(Request, IDS, METHODS, st.lists(VALUES, max_size=3)),
    st.builds(Response, IDS, VALUES, VALUES),
    st.builds(Notification, METHODS, st.lists(VALUES, max_size=3)),
)


def read(data: bytes, most_bytes: int = 1000) -> list[Any]:
    frames = Frames(most_bytes)
    frames.feed(data)
    return list(frames)


def nested(levels: int) -> list[Any]:
    inner: list[Any] = []
    for _ in range(levels - 1):
        inner = [inner]
    return inner


@given(messages=st.lists(MESSAGES, max_size=5), cuts=st.lists(st.integers(1, 20), min_size=1))
def test_messages_are_decoded_with_any_fragmentation(messages: list[Any], cuts: list[int]) -> None:
    stream = b"".join(encode(message) for message in messages)
    frames, got = Frames(), []
    while stream:
        piece = cuts[len(stream) % len(cuts)]
        frames.feed(stream[:piece])
        stream = stream[piece:]
        got += list(frames)
    assert got == messages


@pytest.mark.parametrize(
    ("message", "packed"),
    [
        (Request(7, "publish", [{"id": "1"}]), [0, 7, "publish", [{"id": "1"}]]),
        (Response(7, None, [1]), [1, 7, None, [1]]),
        (Response(7, "no", None), [1, 7, "no", None]),
        (Notification("heartbeat", []), [2, "heartbeat", []]),
        (Response(1, None, MethodAnswer(return_status=ReturnStatus.NO_ERROR)), [1, 1, None, {"ReturnStatus": 1}]),
        (Response(1, None, {"big": 2**70}), [1, 1, None, {"big": float(2**70)}]),
    ],
)
def test_message_is_encoded_as_the_list_in_the_specification(message: Any, packed: list[Any]) -> None:
    assert msgpack.unpackb(encode(message)) == packed


@pytest.mark.parametrize(
    ("parts", "fault"),
    [
        ([0, 5, 42, []], "method is not a text of at most 100 characters"),
        ([0, 5, "m" * 101, []], "method is not a text of at most 100 characters"),
        ([0, 5, "publish", {"id": 1}], "parameters are not list"),
        ([0, 5, "publish", nested(MAX_NESTING + 2)], f"parameters are nested deeper than {MAX_NESTING} levels"),
    ],
)
def test_invalid_request_keeps_its_id_for_the_answer(parts: list[Any], fault: str) -> None:
    assert read(msgpack.packb(parts)) == [InvalidRequest(5, fault)]


def test_parameters_may_be_nested_as_deep_as_the_limit() -> None:
    params = nested(MAX_NESTING)
    assert read(msgpack.packb([0, 1, "m", params])) == [Request(1, "m", params)]


@pytest.mark.parametrize(
    "data",
    [
        b"\xc1",
        b"GET / HTTP/1.1\r\n\r\n",
        msgpack.packb([]),
        msgpack.packb({"method": "publish"}),
        msgpack.packb([3, 1, "publish", []]),
        msgpack.packb([0, -1, "publish", []]),
        msgpack.packb([0, 2**32, "publish", []]),
        msgpack.packb([0, "1", "publish", []]),
        msgpack.packb([2, "publish", 5]),
        msgpack.packb([2, "publish"]),
        msgpack.packb([1, 1, None, nested(MAX_NESTING + 5)]),
        b"\x94\x00\x01\xa1\xff\x90",
        b"\x91" * 2000,
        b"\x91" * 900 + b"\x01",
        b"\xdd\x7f\xff\xff\xff" + b"\x00" * 1000,
        b"\x91\xc6\x00\xff\xff\xff" + b"x" * 1000,
        msgpack.packb([2, "m", ["x" * 1000]]),
    ],
)
def test_invalid_message_is_malformed(data: bytes) -> None:
    with pytest.raises(Refused):
        read(data)


def test_header_without_a_body_is_awaited_without_scanning() -> None:
    assert read(b"\xdd\x7f\xff\xff\xff" * 100) == []


def test_message_limit_applies_to_each_message_alone() -> None:
    message = encode(Notification("m", ["x" * 900]))
    assert len(read(message * 20)) == 20


@given(data=st.binary(max_size=200) | st.builds(msgpack.packb, st.lists(VALUES, max_size=5)))
def test_arbitrary_bytes_are_messages_or_malformed(data: bytes) -> None:
    with suppress(Refused):
        read(data)


@given(data=st.binary(max_size=60))
def test_both_msgpack_libraries_end_a_value_at_the_same_byte(data: bytes) -> None:
    with suppress(ValueError, RecursionError, msgpack.UnpackException):
        decoded = msgspec.msgpack.decode(data)
        scanner = msgpack.Unpacker()
        scanner.feed(data)
        scanner.skip()
        assert scanner.tell() == len(data), decoded


def test_parameters_at_the_nesting_limit_can_be_returned() -> None:
    """A call whose result was its parameters, nested as deep as they may be, had the client end the connection."""
    deepest: list[Any] = []
    for _ in range(MAX_NESTING):
        deepest = [deepest]
    for message in (Request(1, "echo", deepest), Response(1, None, deepest)):
        assert read(encode(message)) == [message]

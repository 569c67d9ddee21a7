"""Answers encoded in parts have the same bytes as those of asyncua; a too large answer is refused before a copy."""

from datetime import UTC, datetime
from typing import Any

import pytest
from asyncua import ua
from asyncua.ua.ua_binary import extensionobject_to_binary, struct_to_binary
from hypothesis import given
from hypothesis import strategies as st

from edge.opcua.answer_encoding import (
    AnswerBody,
    AnswerTooLargeError,
    SharedArray,
    client_handle,
    data_value_parts,
    decode_event,
    encode_answer,
    encode_event,
    notification_size,
    shared_array,
    without_largest_fields,
)

NOW = datetime(2026, 1, 2, tzinfo=UTC)
STRUCTURES = [ua.ExtensionObject(TypeId=ua.NodeId(5014, 5), Body=b"x" * size) for size in range(9)]
PLAIN = ua.Variant(STRUCTURES, ua.VariantType.ExtensionObject, is_array=True)
LIMIT = 1_000_000


def shared() -> SharedArray:
    return shared_array(STRUCTURES, [extensionobject_to_binary(item) for item in STRUCTURES])


def value(content: ua.Variant, code: int = 0) -> ua.DataValue:
    return ua.DataValue(content, ua.StatusCode(code), SourceTimestamp=NOW, ServerTimestamp=NOW)


def read_response(content: ua.Variant, *, is_encoded: bool = True) -> Any:  # noqa: ARG001 - as the others
    response = ua.ReadResponse()
    response.ResponseHeader.Timestamp = NOW
    bad = value(content, ua.StatusCodes.UncertainInitialValue)
    response.Results = [value(content), bad, ua.DataValue(ua.Variant(3))]
    return response


def message(content: ua.Variant, *, is_encoded: bool) -> ua.NotificationMessage:
    values = ua.DataChangeNotification(MonitoredItems=[ua.MonitoredItemNotification(5, value(content))] * 2)
    event = ua.EventFieldList(3, [ua.Variant(2), ua.Variant("late")])
    events = ua.EventNotificationList(Events=[encode_event(3, event.EventFields) if is_encoded else event] * 2)
    return ua.NotificationMessage(7, NOW, [values, events])


def publish_response(content: ua.Variant, *, is_encoded: bool = True) -> Any:
    response = ua.PublishResponse()
    response.ResponseHeader.Timestamp = NOW
    acknowledged = [ua.StatusCode()] * 3
    response.Parameters = ua.PublishResult(7, [1, 2], False, message(content, is_encoded=is_encoded), acknowledged)
    return response


def republish_response(content: ua.Variant, *, is_encoded: bool = True) -> Any:
    response = ua.RepublishResponse()
    response.ResponseHeader.Timestamp = NOW
    response.NotificationMessage = message(content, is_encoded=is_encoded)
    return response


def body(answer: AnswerBody, size: int = 64) -> bytes:
    return b"".join(piece for piece, _ in answer.chunks(size))


@pytest.mark.parametrize("made", [read_response, publish_response, republish_response])
def test_shared_arrays_are_encoded_as_asyncua_does(made: Any) -> None:
    answer = encode_answer(made(shared()), LIMIT)
    assert body(answer) == struct_to_binary(made(PLAIN, is_encoded=False))
    assert answer.size == len(body(answer))


def test_other_responses_are_encoded_by_asyncua() -> None:
    response = ua.WriteResponse()
    assert body(encode_answer(response, LIMIT)) == struct_to_binary(response)
    empty = ua.ReadResponse()
    assert body(encode_answer(empty, LIMIT)) == struct_to_binary(empty)


@pytest.mark.parametrize("size", [1, 7, 64, 5000])
def test_chunks_have_the_requested_size_and_one_final_chunk(size: int) -> None:
    pieces = list(encode_answer(read_response(shared()), LIMIT).chunks(size))
    assert {len(piece) for piece, _ in pieces[:-1]} <= {size}
    assert [is_last for _, is_last in pieces] == [False] * (len(pieces) - 1) + [True]


def test_too_large_answers_are_refused_before_encoding() -> None:
    response = ua.ReadResponse()
    response.Results = [value(shared())] * 1000
    with pytest.raises(AnswerTooLargeError):
        encode_answer(response, 10_000)


def test_parts_of_shared_arrays_share_their_bytes() -> None:
    part = shared().part(2, 4)
    assert part.Value == STRUCTURES[2:5]
    expected = value(ua.Variant(STRUCTURES[2:5], ua.VariantType.ExtensionObject, is_array=True))
    assert b"".join(data_value_parts(value(part))) == struct_to_binary(expected)


def test_notification_sizes_are_those_of_their_encoding() -> None:
    for content in (PLAIN, shared()):
        notification = ua.MonitoredItemNotification(5, value(content))
        assert notification_size(notification) == len(struct_to_binary(ua.MonitoredItemNotification(5, value(PLAIN))))
    event = ua.EventFieldList(3, [ua.Variant(2)])
    assert notification_size(encode_event(3, event.EventFields)) == len(struct_to_binary(event))


INSTEAD = ua.Variant(ua.StatusCode(ua.StatusCodes.BadResponseTooLarge), ua.VariantType.StatusCode)
FIELDS = st.lists(
    st.builds(ua.Variant, st.binary(max_size=500), st.just(ua.VariantType.ByteString))
    | st.builds(ua.Variant, st.integers(0, 65_535), st.just(ua.VariantType.UInt16))
    | st.just(ua.Variant()),
    max_size=20,
)


@given(st.integers(0, 2**32 - 1), FIELDS)
def test_encoding_is_that_of_an_event_field_list(handle: int, fields: list[ua.Variant]) -> None:
    encoded = encode_event(handle, fields)
    assert encoded == struct_to_binary(ua.EventFieldList(handle, fields))
    assert decode_event(encoded) == ua.EventFieldList(handle, fields)
    assert client_handle(encoded) == handle


@given(FIELDS, st.integers(0, 5_000))
def test_only_as_many_fields_as_needed_are_replaced(fields: list[ua.Variant], excess: int) -> None:
    encoded = encode_event(3, fields)
    shorter = without_largest_fields(encoded, excess, INSTEAD)
    replaced = [field == INSTEAD for field in decode_event(shorter).EventFields]
    assert len(replaced) == len(fields)
    assert all(replaced) or len(encoded) - len(shorter) >= excess
    assert excess or not any(replaced)

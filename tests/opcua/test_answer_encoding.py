"""Answers encoded in parts have the same bytes as those of asyncua; a too large answer is refused before a copy."""

from datetime import UTC, datetime
from typing import Any

import pytest
from asyncua import ua
from asyncua.common.utils import Buffer
from asyncua.ua.ua_binary import extensionobject_to_binary, struct_from_binary, struct_to_binary
from hypothesis import given
from hypothesis import strategies as st

from edge.opcua.answer_encoding import (
    AnswerBody,
    AnswerTooLargeError,
    CallResults,
    EncodedMessage,
    Publication,
    SharedArray,
    Values,
    data_value_parts,
    decode_event,
    encode_answer,
    encode_event,
    encode_notifications,
    monitored_value_parts,
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


STATUSES = [ua.StatusCode()] * 3


def read_values(content: ua.Variant) -> list[ua.DataValue]:
    return [value(content), value(content, ua.StatusCodes.UncertainInitialValue), ua.DataValue(ua.Variant(3))]


def notifications(content: ua.Variant) -> list[Any]:
    values = ua.DataChangeNotification(MonitoredItems=[ua.MonitoredItemNotification(5, value(content))] * 2)
    return [values, ua.EventNotificationList(Events=[ua.EventFieldList(3, EVENT)] * 2)]


EVENT = [ua.Variant(2), ua.Variant("late")]


def message(content: ua.Variant) -> EncodedMessage:
    parts = monitored_value_parts(ua.MonitoredItemNotification(5, value(content)))
    return EncodedMessage(7, NOW, encode_notifications([parts] * 2, [encode_event(3, EVENT)] * 2))


def results() -> list[ua.CallMethodResult]:
    return [ua.CallMethodResult(OutputArguments=[ua.Variant(number)]) for number in range(3)]


ANSWERS = [
    (lambda content: Values(read_values(content)), lambda: ua.ReadResponse(Results=read_values(PLAIN))),
    (
        lambda content: Publication(7, [1, 2], has_more=True, message=message(content), results=STATUSES),
        lambda: ua.PublishResponse(
            Parameters=ua.PublishResult(7, [1, 2], True, ua.NotificationMessage(7, NOW, notifications(PLAIN)), STATUSES)
        ),
    ),
    (message, lambda: ua.RepublishResponse(NotificationMessage=ua.NotificationMessage(7, NOW, notifications(PLAIN)))),
    (
        lambda _: Publication(7, [], has_more=False, message=EncodedMessage(7, NOW), results=[]),
        lambda: ua.PublishResponse(Parameters=ua.PublishResult(7, [], False, ua.NotificationMessage(7, NOW, []), [])),
    ),
    (lambda _: CallResults(results()), lambda: ua.CallResponse(Results=results())),
]


def body(answer: AnswerBody, size: int = 64) -> bytes:
    return b"".join(piece for piece, _ in answer.chunks(size))


@pytest.mark.parametrize(("made", "expected"), ANSWERS)
def test_answers_are_encoded_as_asyncua_does(made: Any, expected: Any) -> None:
    answer = encode_answer(made(shared()), 77, LIMIT)
    decoded = struct_from_binary(type(expected()), Buffer(body(answer)))
    response = expected()
    response.ResponseHeader = decoded.ResponseHeader
    assert response.ResponseHeader.RequestHandle == 77
    assert body(answer) == struct_to_binary(response)
    assert answer.size == len(body(answer))


def test_other_responses_are_encoded_by_asyncua() -> None:
    response = ua.WriteResponse()
    assert body(encode_answer(response, 5, LIMIT)) == struct_to_binary(response)


@pytest.mark.parametrize("size", [1, 7, 64, 5000])
def test_chunks_have_the_requested_size_and_one_final_chunk(size: int) -> None:
    pieces = list(encode_answer(Values(read_values(shared())), 5, LIMIT).chunks(size))
    assert {len(piece) for piece, _ in pieces[:-1]} <= {size}
    assert [is_last for _, is_last in pieces] == [False] * (len(pieces) - 1) + [True]


def test_too_large_answers_are_refused_before_encoding() -> None:
    with pytest.raises(AnswerTooLargeError):
        encode_answer(Values([value(shared())] * 1000), 5, 10_000)


def test_parts_of_shared_arrays_share_their_bytes() -> None:
    part = shared().part(2, 4)
    assert part.Value == STRUCTURES[2:5]
    expected = value(ua.Variant(STRUCTURES[2:5], ua.VariantType.ExtensionObject, is_array=True))
    assert b"".join(data_value_parts(value(part))) == struct_to_binary(expected)


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


@given(FIELDS, st.integers(0, 5_000))
def test_only_as_many_fields_as_needed_are_replaced(fields: list[ua.Variant], excess: int) -> None:
    encoded = encode_event(3, fields)
    shorter = without_largest_fields(encoded, excess, INSTEAD)
    replaced = [field == INSTEAD for field in decode_event(shorter).EventFields]
    assert len(replaced) == len(fields)
    assert all(replaced) or len(encoded) - len(shorter) >= excess
    assert excess or not any(replaced)

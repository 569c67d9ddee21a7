"""Encodes answers as lists of parts: large values are shared, counted before copying, and never joined."""

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from asyncua import ua
from asyncua.ua.ua_binary import extensionobject_to_binary, nodeid_to_binary, struct_to_binary

from edge.opcua.call_diagnostics import ExplainedResponse
from edge.opcua.encoded_event import EncodedEvent
from edge.opcua.shared_array import SharedArray

Part: TypeAlias = bytes | memoryview

_COUNT = struct.Struct("<i")
_HANDLE = struct.Struct("<I")
_EMPTY_ARRAY = _COUNT.pack(0)
_NULL_VARIANT = ua.Variant()
_DATA_CHANGE = nodeid_to_binary(ua.FourByteNodeId(ua.ObjectIds.DataChangeNotification_Encoding_DefaultBinary)) + b"\1"
_EVENTS = nodeid_to_binary(ua.FourByteNodeId(ua.ObjectIds.EventNotificationList_Encoding_DefaultBinary)) + b"\1"


class AnswerTooLargeError(Exception):
    """The answer is larger than the limit of its client."""


class AnswerBody:
    """The body of one message: its parts and their size, at most `limit` bytes."""

    def __init__(self, limit: int) -> None:
        self.size = 0
        self._limit = limit
        self._parts: list[Part] = []

    def add(self, *parts: Part) -> None:
        """Append parts. Raises AnswerTooLargeError before any of them is copied."""
        self.size += sum(map(len, parts))
        if self.size > self._limit:
            raise AnswerTooLargeError
        self._parts += parts

    def chunks(self, size: int) -> Iterator[tuple[bytes, bool]]:
        """Yield the body in pieces of this size, each with whether it is the last."""
        piece = bytearray()
        sent = 0
        for part in self._parts:
            start = 0
            while start < len(part):
                taken = part[start : start + size - len(piece)]
                piece += taken
                start += len(taken)
                if len(piece) == size or sent + len(piece) == self.size:
                    sent += len(piece)
                    yield bytes(piece), sent == self.size
                    piece.clear()


def encode_answer(response: Any, limit: int) -> AnswerBody:
    """Encode a response. Raises AnswerTooLargeError."""
    answer = AnswerBody(limit)
    match response:
        case ua.ReadResponse(Results=[_, *_]):
            _add_read(answer, response)
        case ua.PublishResponse():
            message = response.Parameters.NotificationMessage
            _add_around(answer, response, message, response.Parameters.Results)
        case ExplainedResponse():
            answer.add(*response.encoded())
        case ua.RepublishResponse():
            _add_around(answer, response, response.NotificationMessage, None)
        case _:
            answer.add(struct_to_binary(response))
    return answer


def data_value_parts(value: ua.DataValue) -> Sequence[Part]:
    """Encode a value; the content of a shared array is not copied."""
    if not isinstance(value.Value, SharedArray):
        return (struct_to_binary(value),)
    without = ua.DataValue(_NULL_VARIANT, value.StatusCode, value.SourceTimestamp, value.ServerTimestamp)
    # The mask, the null variant in one byte, then status and time stamps.
    frame = struct_to_binary(without)
    return (frame[:1], *value.Value.encoded(), frame[2:])


def notification_size(notification: ua.MonitoredItemNotification | EncodedEvent) -> int:
    """Return the size of a notification in bytes."""
    if isinstance(notification, ua.MonitoredItemNotification):
        return _HANDLE.size + sum(map(len, data_value_parts(notification.Value)))
    return len(notification)


def _add_read(answer: AnswerBody, response: ua.ReadResponse) -> None:
    values, response.Results = response.Results, []
    frame = struct_to_binary(response)
    response.Results = values
    # The frame ends with two empty arrays: the results and the diagnostic infos.
    answer.add(frame[: -2 * _COUNT.size], _COUNT.pack(len(values)))
    known: dict[int, Sequence[Part]] = {}  # static attributes are one object for all readers
    for value in values:
        parts = known.get(id(value))
        if parts is None:
            parts = known[id(value)] = data_value_parts(value)
        answer.add(*parts)
    answer.add(frame[-_COUNT.size :])


def _add_around(
    answer: AnswerBody, response: Any, message: ua.NotificationMessage, results: Sequence[ua.StatusCode] | None
) -> None:
    data, message.NotificationData = message.NotificationData, []
    frame = struct_to_binary(response)
    message.NotificationData = data
    # After the empty array of notifications come, in a publish response, results and diagnostic infos.
    behind = 0 if results is None else 2 * _COUNT.size + 4 * len(results)
    end = len(frame) - behind
    answer.add(frame[: end - _COUNT.size], _COUNT.pack(len(data)))
    for value in data:
        answer.add(*_notification_data(value))
    answer.add(frame[end:])


def _notification_data(data: Any) -> Sequence[Part]:
    match data:
        case ua.DataChangeNotification():
            body = [_COUNT.pack(len(data.MonitoredItems)), *_monitored_values(data.MonitoredItems), _EMPTY_ARRAY]
            return (_DATA_CHANGE, _COUNT.pack(sum(map(len, body))), *body)
        case ua.EventNotificationList():
            # The events are encoded already.
            body = [_COUNT.pack(len(data.Events)), *data.Events]
            return (_EVENTS, _COUNT.pack(sum(map(len, body))), *body)
        case _:
            return (extensionobject_to_binary(data),)


def _monitored_values(notifications: Iterable[ua.MonitoredItemNotification]) -> Iterator[Part]:
    for notification in notifications:
        yield _HANDLE.pack(notification.ClientHandle)
        yield from data_value_parts(notification.Value)

"""A message on MQTT 5, and how a CloudEvent travels in one (CloudEvents MQTT Protocol Binding 1.0.2)."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field  # noqa: TID251 - two members are not compared

import msgspec

from edge.model.cloudevent import (
    STRUCTURED_JSON,
    CloudEvent,
    binary_attributes,
    correlation_bytes,
    encode_data,
    from_attributes,
    from_structured,
)

_UUID_BYTES = 16


@dataclass(frozen=True, slots=True)
class Message:
    """An MQTT 5 application message, free of any client library; `expiry` is in seconds.

    Of user properties with the same name the last one counts.
    """

    topic: str
    payload: bytes = b""
    content_type: str | None = None
    user_properties: Mapping[str, str] = field(default_factory=dict)
    response_topic: str | None = None
    correlation_data: bytes | None = None
    # The broker counts the expiry down: the repetition of a message has another expiry.
    expiry: int | None = field(default=None, compare=False)
    # The instant of arrival, in milliseconds since the epoch: the broker counted the expiry down to it.
    received_at: int | None = field(default=None, compare=False)
    retain: bool = False


def to_message(
    event: CloudEvent,
    topic: str,
    *,
    response_topic: str | None = None,
    correlation_data: bytes | None = None,
    retain: bool = False,
) -> Message:
    """Return the message of an event in binary mode: attributes as user properties, the data as payload.

    `expiryinterval` is sent as attribute and as Message Expiry Interval, which the broker counts down: the difference
    is the age of the message. `correlation_data` is that of a request when this is its answer; otherwise it is made of
    the event's `correlationid`.
    """
    attributes = binary_attributes(event)
    if correlation_data is None and event.correlationid is not None:
        correlation_data = correlation_bytes(event.correlationid)
    return Message(
        topic=topic,
        payload=encode_data(event.datacontenttype, event.data),
        content_type=event.datacontenttype,
        user_properties=attributes,
        response_topic=response_topic,
        correlation_data=correlation_data,
        expiry=event.expiryinterval,
        retain=retain,
    )


def to_event(message: Message) -> CloudEvent:
    """Read the event of a message, in binary or in structured mode.

    When the event lacks them, `correlationid` is taken from MQTT's Correlation Data and `expiryinterval` from its
    Message Expiry Interval. Raises Refused(`unreadable`) when the message is not a CloudEvent.
    """
    content_type = message.content_type or ""
    if content_type.partition(";")[0].strip().lower() == STRUCTURED_JSON:
        event = from_structured(message.payload)
    else:
        event = from_attributes(message.user_properties, content_type, message.payload)
    correlationid = event.correlationid
    if correlationid is None and message.correlation_data:
        correlationid = _correlation_text(message.correlation_data)
    expiry = event.expiryinterval if message.expiry is None else message.expiry
    if correlationid == event.correlationid and expiry == event.expiryinterval:
        return event
    return msgspec.structs.replace(event, correlationid=correlationid, expiryinterval=expiry)


def _correlation_text(data: bytes) -> str:
    if len(data) == _UUID_BYTES:
        return str(uuid.UUID(bytes=data))
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.hex()

"""A CloudEvent keeps all its attributes and data when sent over MQTT."""

import uuid

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.foundation.errors import Refused
from edge.links.cloudevent_mqtt import Message, to_event, to_message
from edge.model.cloudevent import CloudEvent

CORRELATION = "7d444840-9dc0-11d1-b245-5ffdce74fad2"
REQUIRED = {"id": "1", "source": "s", "type": "t"}
EVENT = CloudEvent(
    id="e-1",
    source="/mes",
    type="org.opcfoundation.ISA95-JOBCONTROL_V2.Store.v2",
    subject="station-1",
    correlationid=CORRELATION,
    expiryinterval=30,
    extensions={"phase": "start"},
    data={"JobOrderID": "J1"},
)

_text = st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=1, max_size=20)
_events = st.builds(
    CloudEvent,
    id=_text,
    source=_text,
    type=_text,
    subject=st.none() | _text,
    datacontenttype=st.sampled_from(["application/json", "application/msgpack"]),
    correlationid=st.none() | st.uuids().map(str) | _text,
    causationid=st.none() | _text,
    expiryinterval=st.none() | st.integers(0, 2**32 - 1),
    mdcserrorkind=st.none() | _text,
    extensions=st.dictionaries(st.sampled_from(["phase", "joborderid", "method"]), _text),
    data=st.none() | st.dictionaries(_text, st.integers(-(2**53), 2**53) | st.text() | st.booleans()),
)


def test_an_event_travels_in_binary_mode() -> None:
    message = to_message(EVENT, "a/commands", response_topic="a/answers")
    assert message == Message(
        topic="a/commands",
        payload=b'{"JobOrderID":"J1"}',
        content_type="application/json",
        user_properties={
            "id": "e-1",
            "source": "/mes",
            "type": "org.opcfoundation.ISA95-JOBCONTROL_V2.Store.v2",
            "specversion": "1.0",
            "subject": "station-1",
            "correlationid": CORRELATION,
            "expiryinterval": "30",
            "phase": "start",
        },
        response_topic="a/answers",
        correlation_data=uuid.UUID(CORRELATION).bytes,
    )
    assert message.expiry == 30


@given(_events)
def test_event_is_unchanged_after_encoding_and_decoding(event: CloudEvent) -> None:
    assert to_event(to_message(event, "any")) == event


def test_answer_has_the_correlation_data_of_its_request() -> None:
    assert to_message(EVENT, "a/answers", correlation_data=b"\x01").correlation_data == b"\x01"


@pytest.mark.parametrize(
    ("data", "correlationid"),
    [
        (uuid.UUID(CORRELATION).bytes, CORRELATION),
        (b"request 7", "request 7"),
        (b"\xff\xfe", "fffe"),
        (b"", None),
    ],
)
def test_missing_correlation_id_comes_from_correlation_data(data: bytes, correlationid: str | None) -> None:
    plain = msgspec.structs.replace(EVENT, correlationid=None)
    assert to_event(to_message(plain, "a", correlation_data=data)).correlationid == correlationid


def test_remaining_message_expiry_replaces_the_expiry_of_the_event() -> None:
    attributes = {"id": "1", "source": "s", "type": "t", "expiryinterval": "60"}
    assert to_event(Message("a", user_properties=attributes, expiry=12)).expiryinterval == 12
    assert to_event(Message("a", user_properties=attributes)).expiryinterval == 60


def test_structured_mode_is_accepted() -> None:
    payload = b'{"specversion":"1.0","id":"e-1","source":"/mes","type":"t","subject":"s","data":{"a":1}}'
    event = to_event(Message("a", payload, content_type="application/cloudevents+json; charset=utf-8"))
    assert (event.id, event.subject, event.data) == ("e-1", "s", {"a": 1})


@pytest.mark.parametrize(
    "message",
    [
        Message("a", b"hello"),
        Message("a", b"{", content_type="application/json", user_properties=REQUIRED),
        Message("a", b"x", content_type="image/png", user_properties=REQUIRED),
        Message("a", b"[]", content_type="application/cloudevents+json"),
        Message("a", b"\xc1", content_type="application/msgpack", user_properties=REQUIRED),
    ],
)
def test_malformed_cloudevent_is_refused_as_unreadable(message: Message) -> None:
    with pytest.raises(Refused) as refusal:
        to_event(message)
    assert refusal.value.kind == "unreadable"

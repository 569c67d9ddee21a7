"""A CloudEvent is unchanged after encoding as a map, with data in any form."""

import base64
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.foundation.errors import Refused
from edge.links.cloudevent_rpc import DataForm, form_of, from_map, to_map
from edge.model.cloudevent import JSON, MAX_NESTING, MSGPACK, CloudEvent

ATTRIBUTES = {"id": "1", "source": "/sidecar", "type": "t.v1"}
TEXTS = st.text(min_size=1, max_size=10)
DATA = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
EVENTS = st.builds(
    CloudEvent,
    id=TEXTS,
    source=TEXTS,
    type=TEXTS,
    subject=st.none() | TEXTS,
    correlationid=st.none() | TEXTS,
    datacontenttype=st.sampled_from([JSON, MSGPACK]),
    expiryinterval=st.none() | st.integers(0, 2**31),
    extensions=st.dictionaries(st.sampled_from(["method", "joborderid", "phase"]), TEXTS),
    data=st.dictionaries(st.text(max_size=5), DATA, max_size=3) | st.lists(DATA, max_size=3),
)


@given(event=EVENTS, form=st.sampled_from(DataForm))
def test_event_is_unchanged_after_encoding_in_every_form(event: CloudEvent, form: DataForm) -> None:
    travelling = to_map(event, form)
    assert form_of(travelling) is form
    assert from_map(travelling) == event


def test_data_is_read_from_a_structure_bytes_or_base64() -> None:
    payload = b'{"JobOrderID":"J1"}'
    wrapped = base64.encodebytes(payload * 5).decode()
    assert "\n" in wrapped[:-1]
    forms: list[Any] = [
        {"JobOrderID": "J1"},
        payload,
        base64.b64encode(payload).decode(),
        "eyJKb2JPcmRlcklEIjoi\nSjEifQ==",
    ]
    for data in forms:
        assert from_map(ATTRIBUTES | {"data": data}).data == {"JobOrderID": "J1"}


def test_nil_or_unknown_attributes_are_ignored() -> None:
    odd = {"subject": None, "custommetadata": {"a": 1}, 5: "x", b"id": "y", "Traceparent": "z", "extensions": "e"}
    assert from_map(ATTRIBUTES | odd) == CloudEvent(id="1", source="/sidecar", type="t.v1")


def test_numeric_attributes_are_read_as_text() -> None:
    event = from_map(ATTRIBUTES | {"id": 7, "expiryinterval": 30, "retries": 2, "last": True})
    assert (event.id, event.expiryinterval) == ("7", 30)
    assert event.extensions == {"retries": "2", "last": "true"}


def deep(levels: int) -> dict[str, Any]:
    inner: dict[str, Any] = {}
    for _ in range(levels):
        inner = {"a": inner}
    return inner


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ({}, "id, source, type missing"),
        (ATTRIBUTES | {"id": None}, "id missing"),
        (ATTRIBUTES | {"type": ["t"]}, "type missing"),
        (ATTRIBUTES | {"data": b"{"}, "the payload is not application/json"),
        (ATTRIBUTES | {"data": "no base64!"}, "no base64"),
        (ATTRIBUTES | {"data": "größe"}, "no base64"),
        (ATTRIBUTES | {"data": {"a": {1: 2}}}, "a key that is not a text"),
        (ATTRIBUTES | {"data": [msgspec.msgpack.Ext(5, b"")]}, "an extension type"),
        (ATTRIBUTES | {"data": deep(MAX_NESTING + 1)}, "nested deeper"),
        (ATTRIBUTES | {"datacontenttype": "text/plain", "data": b"x"}, "not supported"),
    ],
)
def test_malformed_event_is_refused_with_the_reason(event: dict[Any, Any], reason: str) -> None:
    with pytest.raises(Refused, match=reason) as refused:
        from_map(event)
    assert refused.value.kind == "unreadable"

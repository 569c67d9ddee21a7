"""A CloudEvent is decoded alike from binary and structured mode, and encoded without loss."""

import uuid

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.foundation.errors import Refused
from edge.model.cloudevent import (
    JSON,
    MSGPACK,
    CloudEvent,
    binary_attributes,
    correlation_bytes,
    from_attributes,
    from_structured,
    new_id,
)

REQUIRED = {"id": "1", "source": "mes", "type": "t"}


def structured(**fields: object) -> CloudEvent:
    return from_structured(msgspec.json.encode({"specversion": "1.0", **REQUIRED, **fields}))


def test_known_attributes_become_fields_and_others_extensions() -> None:
    attributes = REQUIRED | {"subject": "s", "correlationid": "c", "causationid": "x", "expiryinterval": "60"}
    event = from_attributes(attributes | {"phase": "start", "Not-A-Name": "x", "data": "no"}, JSON, b'{"a": 1}')
    assert event == CloudEvent(
        id="1",
        source="mes",
        type="t",
        subject="s",
        correlationid="c",
        causationid="x",
        expiryinterval=60,
        extensions={"phase": "start"},
        data={"a": 1},
    )


@pytest.mark.parametrize("missing", ["id", "source", "type"])
@pytest.mark.parametrize("value", [None, ""])
def test_event_without_a_required_attribute_is_refused_naming_it(missing: str, value: str | None) -> None:
    attributes = {name: text for name, text in REQUIRED.items() if name != missing}
    if value is not None:
        attributes[missing] = value
    with pytest.raises(Refused, match=missing):
        from_attributes(attributes, JSON, b"")


@pytest.mark.parametrize("expiry", ["", "-1", "1.5", "x", "٣", "1e3", "9" * 5000])
def test_invalid_expiry_interval_is_ignored(expiry: str) -> None:
    assert from_attributes(REQUIRED | {"expiryinterval": expiry}, JSON, b"").expiryinterval is None


def test_content_type_of_the_message_precedes_the_attribute() -> None:
    event = from_attributes(REQUIRED | {"datacontenttype": JSON}, MSGPACK, msgspec.msgpack.encode([1]))
    assert (event.datacontenttype, event.data) == (MSGPACK, [1])
    assert from_attributes(REQUIRED | {"datacontenttype": MSGPACK}, "", b"\x01").data == 1


def test_structured_mode_decodes_to_the_same_event_as_binary_mode() -> None:
    binary = from_attributes(REQUIRED | {"subject": "s", "phase": "stop"}, JSON, b'{"a": [1]}')
    assert structured(subject="s", phase="stop", data={"a": [1]}) == binary


def test_an_attribute_that_is_null_is_absent() -> None:
    assert structured(subject=None, phase=None) == structured()


def test_attributes_of_other_types_are_converted_to_cloudevents_text() -> None:
    event = structured(expiryinterval=60, urgent=True, lane=3)
    assert event.expiryinterval == 60
    assert event.extensions == {"urgent": "true", "lane": "3"}


def test_data_in_base64_is_decoded_by_its_content_type() -> None:
    assert structured(datacontenttype=MSGPACK, data_base64="gaFhAQ==").data == {"a": 1}
    assert structured(data_base64="eyJhIjoxfQ==").data == {"a": 1}


@pytest.mark.parametrize("encoded", ["*", "a", 5, None, {}])
def test_invalid_base64_data_is_refused(encoded: object) -> None:
    with pytest.raises(Refused):
        structured(data_base64=encoded)


@pytest.mark.parametrize("payload", [b"", b"{", b"[]", b"5", b"null", b'{"id": "1"}', b"\xff"])
def test_invalid_envelope_is_refused(payload: bytes) -> None:
    with pytest.raises(Refused):
        from_structured(payload)


_names = st.from_regex(r"[a-z0-9]{1,20}", fullmatch=True).filter(lambda name: name not in CloudEvent.__struct_fields__)


@given(
    extensions=st.dictionaries(_names, st.text()),
    subject=st.none() | st.text(),
    expiry=st.none() | st.integers(0, 2**32 - 1),
)
def test_encoded_attributes_are_decoded_unchanged(
    extensions: dict[str, str], subject: str | None, expiry: int | None
) -> None:
    event = CloudEvent(id="1", source="s", type="t", subject=subject, expiryinterval=expiry, extensions=extensions)
    assert from_attributes(binary_attributes(event), JSON, b"") == event


def test_correlation_data_is_the_uuid_bytes_or_the_text() -> None:
    identifier = uuid.uuid4()
    assert correlation_bytes(str(identifier)) == identifier.bytes
    assert correlation_bytes("größe") == "größe".encode()


def test_new_ids_differ() -> None:
    assert len({new_id() for _ in range(100)}) == 100


@pytest.mark.parametrize("name", ["id", "type", "subject", "mdcserrormessage", "anything"])
def test_attribute_longer_than_a_user_property_is_refused(name: str) -> None:
    envelope = {"specversion": "1.0", "id": "1", "source": "/x", "type": "t", name: "x" * 65_536}
    with pytest.raises(Refused) as refused:
        from_structured(msgspec.json.encode(envelope))
    assert refused.value.kind == "unreadable"
    assert len(refused.value.message) < 100

"""A queued event is the encoding of its EventFieldList."""

from asyncua import ua
from asyncua.ua.ua_binary import struct_to_binary
from hypothesis import given
from hypothesis import strategies as st

from edge.opcua.encoded_event import client_handle, decode_event, encode_event, without_largest_fields

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

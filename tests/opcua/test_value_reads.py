"""Values have the timestamps and the encoding that the client requests."""

from datetime import UTC, datetime

import pytest
from asyncua import ua
from asyncua.common.utils import ServiceError

from edge.opcua.value_reads import Stamps, check_encoding, check_timestamps, stamp_change

NOW, BEFORE = datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)
VALUE = ua.DataValue(ua.Variant(1), SourceTimestamp=BEFORE, ServerTimestamp=BEFORE)
T, A = ua.TimestampsToReturn, ua.AttributeIds


@pytest.mark.parametrize(
    ("asked", "source", "server"),
    [(T.Source, BEFORE, None), (T.Server, None, NOW), (T.Both, BEFORE, NOW), (T.Neither, None, None)],
)
def test_read_value_has_the_requested_timestamps(
    asked: ua.TimestampsToReturn, source: datetime | None, server: datetime | None
) -> None:
    stamped = Stamps(asked, NOW).apply(VALUE, A.Value)
    assert (stamped.Value, stamped.SourceTimestamp, stamped.ServerTimestamp) == (VALUE.Value, source, server)


def test_equal_attributes_of_one_answer_share_one_object() -> None:
    stamps = Stamps(T.Both, NOW)
    assert stamps.apply(VALUE, A.Value) is stamps.apply(VALUE, A.Value)
    assert stamps.apply(VALUE, A.BrowseName).SourceTimestamp is None


@pytest.mark.parametrize(("asked", "has_both"), [(T.Both, True), (T.Neither, False)])
def test_change_has_the_requested_timestamps(asked: ua.TimestampsToReturn, *, has_both: bool) -> None:
    stamped = stamp_change(VALUE, asked)
    assert (stamped.SourceTimestamp is not None, stamped.ServerTimestamp is not None) == (has_both, has_both)


def test_an_invalid_choice_of_timestamps_is_refused() -> None:
    with pytest.raises(ServiceError):
        check_timestamps(T.Invalid)
    check_timestamps(T.Neither)


@pytest.mark.parametrize(
    ("kind", "encoding", "code"),
    [
        (ua.VariantType.ExtensionObject, "Default Binary", ua.StatusCodes.Good),
        (ua.VariantType.ExtensionObject, "Default JSON", ua.StatusCodes.BadDataEncodingUnsupported),
        (ua.VariantType.Int32, "Default Binary", ua.StatusCodes.BadDataEncodingInvalid),
        (ua.VariantType.Int32, "", ua.StatusCodes.Good),
    ],
)
def test_encoding_is_accepted_for_structures_only(kind: ua.VariantType, encoding: str, code: int) -> None:
    item = ua.ReadValueId(AttributeId=A.Value, DataEncoding=ua.QualifiedName(encoding))
    content = ua.ExtensionObject() if kind is ua.VariantType.ExtensionObject else 1
    assert check_encoding(item, ua.DataValue(ua.Variant(content, kind))).value == code

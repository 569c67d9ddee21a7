"""Applies the arguments of Read to the attributes that the server holds, also an IndexRange (OPC 10000-4, 5.11.2)."""

import re
from collections.abc import Callable, Sequence
from datetime import datetime

from asyncua import ua
from asyncua.common.utils import ServiceError
from asyncua.server.address_space import AddressSpace

from edge.opcua.answer_encoding import SharedArray

_RANGES = re.compile(r"\d{1,10}(:\d{1,10})?(,\d{1,10}(:\d{1,10})?)*", re.ASCII)
_NO_DATA = ua.StatusCode(ua.StatusCodes.BadIndexRangeNoData)
_INVALID = ua.StatusCode(ua.StatusCodes.BadIndexRangeInvalid)


def is_valid_range(text: str) -> bool:
    """Return whether a text is a valid range: `2` or `2:5`, for each dimension."""
    if not _RANGES.fullmatch(text):
        return False
    limits = [[int(limit) for limit in word.split(":")] for word in text.split(",")]
    return all(first < last for first, last in (item for item in limits if len(item) > 1))


def part_of(value: ua.DataValue, text: str) -> ua.DataValue:
    """Return the entries of an array, or the characters of a text, of a range, as far as they exist.

    A range after the end, or of several dimensions, is Bad_IndexRangeNoData.
    """
    if not value.StatusCode.is_good():
        return value
    if not is_valid_range(text):
        return ua.DataValue(StatusCode=_INVALID)
    first, _, last = text.partition(":")
    content = value.Value.Value if value.Value is not None and "," not in text else None
    found = content[int(first) : int(last or first) + 1] if isinstance(content, list | str | bytes) else None
    if not found:
        return ua.DataValue(StatusCode=_NO_DATA)
    if isinstance(value.Value, SharedArray):
        variant: ua.Variant = value.Value.part(int(first), int(last or first))
    else:
        variant = ua.Variant(found, value.Value.VariantType, is_array=isinstance(found, list))
    return ua.DataValue(variant, SourceTimestamp=value.SourceTimestamp, ServerTimestamp=value.ServerTimestamp)


_BINARY = ua.QualifiedName("Default Binary")
_WITH_SOURCE = frozenset({ua.TimestampsToReturn.Source, ua.TimestampsToReturn.Both})
_WITH_SERVER = frozenset({ua.TimestampsToReturn.Server, ua.TimestampsToReturn.Both})


def check_timestamps(asked: ua.TimestampsToReturn) -> None:
    """Check the requested timestamps. Raises ServiceError with BadTimestampsToReturnInvalid."""
    if asked not in _WITH_SOURCE | _WITH_SERVER | {ua.TimestampsToReturn.Neither}:
        raise ServiceError(ua.StatusCodes.BadTimestampsToReturnInvalid)


def check_encoding(item: ua.ReadValueId, value: ua.DataValue) -> ua.StatusCode:
    """Return whether a value can be sent in the encoding that the client requests."""
    asked = item.DataEncoding
    if asked is None or not asked.Name:
        return ua.StatusCode()
    is_structure = (
        item.AttributeId == ua.AttributeIds.Value
        and value.Value is not None
        and value.Value.VariantType is ua.VariantType.ExtensionObject
    )
    if not is_structure:
        return ua.StatusCode(ua.StatusCodes.BadDataEncodingInvalid)
    return ua.StatusCode() if asked == _BINARY else ua.StatusCode(ua.StatusCodes.BadDataEncodingUnsupported)


def read_item(aspace: AddressSpace, item: ua.ReadValueId) -> ua.DataValue:
    """Return an attribute in the encoding and with the part that the client asks for."""
    value: ua.DataValue = aspace.read_attribute_value(item.NodeId, item.AttributeId)
    encoding = check_encoding(item, value)
    if encoding.is_bad() and not value.StatusCode.is_bad():
        return ua.DataValue(StatusCode=encoding)
    return part_of(value, item.IndexRange) if item.IndexRange else value


def browse_name(aspace: AddressSpace, node: ua.NodeId) -> str:
    """Return the name of a node; empty for an unknown one."""
    return str(aspace[node].attributes[ua.AttributeIds.BrowseName].value.Value.Value.Name) if node in aspace else ""


def localized_value(
    value: ua.DataValue, localized: Callable[[Sequence[str]], ua.Variant], locales: Sequence[str]
) -> ua.DataValue:
    """Return a text in the language of a session, with status and time of the value that all clients share."""
    if value.StatusCode.is_bad():
        return value
    return ua.DataValue(localized(locales), value.StatusCode, value.SourceTimestamp, value.ServerTimestamp)


def refused_value(attribute: ua.AttributeIds) -> ua.DataValue | None:
    """Return the answer for a variable that the caller may not read; None for readable attributes."""
    match attribute:
        case ua.AttributeIds.Value:
            return ua.DataValue(StatusCode=ua.StatusCode(ua.StatusCodes.BadUserAccessDenied))
        case ua.AttributeIds.UserAccessLevel:
            return ua.DataValue(ua.Variant(0, ua.VariantType.Byte))
        case _:
            return None


class Stamps:
    """The timestamps of one answer; equal attributes stay one object, which is encoded once."""

    def __init__(self, asked: ua.TimestampsToReturn, now: datetime) -> None:
        self._has_source = asked in _WITH_SOURCE
        self._server = now if asked in _WITH_SERVER else None
        self._known: dict[tuple[int, bool], tuple[ua.DataValue, ua.DataValue]] = {}

    def apply(self, value: ua.DataValue, attribute: ua.AttributeIds) -> ua.DataValue:
        """Return the value with the requested timestamps."""
        is_value = attribute == ua.AttributeIds.Value
        found = self._known.get((id(value), is_value))
        if found is None:
            source = value.SourceTimestamp if self._has_source and is_value else None
            stamped = ua.DataValue(value.Value, value.StatusCode, source, self._server)
            # The original is kept: another object could get its id.
            found = self._known[id(value), is_value] = (value, stamped)
        return found[1]


def stamp_change(value: ua.DataValue, asked: ua.TimestampsToReturn) -> ua.DataValue:
    """Return a changed value with the requested timestamps."""
    if asked is ua.TimestampsToReturn.Both:
        return value
    source = value.SourceTimestamp if asked in _WITH_SOURCE else None
    server = value.ServerTimestamp if asked in _WITH_SERVER else None
    return ua.DataValue(value.Value, value.StatusCode, source, server)

"""Applies the arguments of Read to the attributes that the server holds (OPC 10000-4, 5.11.2 and 7.29)."""

from collections.abc import Callable, Sequence
from datetime import datetime

from asyncua import ua
from asyncua.common.utils import ServiceError
from asyncua.server.address_space import AddressSpace

from edge.opcua.index_range import part

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
    return part(value, item.IndexRange) if item.IndexRange else value


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

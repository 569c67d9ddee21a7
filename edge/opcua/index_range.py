"""Select the part of an array that an IndexRange names (OPC 10000-4, 7.27); asyncua returns the whole."""

import re

from asyncua import ua

from edge.opcua.shared_array import SharedArray

_RANGES = re.compile(r"\d{1,10}(:\d{1,10})?(,\d{1,10}(:\d{1,10})?)*", re.ASCII)
_NO_DATA = ua.StatusCode(ua.StatusCodes.BadIndexRangeNoData)
_INVALID = ua.StatusCode(ua.StatusCodes.BadIndexRangeInvalid)


def is_valid(text: str) -> bool:
    """Return whether a text is a valid range: `2` or `2:5`, for each dimension."""
    if not _RANGES.fullmatch(text):
        return False
    limits = [[int(limit) for limit in each.split(":")] for each in text.split(",")]
    return all(first < last for first, last in (each for each in limits if len(each) > 1))


def part(value: ua.DataValue, text: str) -> ua.DataValue:
    """Return the entries of an array, or the characters of a text, of a range, as far as they exist.

    A range after the end, or of several dimensions, is Bad_IndexRangeNoData.
    """
    if not value.StatusCode.is_good():
        return value
    if not is_valid(text):
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

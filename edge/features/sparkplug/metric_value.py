"""How a sample becomes the value of a metric: data type, quality, properties."""

from collections.abc import Mapping
from typing import Any, Final

from edge.features.sparkplug.payload import DataType, MetricProperty, Value
from edge.model.engineering_unit import UNITS
from edge.ports.sample_lines import Quality, Sample
from edge.ports.tag import TagDefinition

_EXACT: Final = 1 << 53
"""Integers up to here are exact as a double."""
_INT64: Final = 1 << 63
_OF_TAG: Final = {"number": DataType.DOUBLE, "text": DataType.STRING, "truth value": DataType.BOOLEAN}
GOOD: Final = 192
STALE: Final = 500
_BAD: Final = 0
_QUALITY: Final = {Quality.GOOD: GOOD, Quality.UNCERTAIN: GOOD, Quality.BAD: _BAD}
"""Sparkplug has no uncertain quality; the rules of the gateway take it as good, too."""
_SYMBOLS: Final = {
    eu_information.unit_id: eu_information.display_name.text
    for eu_information in UNITS.values()
    if eu_information.display_name
}


def data_type(definition: TagDefinition | None, sample: Sample | None) -> DataType:
    """Return the data type of a tag: that of its definition, else that of its value.

    A number is a double, so that 5 and 5.5 have one type; a larger integer than a double holds is an integer.
    """
    if definition is not None and definition.type is not None:
        return _OF_TAG[definition.type]
    match None if sample is None else sample.value:
        case bool():
            return DataType.BOOLEAN
        case str():
            return DataType.STRING
        case int(number) if number >= _INT64:
            return DataType.UINT64
        case int(number) if abs(number) > _EXACT:
            return DataType.INT64
        case _:
            return DataType.DOUBLE


def fits(type: DataType, value: Any) -> bool:
    """Return whether a value has a data type; None has each."""
    match value:
        case None:
            return True
        case bool():
            return type is DataType.BOOLEAN
        case str():
            return type is DataType.STRING
        case int():
            exact = (type is DataType.INT64 and value < _INT64) or (type is DataType.UINT64 and value >= 0)
            return exact or (type is DataType.DOUBLE and abs(value) <= _EXACT)
        case float():
            return type is DataType.DOUBLE
        case _:
            return False


def value_of(type: DataType, sample: Sample | None) -> Value:
    """Return the value to send; None for one of another data type."""
    if sample is None or not fits(type, sample.value):
        return None
    value: Value = sample.value
    return value


def quality_of(type: DataType, sample: Sample | None) -> int:
    """Return the quality code: stale without a sample, bad for a value of another data type."""
    if sample is None:
        return STALE
    return _QUALITY[sample.quality] if fits(type, sample.value) else _BAD


def birth_properties(definition: TagDefinition | None, quality: int) -> Mapping[str, MetricProperty]:
    """Return the properties of a metric in a birth certificate."""
    found = {"Quality": MetricProperty(DataType.INT32, quality)}
    if definition is None:
        return found
    if definition.unit:
        found["engUnit"] = MetricProperty(DataType.STRING, _symbol(definition.unit))
    if definition.low is not None:
        found["engLow"] = MetricProperty(DataType.DOUBLE, definition.low)
    if definition.high is not None:
        found["engHigh"] = MetricProperty(DataType.DOUBLE, definition.high)
    if definition.description:
        found["documentation"] = MetricProperty(DataType.STRING, definition.description)
    return found


def data_properties(quality: int) -> Mapping[str, MetricProperty]:
    """Return the properties of a metric with data: its quality unless it is good, which is the default."""
    return {} if quality == GOOD else {"Quality": MetricProperty(DataType.INT32, quality)}


def _symbol(code: str) -> str:
    """Return the symbol of a unit; its code when it has none."""
    return _SYMBOLS.get(int.from_bytes(code.encode())) or code

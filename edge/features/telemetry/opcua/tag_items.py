"""Tags as data items of OPC 10000-8: the type, the data type and the properties that a definition makes of a tag."""

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from asyncua import ua
from msgspec import Struct
from msgspec.structs import replace

from edge.features.telemetry.opcua.history_values import Convert, as_double, as_sampled, variant_of
from edge.ports.tag import TagDefinition
from edge.uaserver.own_types import unit_of

_I: Final = ua.ObjectIds
T: Final = ua.VariantType
_MISMATCH: Final = ua.StatusCode(ua.StatusCodes.BadTypeMismatch)


class TagItem(Struct, frozen=True):
    """What a tag is for clients: the type of its variable, the type of its values, its properties by name.

    `convert` makes the values of this type of its samples.
    """

    variable_type: ua.NodeId
    data_type: ua.NodeId
    properties: Mapping[str, ua.Variant]
    description: str
    convert: Convert = as_sampled


_DOUBLE: Final = ua.NodeId(_I.Double)
_DESCRIPTION: Final = "The last sample of a tag."
UNDEFINED: Final = TagItem(ua.NodeId(_I.DataItemType), ua.NodeId(_I.BaseDataType), MappingProxyType({}), _DESCRIPTION)
"""A tag without a definition: its values may have any type."""


@lru_cache(maxsize=1024)
def item_of(definition: TagDefinition | None) -> TagItem:
    """Return the item of a definition."""
    if definition is None:
        return UNDEFINED
    item = _item_of(definition)
    properties = {"Definition": ua.Variant(definition.definition, T.String)} if definition.definition else {}
    return replace(item, properties={**item.properties, **properties})


def _item_of(definition: TagDefinition) -> TagItem:
    description = definition.description or _DESCRIPTION
    has_range = definition.low is not None and definition.high is not None
    match definition.type:
        case "truth value":
            states = {"TrueState": "true", "FalseState": "false"}
            texts = {name: ua.Variant(ua.LocalizedText(text, "en"), T.LocalizedText) for name, text in states.items()}
            return TagItem(ua.NodeId(_I.TwoStateDiscreteType), ua.NodeId(_I.Boolean), texts, description)
        case "text":
            return TagItem(ua.NodeId(_I.DataItemType), ua.NodeId(_I.String), {}, description)
        case None if not has_range and not definition.unit:
            return TagItem(ua.NodeId(_I.DataItemType), ua.NodeId(_I.BaseDataType), {}, description)
        case _:
            variable_type = _analog_type(definition, has_range=has_range)
            return TagItem(variable_type, _DOUBLE, _analog(definition), description, as_double)


def _analog_type(definition: TagDefinition, *, has_range: bool) -> ua.NodeId:
    """Return the type that requires what is defined: unit and range, one of them, or none (OPC 10000-8, 5.3.2)."""
    if definition.unit:
        return ua.NodeId(_I.AnalogUnitRangeType if has_range else _I.AnalogUnitType)
    return ua.NodeId(_I.AnalogItemType if has_range else _I.BaseAnalogType)


def _analog(definition: TagDefinition) -> dict[str, ua.Variant]:
    properties = {}
    if definition.unit:
        properties["EngineeringUnits"] = ua.Variant(unit_of(definition.unit), T.ExtensionObject)
    if definition.low is not None and definition.high is not None:
        properties["EURange"] = ua.Variant(ua.Range(definition.low, definition.high), T.ExtensionObject)
    return properties


def value_of(item: TagItem, value: Any) -> tuple[ua.Variant, ua.StatusCode | None]:
    """Return a value in the type of its item, and the status where it is of another type: it was sampled before."""
    variant = variant_of(item.convert(value))
    is_any = item.data_type == UNDEFINED.data_type or variant.VariantType is T.Null
    if is_any or ua.NodeId(variant.VariantType.value) == item.data_type:
        return variant, None
    return ua.Variant(), _MISMATCH

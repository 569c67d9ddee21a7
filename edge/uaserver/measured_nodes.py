"""The measured values of a result: each number with a unit is an AnalogUnitType below `Result` (OPC 10000-8, 5.3.2.4).

    Result / torque / EngineeringUnits

A value keeps its data type and its unit as long as its chart exists.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import lru_cache
from types import MappingProxyType
from typing import Final, TypeAlias

from asyncua import ua
from asyncua.server.address_space import AttributeValue, NodeData

from edge.model.engineering_unit import engineering_unit
from edge.sfc.identifiers import quote
from edge.station.public_result import ResultValue
from edge.uaserver.node_parts import (
    HAS_COMPONENT,
    reference_to,
    reference_to_type,
    scalar,
    variable_attributes,
)
from edge.uaserver.own_types import UNIT_DESCRIPTION, UNITS_NAME, unit_id, unit_of_symbol

ANALOG_UNIT_TYPE: Final = ua.NodeId(ua.ObjectIds.AnalogUnitType)
MEASURED_TYPE: Final = ua.NodeId(ua.ObjectIds.Double)
MEASURED_DESCRIPTION: Final = "A measured value of the result, by its path in it."

ReadMeasured: TypeAlias = Callable[[], ResultValue | None]
"""Returns a value as it is now; None while the result has none of its name."""

_A: Final = ua.AttributeIds
_T: Final = ua.VariantType
_C: Final = ua.StatusCodes
_HAS_PROPERTY: Final = ua.NodeId(ua.ObjectIds.HasProperty)
_PROPERTY_TYPE: Final = ua.NodeId(ua.ObjectIds.PropertyType)
_OF_UNITS: Final = MappingProxyType(
    variable_attributes(UNITS_NAME, ua.NodeId(ua.ObjectIds.EUInformation), UNIT_DESCRIPTION)
)


def measured_id(result: ua.NodeId, name: str) -> ua.NodeId:
    """Return the NodeId of a value below the variable of a result."""
    return ua.NodeId(f"{result.Identifier}/{quote(name)}", result.NamespaceIndex)


def measured_nodes(result: NodeData, value: ResultValue, read: ReadMeasured) -> Iterator[NodeData]:
    """Yield the nodes of a value, its variable and its unit; the result has a reference to it from now on."""
    node = NodeData(measured_id(result.nodeid, value.name))
    name = ua.QualifiedName(value.name, result.nodeid.NamespaceIndex)
    held = AttributeValue(ua.DataValue())
    held.value_callback = _reader(value.unit, read)
    node.attributes = {
        **variable_attributes(name, MEASURED_TYPE, MEASURED_DESCRIPTION),
        _A.NodeId: scalar(node.nodeid, _T.NodeId),
        _A.Value: held,
    }
    node.references = [
        reference_to_type(ANALOG_UNIT_TYPE, ua.NodeClass.VariableType),
        reference_to(result, HAS_COMPONENT, is_forward=False),
    ]
    result.references.append(reference_to(node, HAS_COMPONENT))
    yield node
    yield unit_node(node, _unit(value.unit))


def unit_node(owner: NodeData, unit: ua.Variant) -> NodeData:
    """Return the property EngineeringUnits of a variable, which has a reference to it from now on."""
    node = NodeData(unit_id(owner.nodeid))
    node.attributes = {
        **_OF_UNITS,
        _A.NodeId: scalar(node.nodeid, _T.NodeId),
        _A.Value: AttributeValue(ua.DataValue(unit)),
    }
    node.references = [
        reference_to_type(_PROPERTY_TYPE, ua.NodeClass.VariableType),
        reference_to(owner, _HAS_PROPERTY, is_forward=False),
    ]
    owner.references.append(reference_to(node, _HAS_PROPERTY))
    return node


@lru_cache(maxsize=256)
def _unit(symbol: str) -> ua.Variant:
    return ua.Variant(unit_of_symbol(symbol), _T.ExtensionObject)


def _reader(unit: str, read: ReadMeasured) -> Callable[[ua.NodeId, ua.AttributeIds], ua.DataValue]:
    def measured(_node_id: ua.NodeId, _attribute: ua.AttributeIds) -> ua.DataValue:
        now, value = datetime.now(UTC), read()
        if value is not None and engineering_unit(value.unit) == engineering_unit(unit):
            return ua.DataValue(ua.Variant(float(value.value), _T.Double), SourceTimestamp=now, ServerTimestamp=now)
        # A number in another unit is not a value of this variable.
        status = ua.StatusCode(_C.BadWaitingForInitialData if value is None else _C.BadTypeMismatch)
        return ua.DataValue(ua.Variant(), status, SourceTimestamp=now, ServerTimestamp=now)

    return measured

"""Values that the official node sets leave out, of nodes that this server serves: each variable has a value.

Clients show an empty dialog for a variable without one, or refuse it (OPC 10000-3, 5.6.2).
"""

from types import MappingProxyType
from typing import Final

from asyncua import ua
from asyncua.server.address_space import AddressSpace

from edge.uaserver.namespaces import Namespace

_T: Final = ua.VariantType
_OWNING: Final = frozenset({ua.NodeId(ua.ObjectIds.HasComponent), ua.NodeId(ua.ObjectIds.HasProperty)})
_NAMESPACES: Final = ua.NodeId(ua.ObjectIds.Server_Namespaces)

_OF_NAMESPACES: Final = MappingProxyType(
    {
        # OPC 10000-5, 6.3.13: without a meaning where StaticNodeIdTypes has the type of all NodeIds, as there.
        "StaticNumericNodeIdRange": ua.Variant([], _T.String, is_array=True),
        "StaticStringNodeIdPattern": ua.Variant("", _T.String),
        # No permissions and restrictions for whole namespaces: those of the methods depend on the role.
        "DefaultRolePermissions": ua.Variant([], _T.ExtensionObject, is_array=True),
        "DefaultUserRolePermissions": ua.Variant([], _T.ExtensionObject, is_array=True),
        "DefaultAccessRestrictions": ua.Variant(0, _T.UInt16),
    }
)
_OTHERS: Final = MappingProxyType(
    {
        # DeviceTopology/OnlineAccess (OPC 10000-100, 5.4): this server is connected to no devices of a topology.
        ua.NodeId(6095, Namespace.DI): ua.Variant(False, _T.Boolean),
    }
)


def fill_missing_values(aspace: AddressSpace) -> None:
    """Write the values that the node sets leave out; a value that a node set has stays."""
    values = dict(_OTHERS)
    for metadata in _below(aspace, _NAMESPACES):
        for member in _below(aspace, metadata.NodeId):
            if member.BrowseName.Name in _OF_NAMESPACES:
                values[member.NodeId] = _OF_NAMESPACES[member.BrowseName.Name]
    for node_id, value in values.items():
        attribute = aspace[node_id].attributes[ua.AttributeIds.Value]
        if attribute.value is None or attribute.value.Value is None or attribute.value.Value.Value is None:
            attribute.value = ua.DataValue(value)


def _below(aspace: AddressSpace, node_id: ua.NodeId) -> list[ua.ReferenceDescription]:
    return [
        reference
        for reference in aspace[node_id].references
        if reference.IsForward and reference.ReferenceTypeId in _OWNING
    ]

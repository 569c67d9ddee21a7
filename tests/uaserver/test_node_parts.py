"""The attributes and references of nodes."""

import pytest
from asyncua import ua
from asyncua.server.address_space import AddressSpace, NodeData

from edge.uaserver.node_parts import (
    _TEXTS,
    HAS_COMPONENT,
    compute_namespace,
    describe,
    object_attributes,
    reference_to,
    reference_to_type,
    variable_attributes,
)
from edge.uaserver.own_types import T, base, type_name, type_node

A = ua.AttributeIds
FOLDER_TYPE = ua.NodeId(ua.ObjectIds.FolderType)
NAME = type_name("Level")


def tank() -> NodeData:
    node = NodeData(ua.NodeId("tank", 2))
    node.attributes = object_attributes(node.nodeid, ua.QualifiedName("tank", 2), "A tank.")
    node.references = [reference_to_type(FOLDER_TYPE)]
    return node


def test_reference_to_a_node_has_its_names_and_its_type() -> None:
    found = reference_to(tank(), HAS_COMPONENT, is_forward=False)
    assert (found.NodeId, found.BrowseName) == (ua.NodeId("tank", 2), ua.QualifiedName("tank", 2))
    assert (found.NodeClass, found.TypeDefinition, found.IsForward) == (ua.NodeClass.Object, FOLDER_TYPE, False)


def test_reference_to_a_type_has_its_browse_name_and_class() -> None:
    standard = reference_to_type(ua.NodeId(ua.ObjectIds.BaseDataVariableType), ua.NodeClass.VariableType)
    assert standard.BrowseName == ua.QualifiedName("BaseDataVariableType")
    assert standard.NodeClass is ua.NodeClass.VariableType
    own = reference_to_type(type_node("RunningChartType"))
    assert (own.BrowseName, own.NodeClass) == (type_name("RunningChartType"), ua.NodeClass.ObjectType)


def test_objects_share_their_equal_attributes() -> None:
    one, other = tank().attributes, tank().attributes
    assert [value for value in one if one[value] is other[value]] == [
        A.NodeClass,
        A.EventNotifier,
        A.WriteMask,
        A.UserWriteMask,
    ]


def test_variable_with_history_is_historizing_and_an_array_has_dimensions() -> None:
    def value_of(attribute: ua.AttributeIds, access_level: int, *, is_array: bool) -> object:
        found = variable_attributes(NAME, base(T.Double), "How high.", access_level, is_array=is_array)
        return found[attribute].value.Value.Value

    read, history = 1 << ua.AccessLevel.CurrentRead, 1 << ua.AccessLevel.HistoryRead
    assert value_of(A.Historizing, read | history, is_array=False) is True
    assert value_of(A.Historizing, read, is_array=False) is False
    assert value_of(A.ArrayDimensions, read, is_array=True) == [0]
    assert value_of(A.ValueRank, read, is_array=False) == ua.ValueRank.Scalar


COMPUTED, STORED = ua.NodeId("chart", 7), ua.NodeId("machine", 2)


def node_of_chart(node_id: ua.NodeId) -> NodeData:
    if node_id != COMPUTED:
        raise KeyError(node_id)
    return NodeData(node_id)


def test_nodes_of_the_namespace_are_computed_at_each_read() -> None:
    aspace = AddressSpace()
    aspace[STORED] = stored = NodeData(STORED)
    compute_namespace(aspace, 7, node_of_chart)
    assert aspace[COMPUTED] is not aspace[COMPUTED]
    assert aspace[COMPUTED].nodeid == COMPUTED
    assert aspace[STORED] is stored
    assert list(aspace.keys()) == [STORED]


def test_unknown_nodes_are_not_found() -> None:
    aspace = AddressSpace()
    compute_namespace(aspace, 7, node_of_chart)
    assert aspace.get(ua.NodeId("other", 7)) is None
    with pytest.raises(KeyError):
        aspace[ua.NodeId("machine", 2)]


@pytest.mark.parametrize("name", _TEXTS)
def test_a_description_is_a_sentence(name: str) -> None:
    assert (describe(name).Text or "").endswith(".")


def test_site_specific_name_has_the_description_of_its_kind() -> None:
    assert describe("wrench", "A piece of equipment.").Text == "A piece of equipment."

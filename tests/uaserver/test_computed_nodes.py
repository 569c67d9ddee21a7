"""One namespace of an address space is computed, the others are stored."""

import pytest
from asyncua import ua
from asyncua.server.address_space import AddressSpace, NodeData

from edge.uaserver.computed_nodes import compute_namespace

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

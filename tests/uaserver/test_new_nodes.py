"""Added nodes equal those of asyncua's AddNodes service."""

import asyncio
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from asyncua import Server, ua
from asyncua.server.address_space import AddressSpace

from edge.foundation.errors import Defect
from edge.uaserver.namespaces import Namespace
from edge.uaserver.new_nodes import add_node, add_reference
from edge.uaserver.node_parts import HAS_COMPONENT
from edge.uaserver.own_types import (
    MANDATORY,
    PLACEHOLDER,
    T,
    VariableSpec,
    add_modelling_rules,
    argument,
    base,
    method_items,
    object_item,
    object_type,
    text,
    type_node,
)

pytestmark = pytest.mark.slow

TANK = type_node("TankType")
LEVEL = VariableSpec("Level", base(T.String), "How high.", text)
LEVELS = VariableSpec("Levels", base(T.Double), "How high.", text, is_array=True)
OBJECTS = ua.NodeId(ua.ObjectIds.ObjectsFolder)


def items() -> Iterator[ua.AddNodesItem]:
    yield from object_type(TANK, (LEVEL, LEVELS))
    fill = (argument("Litres", base(T.Double), "How much."), argument("Notes", base(T.String), "Why.", is_array=True))
    done = argument("Done", base(T.Boolean), "Whether.")
    yield from method_items(type_node("TankType", "Fill"), TANK, "Fill the tank.", fill, done)
    tank = ua.NodeId("tank", Namespace.APPLICATION)
    yield object_item(tank, OBJECTS, HAS_COMPONENT, TANK)
    yield object_item(
        ua.NodeId("tank/lid", Namespace.APPLICATION), tank, HAS_COMPONENT, ua.NodeId(ua.ObjectIds.FolderType)
    )


async def space() -> AddressSpace:
    server = Server()
    await server.init()
    return server.iserver.aspace


def contents(aspace: AddressSpace, node_id: ua.NodeId) -> tuple[dict[str, Any], list[Any]]:
    """Return attributes and references; instants only as such, NodeIds without the form of their encoding."""
    node = aspace[node_id]
    attributes = {}
    for attribute, held in node.attributes.items():
        value = held.value
        stamps = [type(at) for at in (value.SourceTimestamp, value.ServerTimestamp)]
        attributes[attribute.name] = (value.Value, value.StatusCode, stamps)
    references = [
        (
            reference.ReferenceTypeId.to_string(),
            reference.IsForward,
            reference.NodeId.to_string(),
            reference.BrowseName,
            reference.DisplayName,
            reference.NodeClass,
            reference.TypeDefinition.to_string(),
        )
        for reference in node.references
    ]
    return attributes, references


async def test_added_nodes_equal_those_of_the_add_nodes_service() -> None:
    service = Server()
    await service.init()
    ours, theirs = await space(), service.iserver.aspace
    added = [add_node(ours, value) for value in items()]
    results = service.iserver.node_mgt_service.add_nodes(list(items()))
    assert [result.AddedNodeId for result in results] == added
    for node_id in (*added, OBJECTS, ua.NodeId(ua.ObjectIds.BaseObjectType)):
        assert contents(ours, node_id) == contents(theirs, node_id)
    level = ours[type_node("TankType", "Level")].attributes[ua.AttributeIds.Value].value
    assert isinstance(level.SourceTimestamp, datetime)


async def test_added_references_equal_those_of_the_add_references_service() -> None:
    ours = Server()
    theirs = Server()
    await asyncio.gather(ours.init(), theirs.init())
    for server in (ours, theirs):
        for item in items():
            add_node(server.iserver.aspace, item)
    tank, notifier = ua.NodeId("tank", Namespace.APPLICATION), ua.NodeId(ua.ObjectIds.HasNotifier)
    rule = ua.NodeId(ua.ObjectIds.HasModellingRule)
    add_reference(ours.iserver.aspace, OBJECTS, notifier, tank)
    add_modelling_rules(ours.iserver, [(type_node("TankType", "Level"), MANDATORY), (TANK, PLACEHOLDER)])
    asked = [
        ua.AddReferencesItem(source, reference, IsForward=forward, TargetNodeId=target)
        for source, reference, forward, target in (
            (OBJECTS, notifier, True, tank),
            (tank, notifier, False, OBJECTS),
            (type_node("TankType", "Level"), rule, True, MANDATORY),
            (TANK, rule, True, PLACEHOLDER),
        )
    ]
    for status in theirs.iserver.node_mgt_service.add_references(asked):
        status.check()
    for node_id in (OBJECTS, tank, TANK, type_node("TankType", "Level")):
        assert contents(ours.iserver.aspace, node_id) == contents(theirs.iserver.aspace, node_id)


async def test_second_node_of_the_same_id_and_a_node_without_parent_are_refused() -> None:
    aspace = await space()
    first, below, *_ = items()
    with pytest.raises(Defect, match="its parent"):
        add_node(aspace, below)
    add_node(aspace, first)
    with pytest.raises(Defect, match="exists"):
        add_node(aspace, first)

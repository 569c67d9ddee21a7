"""Declarations contain the members that every instance has; instances share no attribute that can change."""

from collections.abc import Iterator

import pytest
from asyncua import Server, ua
from asyncua.server.address_space import AddressSpace, AttributeValue

from edge.model.job_state import METHODS, SUBSTATE_MACHINE
from edge.opcua.limits import ACTIVATION_S
from edge.opcua.server_core import ServerCore
from edge.uaserver import nodesets, type_cache
from edge.uaserver.declarations import (
    IDENTIFICATION_TYPE,
    JOB_MANAGEMENT_TYPE,
    NAMESPACE_METADATA_TYPE,
    Declaration,
    Declarations,
    declarations,
    renamed,
)
from edge.uaserver.security import AccessControl
from edge.uaserver.server import limits_of
from edge.uaserver.space import Nameplate, add_event_type, add_machine
from edge.uaserver.type_cache import TypeNodes
from tests.uaserver.running import MACHINES, SETTINGS

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def types() -> Iterator[TypeNodes]:
    path = nodesets.cache_path(nodesets.default_directory())
    with type_cache.read(path, nodesets.cache_key()) as type_nodes:
        yield type_nodes


@pytest.fixture(scope="module")
def declared(types: TypeNodes) -> Declarations:
    return types.declarations


def names(declaration: Declaration) -> set[str]:
    return {member.browse_name.Name for member in declaration.members}


def test_cached_declarations_are_those_of_the_types(types: TypeNodes, declared: Declarations) -> None:
    assert declared == declarations(types)


def test_receiver_declares_its_optional_methods_and_substate_machines(declared: Declarations) -> None:
    members = {member.browse_name.Name: member for member in declared[JOB_MANAGEMENT_TYPE].members}
    assert names(members["JobOrderControl"]) >= {*METHODS, *SUBSTATE_MACHINE.values()}
    assert "JobOrderResponseList" in names(members["JobOrderResults"])


def test_optional_members_that_no_machine_has_are_left_out(declared: Declarations) -> None:
    assert names(declared[IDENTIFICATION_TYPE]) == {"Manufacturer", "ProductInstanceUri", "SerialNumber"}


def test_renamed_declaration_keeps_its_members_and_description(declared: Declarations) -> None:
    metadata = declared[NAMESPACE_METADATA_TYPE]
    declaration = renamed(metadata, ua.QualifiedName("urn:a", 8))
    assert (
        declaration.browse_name.Name == declaration.attributes[ua.AttributeIds.DisplayName].Value.Value.Text == "urn:a"
    )
    assert declaration.members is metadata.members
    assert declaration.attributes[ua.AttributeIds.Description] is metadata.attributes[ua.AttributeIds.Description]


async def test_machines_share_no_attribute(types: TypeNodes, declared: Declarations) -> None:
    """A value that is written to one machine leaves the others unchanged."""
    server = Server(iserver=ServerCore(types, AccessControl(SETTINGS), ACTIVATION_S, limits_of(SETTINGS)))
    await server.init()
    await nodesets.register_official(server)
    add_event_type(server.iserver)
    aspace = server.iserver.aspace
    for machine in MACHINES:
        await add_machine(server.iserver, declared, machine, Nameplate("Tightening Works", "4711", machine.scope))
    first, second = (attributes_of_machine(aspace, machine.scope) for machine in MACHINES)
    assert first.keys() == second.keys()
    assert len(first) > 1_000
    assert {id(value) for value in first.values()}.isdisjoint(map(id, second.values()))
    before = {row: held.value for row, held in second.items()}
    for held in first.values():
        held.value = ua.DataValue(ua.Variant("written"))
    assert all(held.value is before[row] for row, held in second.items())


def attributes_of_machine(aspace: AddressSpace, scope: str) -> dict[tuple[str, ua.AttributeIds], AttributeValue]:
    """Return the attributes of the nodes of a machine, by the path below it."""
    nodes = {str(value.Identifier): aspace[value] for value in tuple(aspace.keys())}
    return {
        (path.removeprefix(scope), name): held
        for path, node in nodes.items()
        if path.startswith(scope)
        for name, held in node.attributes.items()
    }

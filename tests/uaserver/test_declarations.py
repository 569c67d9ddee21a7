"""Declarations contain the members that every instance has; instances share nothing that changes."""

from collections.abc import Iterator

import pytest
from asyncua import ua

from edge.model.job_state import METHODS, SUBSTATE_MACHINE
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
from edge.uaserver.type_cache import TypeNodes

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def types() -> Iterator[TypeNodes]:
    path = nodesets.cache_path(nodesets.default_directory())
    with type_cache.read(path, nodesets.cache_key()) as found:
        yield found


@pytest.fixture(scope="module")
def declared(types: TypeNodes) -> Declarations:
    return types.declarations


def names(declaration: Declaration) -> set[str]:
    return {each.browse_name.Name for each in declaration.members}


def test_cached_declarations_are_those_of_the_types(types: TypeNodes, declared: Declarations) -> None:
    assert declared == declarations(types)


def test_receiver_declares_its_optional_methods_and_substate_machines(declared: Declarations) -> None:
    members = {each.browse_name.Name: each for each in declared[JOB_MANAGEMENT_TYPE].members}
    assert names(members["JobOrderControl"]) >= {*METHODS, *SUBSTATE_MACHINE.values()}
    assert "JobOrderResponseList" in names(members["JobOrderResults"])


def test_optional_members_that_no_machine_has_are_left_out(declared: Declarations) -> None:
    assert names(declared[IDENTIFICATION_TYPE]) == {"Manufacturer", "ProductInstanceUri", "SerialNumber"}


def test_renamed_declaration_keeps_its_members_and_description(declared: Declarations) -> None:
    metadata = declared[NAMESPACE_METADATA_TYPE]
    named = renamed(metadata, ua.QualifiedName("urn:a", 8))
    assert named.browse_name.Name == named.attributes[ua.AttributeIds.DisplayName].Value.Value.Text == "urn:a"
    assert named.members is metadata.members
    assert named.attributes[ua.AttributeIds.Description] is metadata.attributes[ua.AttributeIds.Description]

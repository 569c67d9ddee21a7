"""The parts of own types: names, instants, variables."""

from datetime import UTC, datetime

from asyncua import ua

from edge.uaserver.namespaces import Namespace
from edge.uaserver.own_types import T, VariableSpec, base, instant, object_type, text, type_node

LEVEL = VariableSpec("Level", base(T.String), "How high.", text)
LEVELS = VariableSpec("Levels", base(T.String), "How high.", text, is_array=True)


def test_missing_instant_is_null() -> None:
    assert instant(None) == ua.Variant(), "a client would show the year 1601"
    assert instant(1500) == ua.Variant(datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC), T.DateTime)


def test_a_type_is_declared_before_its_variables() -> None:
    declared, level, levels = object_type(type_node("TankType"), (LEVEL, LEVELS))
    assert declared.RequestedNewNodeId == ua.NodeId("TankType", Namespace.TYPES)
    assert [value.ParentNodeId for value in (level, levels)] == [declared.RequestedNewNodeId] * 2
    assert level.RequestedNewNodeId == ua.NodeId("TankType/Level", Namespace.TYPES)
    assert level.BrowseName == ua.QualifiedName("Level", Namespace.TYPES)


def test_a_variable_can_be_read_and_states_whether_it_is_an_array() -> None:
    _, level, levels = object_type(type_node("TankType"), (LEVEL, LEVELS))
    one, many = level.NodeAttributes, levels.NodeAttributes
    assert (one.ValueRank, many.ValueRank) == (ua.ValueRank.Scalar, ua.ValueRank.OneDimension)
    assert one.AccessLevel == one.UserAccessLevel == 1 << ua.AccessLevel.CurrentRead

"""The types of running charts, read by a client that does not know them."""

import pytest
from asyncua import Client, Node, ua

from edge.uaserver.chart_types import ACTION, CHART, CHART_METHODS, STEP
from edge.uaserver.namespaces import TYPES_URI
from edge.uaserver.own_types import VariableSpec
from tests.uaserver.running import Space

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

MEMBERS = [("RunningChartType", CHART), ("ChartStepType", STEP), ("ChartActionType", ACTION)]


async def rule(node: Node) -> int:
    (found,) = await node.get_references(ua.ObjectIds.HasModellingRule)
    return int(found.NodeId.Identifier)


@pytest.mark.parametrize(("name", "members"), MEMBERS)
async def test_every_member_is_declared_with_its_meaning(
    client: Client, space: Space, name: str, members: tuple[VariableSpec, ...]
) -> None:
    kind = client.get_node(ua.NodeId(name, space.index[TYPES_URI]))
    assert (await kind.get_parent()).nodeid == ua.NodeId(ua.ObjectIds.BaseObjectType)
    for variable_spec in members:
        member = await kind.get_child([space.name(variable_spec.name, TYPES_URI)])
        assert await member.read_data_type() == variable_spec.data_type
        assert (await member.read_description()).Text == variable_spec.description
        assert await rule(member) == ua.ObjectIds.ModellingRule_Mandatory


async def test_steps_and_actions_are_placeholders_of_their_types(client: Client, space: Space) -> None:
    kind = client.get_node(ua.NodeId("RunningChartType", space.index[TYPES_URI]))
    for folder, member, type_name in (
        ("Steps", "<Step>", "ChartStepType"),
        ("Actions", "<Action>", "ChartActionType"),
    ):
        node = await kind.get_child([space.name(folder, TYPES_URI), space.name(member, TYPES_URI)])
        assert await rule(node) == ua.ObjectIds.ModellingRule_OptionalPlaceholder
        assert (await node.read_type_definition()).Identifier == type_name


async def test_chart_methods_are_the_job_methods_without_the_job_id(client: Client, space: Space) -> None:
    kind = client.get_node(ua.NodeId("RunningChartType", space.index[TYPES_URI]))
    assert {(await method.read_browse_name()).Name for method in await kind.get_methods()} == set(CHART_METHODS)

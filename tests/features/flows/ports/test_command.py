"""A flow commands equipment by its name, with the types of command of its settings."""

import pytest

from edge.features.flows.attempt import OutcomeUnknownError
from edge.features.flows.cycle import Cycle, NodeStatus, NodeTask
from edge.features.flows.nodes.kind import NodeError
from edge.features.flows.nodes.outside import CommandEquipment
from edge.features.flows.ports.command import EquipmentCommander
from edge.features.flows.redis_state import RedisFlowState
from edge.features.flows.state import KeptAnswer
from edge.station.answers import Answers
from edge.station.direct_commands import DirectCommands
from edge.station.equipment import EquipmentAnswer
from edge.station.equipment_watch import EquipmentStats, WatchedEquipment
from edge.station.runs import Runs
from edge.store.client import Store
from tests.station.plant import DEDUPE_MS, KEEP_ENDED_MS, SCOPE, TIGHTEN, Clock, FakeEquipment, obliging


@pytest.fixture
def tool() -> FakeEquipment:
    return FakeEquipment()


@pytest.fixture
def commander(store: Store, tool: FakeEquipment) -> EquipmentCommander:
    runs = Runs(store, Clock(), KEEP_ENDED_MS)
    direct = DirectCommands(runs)
    tool.station = Answers(store, runs, DEDUPE_MS, [TIGHTEN], direct)
    watched = WatchedEquipment(tool, "mqtt", [TIGHTEN], EquipmentStats())
    return EquipmentCommander(direct, store.keys, [watched], SCOPE, answer_within_s=0.5)


async def test_input_holds_the_parameters_and_the_answer_is_the_output(
    commander: EquipmentCommander, tool: FakeEquipment
) -> None:
    tool.replies = obliging
    assert await commander.command(CommandEquipment("tool", TIGHTEN, {"torque": 5}), "flow_0_n@9") == {"ok": True}
    (command,) = tool.commands
    assert (command.job_id, command.parameters, command.command_id) == (
        "flow_0_n",
        {"torque": 5},
        "flow_0_n%409/flow/flow/1",
    )


@pytest.mark.parametrize("value", [None, 5, [1]])
async def test_other_inputs_add_no_parameters(
    commander: EquipmentCommander, tool: FakeEquipment, value: object
) -> None:
    tool.replies = obliging
    await commander.command(CommandEquipment("tool", TIGHTEN, value), "flow_0_n@9")
    assert tool.commands[0].parameters == {}


@pytest.mark.parametrize(
    ("equipment", "type_id", "reason"), [("saw", TIGHTEN, "no equipment 'saw'"), ("tool", "x", "takes no commands")]
)
async def test_unknown_equipment_or_type_fails_the_node(
    commander: EquipmentCommander, equipment: str, type_id: str, reason: str
) -> None:
    with pytest.raises(NodeError, match=reason):
        await commander.command(CommandEquipment(equipment, type_id, None), "t")


async def test_error_of_the_equipment_fails_the_node(commander: EquipmentCommander, tool: FakeEquipment) -> None:
    tool.replies = lambda command: EquipmentAnswer(command.command_id, error="no part")
    with pytest.raises(NodeError, match="no part"):
        await commander.command(CommandEquipment("tool", TIGHTEN, None), "t")


async def test_missing_answer_has_an_unknown_outcome(commander: EquipmentCommander) -> None:
    with pytest.raises(OutcomeUnknownError, match="did not answer"):
        await commander.command(CommandEquipment("tool", TIGHTEN, None), "t")


async def test_answer_is_stored_with_the_node_task_before_it_is_acknowledged(
    store: Store, commander: EquipmentCommander, tool: FakeEquipment
) -> None:
    """A gateway that is killed between the answer and the end of the node finds it there."""
    tool.replies = obliging
    await commander.command(CommandEquipment("tool", TIGHTEN, None, 2), "flow_0_n@9")
    cycle = Cycle("flow", 0, 0, {"n": NodeTask(NodeStatus.RUNNING, attempts=2)})
    assert await RedisFlowState(store).answers(cycle) == {"n": KeptAnswer(2, {"ok": True})}
    repeated = Cycle("flow", 0, 0, {"n": NodeTask(NodeStatus.RUNNING, attempts=3)})
    assert await RedisFlowState(store).answers(repeated) == {}


async def test_second_attempt_is_a_new_command(commander: EquipmentCommander, tool: FakeEquipment) -> None:
    """Under the id of the first one the equipment would only repeat its answer."""
    tool.replies = obliging
    for attempt in (1, 2):
        await commander.command(CommandEquipment("tool", TIGHTEN, None, attempt), "flow_0_n@9")
    assert [command.command_id for command in tool.commands] == ["flow_0_n%409/flow/flow/1", "flow_0_n%409/flow/flow/2"]

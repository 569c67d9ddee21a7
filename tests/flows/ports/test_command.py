"""A flow commands equipment by its name, with the types of command of its settings."""

import pytest

from edge.flows.attempt import OutcomeUnknownError
from edge.flows.nodes.act import CommandEquipment
from edge.flows.nodes.kind import NodeError
from edge.flows.ports.command import EquipmentCommander
from edge.station.answers import Answers
from edge.station.direct_commands import DirectCommands
from edge.station.equipment import EquipmentAnswer
from edge.station.equipment_stats import EquipmentStats
from edge.station.equipment_watch import WatchedEquipment
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
    return EquipmentCommander(direct, [watched], SCOPE, answer_within_s=0.5)


async def test_input_brings_the_parameters_and_the_answer_is_the_output(
    commander: EquipmentCommander, tool: FakeEquipment
) -> None:
    tool.replies = obliging
    assert await commander.command(CommandEquipment("tool", TIGHTEN, {"torque": 5}), "flow_0_n") == {"ok": True}
    (command,) = tool.commands
    assert (command.job_id, command.parameters, command.command_id) == (
        "flow_0_n",
        {"torque": 5},
        "flow_0_n/flow/flow/1",
    )


@pytest.mark.parametrize("value", [None, 5, [1]])
async def test_other_inputs_bring_no_parameters(
    commander: EquipmentCommander, tool: FakeEquipment, value: object
) -> None:
    tool.replies = obliging
    await commander.command(CommandEquipment("tool", TIGHTEN, value), "flow_0_n")
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
    tool.replies = lambda each: EquipmentAnswer(each.command_id, error="no part")
    with pytest.raises(NodeError, match="no part"):
        await commander.command(CommandEquipment("tool", TIGHTEN, None), "t")


async def test_missing_answer_has_an_unknown_outcome(commander: EquipmentCommander) -> None:
    with pytest.raises(OutcomeUnknownError, match="did not answer"):
        await commander.command(CommandEquipment("tool", TIGHTEN, None), "t")

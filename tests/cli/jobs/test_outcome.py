"""Tests of `edge jobs resolve` and `edge jobs resend`."""

import json

from edge.model.job_state import Cause
from edge.station.equipment import OutcomeUnknown
from tests.cli.calling import Edge
from tests.station.plant import FakeEquipment, Plant, order, until_true


async def test_operator_resolves_an_unknown_outcome_with_data(edge: Edge, plant: Plant, tool: FakeEquipment) -> None:
    await plant.order(Cause.STORE_AND_START, order("J1"))
    await plant.drive()
    await plant.answers.answer(OutcomeUnknown(tool.commands[0].command_id, "no result"))
    why = await edge("jobs", "why", "J1")
    lines = why.output.splitlines()
    assert lines[3].startswith("  action a of one: outcome unknown: no result, sent ")
    assert lines[4:] == [
        "      look at the work, then decide, with --done, --failed or --repeat:",
        "      edge jobs resolve J1 a --done --reason 'what was seen'",
    ]
    waiting = json.loads((await edge("jobs", "why", "J1", "--json")).output)["waiting"]
    assert waiting[1]["action"]["error"] == "outcome unknown: no result"
    async with plant.at_work():
        answer = await edge("jobs", "resolve", "J1", "a", "--done", "--data", '{"torque": 85}', "--reason", "seen")
        assert (answer.exit_code, answer.output) == (0, "job J1: action a resolved as done\n")
        await until_true(lambda: tool.received() == ["a", "b"])


async def test_resolve_is_refused_without_an_unknown_outcome(edge: Edge, plant: Plant) -> None:
    await plant.order(Cause.STORE_AND_START, order("J1"))
    await plant.drive()
    answer = await edge("jobs", "resolve", "J1", "a", "--failed", "--reason", "seen", "--json")
    assert answer.exit_code == 1
    assert "is not unknown" in answer.output


async def test_resolve_needs_a_decision_and_readable_data(edge: Edge) -> None:
    for options in (("--reason", "x"), ("--done",), ("--done", "--data", "{"), ("--failed", "--data", "{}")):
        reason = () if options[0] == "--reason" or len(options) == 1 else ("--reason", "seen")
        assert (await edge("jobs", "resolve", "J1", "a", *options, *reason)).exit_code == 2
    contradiction = await edge("jobs", "resolve", "J1", "a", "--failed", "--repeat", "--reason", "seen")
    assert (contradiction.exit_code, "Choose one of" in contradiction.output) == (2, True)
    answer = await edge("jobs", "resolve", "J1", "a", "--done", "--reason", " ")
    assert (answer.exit_code, "no reason" in answer.output) == (1, True)


async def test_lost_commands_are_sent_again(edge: Edge, plant: Plant, tool: FakeEquipment) -> None:
    await plant.order(Cause.STORE_AND_START, order("J1"))
    await plant.drive()
    async with plant.at_work():
        answer = await edge("jobs", "resend", "J1")
        assert (answer.exit_code, answer.output) == (0, "1 commands are sent again\n")
        await until_true(lambda: [command.offered_again for command in tool.commands] == [False, True])
    assert (await edge("jobs", "resend", "J9")).exit_code == 1

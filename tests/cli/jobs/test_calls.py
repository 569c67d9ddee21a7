"""Each command calls its method, and a refusal lists the commands allowed in the state of the job."""

import json
from pathlib import Path

import pytest

from edge.cli.jobs.calls import COMMANDS, commands_in, visiting_runs
from edge.cli.jobs.commands import jobs
from edge.cli.terminal.store_access import open_access
from edge.model.job_state import METHODS, Cause, JobState
from edge.station.equipment import OutcomeUnknown
from tests.cli.calling import Edge
from tests.station.plant import FakeEquipment, Plant, order, until_true


def test_every_job_method_has_its_command() -> None:
    assert {*COMMANDS.values(), Cause.STORE, Cause.STORE_AND_START} == set(METHODS)
    others = {"store", "list", "show", "watch", "why", "resolve", "resend", "export", "history", "replay", "results"}
    others |= {"retry", "skip", "force", "complete"}
    assert {*COMMANDS, *others} == set(jobs.commands)


@pytest.mark.parametrize(
    ("state", "commands"),
    [
        (JobState.NOT_ALLOWED_TO_START, ["start", "abort", "cancel", "update"]),
        (JobState.ALLOWED_TO_START, ["revoke", "abort", "cancel", "update"]),
        (JobState.RUNNING, ["pause", "stop", "abort"]),
        (JobState.INTERRUPTED, ["resume", "stop", "abort"]),
        (JobState.ENDED, ["clear"]),
        (JobState.ABORTED, ["clear"]),
    ],
)
def test_commands_of_a_state_match_the_transition_table(state: JobState, commands: list[str]) -> None:
    assert commands_in(state) == commands


@pytest.fixture
def short_retention(settings_file: Path) -> Path:
    settings_file.write_text(settings_file.read_text() + "[retention]\nended_jobs = 77\ndecisions = 0\n")
    return settings_file


async def test_job_ended_by_a_command_has_the_retention_of_the_settings(short_retention: Path) -> None:
    async with open_access(short_retention) as at:
        context = (await visiting_runs(at)).context
    assert (context.keep_ended_ms, context.most_decisions) == (77_000, 0)


async def test_operator_resolves_an_unknown_outcome_with_data(edge: Edge, plant: Plant, tool: FakeEquipment) -> None:
    await plant.order(Cause.STORE_AND_START, order("J1"))
    await plant.drive()
    await plant.answers.answer(OutcomeUnknown(tool.commands[0].command_id, "no result"))
    why = await edge("jobs", "why", "J1")
    lines = why.output.splitlines()
    assert lines[4].startswith("  action a of one: outcome unknown: no result, sent ")
    assert lines[5:] == [
        "      look at the work, then decide:",
        "      edge jobs resolve J1 a --done --reason 'what was seen'",
        "          it counts as done, with the result in --data, and the job continues",
        "      edge jobs resolve J1 a --failed --reason 'what was seen'",
        "          it counts as failed, and the job continues as after any failure",
        "      edge jobs resolve J1 a --repeat --reason 'what was seen'",
        "          its command is sent to the equipment once more",
    ]
    waits = json.loads((await edge("jobs", "why", "J1", "--json")).output)["waits"]
    assert waits["actions"][0]["error"] == "outcome unknown: no result"
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

"""Results of commands that another gateway carries out at the same controller."""

from collections.abc import Sequence

import pytest

from edge.southbound.openprotocol_conversion import identifier_of
from edge.southbound.openprotocol_elsewhere import ANSWER_SECONDS, CommandsElsewhere, is_answered_here
from edge.southbound.openprotocol_reports import claim_of, mark_of
from edge.southbound.result_ledger import KeptResult, ReportedResult, ResultLedger
from edge.station.equipment import Command
from tests.southbound.strict_controller import bolt


def elsewhere(*commands: Command, has_marks: bool = True) -> CommandsElsewhere:
    ledger = ResultLedger()

    async def open_commands() -> Sequence[Command]:
        return commands

    def remember(command: Command) -> None:
        ledger.claim(claim_of(command), mark_of(command, "mark"))

    return CommandsElsewhere(ledger, open_commands, remember, has_marks)


@pytest.mark.parametrize("has_marks", [True, False])
async def test_result_of_a_learnt_command_is_kept_for_its_gateway(*, has_marks: bool) -> None:
    command = bolt(1)
    commands = elsewhere(command, bolt(2), has_marks=has_marks)
    await commands.learn(identifier_of(command, "mark"))
    commands.ledger.keep(ReportedResult({}), command.command_id)
    assert [each.command_id for _, each in commands.kept()] == [command.command_id] * has_marks


async def test_result_of_a_command_started_here_is_not_kept_for_others() -> None:
    command = bolt(1)
    commands = elsewhere(command)
    await commands.learn(identifier_of(command, "mark"))
    commands.ledger.keep(ReportedResult({}), command.command_id)
    commands.withdraw(command.command_id)
    assert commands.kept() == []


async def test_command_at_work_here_is_not_one_of_another_gateway() -> None:
    command = bolt(1)
    commands = elsewhere(command)
    await commands.learn(identifier_of(command, "mark"))
    commands.ledger.keep(ReportedResult({}), command.command_id)
    commands.ledger.current = command.command_id
    assert commands.kept() == []


@pytest.mark.parametrize(
    ("command", "waited", "is_further", "expected"),
    [
        (bolt(1), ANSWER_SECONDS, False, True),
        (bolt(1), ANSWER_SECONDS - 0.1, False, False),
        (bolt(1), ANSWER_SECONDS, True, False),
        (bolt(1, classification="batch"), ANSWER_SECONDS, False, False),
    ],
)
def test_single_result_is_answered_here_after_its_time(
    command: Command, waited: float, *, is_further: bool, expected: bool
) -> None:
    kept = KeptResult(ReportedResult({}, received=100.0), command.command_id, is_further)
    assert is_answered_here(kept, command, 100.0 + waited) is expected

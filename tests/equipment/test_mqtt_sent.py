"""The open commands that equipment may have received."""

from msgspec.structs import replace

from edge.equipment.mqtt import SentCommands
from edge.sfc.signal import Phase
from edge.station.equipment import Command

COMMAND = Command("J1/R/a/1", Phase.START, "t.v1", "station-1", "J1", "c", "a", 1, {})


class _Connection:
    number = 1


def test_command_is_sent_until_the_next_connection() -> None:
    sent_commands = SentCommands(lambda: _Connection.number)
    sent_commands.begin(COMMAND.command_id, Phase.START)
    assert sent_commands.is_sent(COMMAND)
    sent_commands.end(COMMAND.command_id, Phase.START, delivered=True)
    assert sent_commands.is_sent(COMMAND)
    assert not sent_commands.is_sent(replace(COMMAND, phase=Phase.RESET))
    _Connection.number += 1
    assert not sent_commands.is_sent(COMMAND)


def test_command_without_subscriber_is_undelivered_until_its_answer() -> None:
    sent_commands = SentCommands(lambda: 1)
    sent_commands.begin(COMMAND.command_id, Phase.START)
    sent_commands.end(COMMAND.command_id, Phase.START, delivered=False)
    assert sent_commands.is_undelivered(COMMAND.command_id)
    assert not sent_commands.is_sent(COMMAND)
    sent_commands.forget(COMMAND.command_id)
    assert not sent_commands.is_undelivered(COMMAND.command_id)


def test_command_unconfirmed_by_the_broker_may_be_delivered() -> None:
    sent_commands = SentCommands(lambda: 1)
    sent_commands.begin(COMMAND.command_id, Phase.START)
    sent_commands.end(COMMAND.command_id, Phase.START, delivered=None)
    assert not sent_commands.is_sent(COMMAND)
    assert not sent_commands.is_undelivered(COMMAND.command_id)


def test_unconfirmed_start_after_one_without_subscriber_may_be_delivered() -> None:
    sent_commands = SentCommands(lambda: 1)
    for delivered in (False, None):
        sent_commands.begin(COMMAND.command_id, Phase.START)
        sent_commands.end(COMMAND.command_id, Phase.START, delivered=delivered)
    assert not sent_commands.is_undelivered(COMMAND.command_id)


def test_commands_count_as_unsent_after_the_equipment_returns() -> None:
    sent_commands = SentCommands(lambda: 1)
    sent_commands.begin(COMMAND.command_id, Phase.START)
    sent_commands.forget_all()
    assert not sent_commands.is_sent(COMMAND)


def test_start_without_subscriber_after_unconfirmed_may_be_delivered() -> None:
    sent_commands = SentCommands(lambda: 1)
    for delivered, expected in ((False, False), (None, True), (False, True)):
        sent_commands.begin(COMMAND.command_id, Phase.START)
        sent_commands.end(COMMAND.command_id, Phase.START, delivered=delivered)
        assert sent_commands.may_be_delivered(COMMAND.command_id, Phase.START) is expected
    sent_commands.forget(COMMAND.command_id)
    assert not sent_commands.may_be_delivered(COMMAND.command_id, Phase.START)

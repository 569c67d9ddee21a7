"""What is known of a tool beyond one connection."""

from edge.equipment.result_ledger import ReportedResult
from edge.features.openprotocol.reports import decode_memory, remembered
from edge.features.openprotocol.state import ToolState
from tests.equipment.strict_controller import bolt


def test_restart_continues_before_the_first_unsettled_result() -> None:
    state, report = ToolState(), ReportedResult(payload={}, result_id="7", sequence=7)
    assert state.durable_number is None
    state.numbers.last = 9
    state.ledger.keep(report, "J1")
    assert state.durable_number == 6
    state.ledger.settle(state.ledger.parts("J1"))
    assert state.durable_number == 9


def test_kept_result_is_remembered_until_it_is_confirmed() -> None:
    state, report = ToolState(), ReportedResult(payload={}, result_id="7", sequence=7, frame="digest")
    state.note(report, "J1")
    memory = decode_memory(state.memory)
    assert [(remembered_result.sequence, remembered_result.command_id) for remembered_result in memory.unsettled] == [
        (7, "J1")
    ]
    state.confirm(report)
    memory = decode_memory(state.memory)
    assert (memory.unsettled, memory.last) == ((), remembered(report))


def test_command_with_invalid_parameters_expects_nothing() -> None:
    state = ToolState()
    state.remember(bolt(1, parameter_set="many"), "mark")
    assert state.ledger.marks == {}
    state.remember(bolt(1), "mark")
    assert list(state.ledger.marks.values()) == [bolt(1).command_id]

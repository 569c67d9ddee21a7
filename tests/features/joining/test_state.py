"""The state of a joining system: what its results hold, and the number after which a restart continues."""

from msgspec.structs import replace

from edge.equipment.result_ledger import ReportedResult
from edge.features.joining.state import ControllerState


def report(sequence: int, command_id: str | None = "J1", **payload: object) -> ReportedResult:
    return ReportedResult(payload=payload, result_id=f"R{sequence}", sequence=sequence, command_id=command_id)


def test_restart_continues_before_what_is_unsettled_or_missing() -> None:
    state = ControllerState()
    assert state.position() is None
    state.last = 9
    state.missing.add(5, 5)
    assert state.position() == "9 5..5"
    reported_result = report(7)
    state.ledger.keep(reported_result, "J1")
    assert state.position() == "6 5..5"
    state.ledger.settle(state.ledger.parts("J1"))
    assert state.position() == "9 5..5"
    restarted = ControllerState()
    restarted.restore("9 5..5")
    assert (restarted.last, restarted.restored, restarted.missing.numbers) == (9, 9, {5})


def test_numbers_that_begin_again_are_no_longer_missing() -> None:
    state = ControllerState()
    state.restore("9 5..5")
    state.advance(2)
    assert state.position() == "2"


def test_joinings_within_a_result_belong_to_its_command_only() -> None:
    state = ControllerState()
    state.hold("J1", [report(9, ResultContent=[{"ResultMetaData": {"ResultId": "R7"}}])])
    assert state.is_held(report(7))
    assert not state.is_held(replace(report(7), command_id="J2"))


def test_skipped_result_is_counted_and_its_id_remembered() -> None:
    state = ControllerState()
    for result_id in ("R1", ""):
        state.skip(result_id)
    assert (state.skipped, list(state.skipped_ids)) == (2, ["R1"])

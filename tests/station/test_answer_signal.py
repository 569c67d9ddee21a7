"""Answers as signals, and the results that they hold."""

from typing import Any

import pytest

from edge.sfc.signal import Answer, Unknown
from edge.station.answer_signal import error_of, holds_result, is_result, signal_of
from edge.station.equipment import EquipmentAnswer, OutcomeUnknown


def test_result_beyond_the_limit_is_a_failure() -> None:
    signal = signal_of(EquipmentAnswer("J1/r/a/1", data={"text": "x" * 300_000}))
    assert isinstance(signal, Answer)
    assert (signal.ok, signal.data, is_result(signal)) == (False, None, False)
    assert "its result is too large" in str(signal.error)


def test_unknown_outcome_has_its_reason() -> None:
    unknown = OutcomeUnknown("J1/r/a/1", "it was cut off")
    assert (signal_of(unknown), error_of(unknown)) == (Unknown("J1/r/a/1", "it was cut off"), "it was cut off")


BATCH = {"result_id": "N6", "results": {"1": {"result_id": "N1"}, "2": {"results": {"1": {"result_id": "N2"}}}}}


@pytest.mark.parametrize(
    ("data", "result_id", "held"),
    [(BATCH, "N6", True), (BATCH, "N1", True), (BATCH, "N2", True), (BATCH, "N3", False), ("N6", "N6", False)],
    ids=["itself", "joining", "spindle", "another", "no object"],
)
def test_result_is_found_within_the_result_that_holds_it(data: Any, result_id: str, *, held: bool) -> None:
    assert holds_result(data, result_id) is held

"""Tests of the results of the simulated controller."""

from datetime import datetime
from typing import Any, cast

from edge.features.joining.simulated.results import (
    INTERVENTION,
    NOT_OK,
    OK,
    JoiningProcesses,
    StoredResults,
    content,
    meta_data,
)

AT = datetime(2026, 1, 2)  # noqa: DTZ001 - instants of OPC UA are UTC without a time zone


def test_torque_is_near_its_target_or_beyond_its_limit() -> None:
    for evaluation, within in ((OK, True), (NOT_OK, False)):
        torque, angle = content(85.0, evaluation)["OverallResultValues"]
        assert (torque["LowLimit"] <= torque["MeasuredValue"] <= torque["HighLimit"]) is within
        assert (torque["ResultEvaluation"], angle["ResultEvaluation"]) == (evaluation, OK)


def test_result_names_the_failed_step() -> None:
    assert "FailureReason" not in content(85.0, OK)
    failed = content(85.0, NOT_OK)
    assert (failed["FailureReason"], failed["FailingStepResultId"]) == (1, "S2")


def test_intervention_is_not_a_completed_result() -> None:
    meta = meta_data(3, "P1", [{"EntityId": "a"}], AT, evaluation=NOT_OK, classification=INTERVENTION)
    assert (meta["ResultState"], meta["Classification"], meta["SequenceNumber"]) == (3, 6, 3)
    assert meta["AssociatedEntities"] == [{"EntityId": "a"}]


def test_counters_are_reported_within_a_batch_only() -> None:
    processes = JoiningProcesses((), {})
    assert (processes.counters(), processes.is_complete) == ([], False)
    processes.size, processes.counter = 2, 2
    assert [counter["CounterValue"] for counter in processes.counters()] == [2, 2]
    assert processes.is_complete
    processes.clear()
    assert (processes.size, processes.counter) == (1, 0)


async def test_cleared_store_continues_its_sequence_numbers() -> None:
    store = StoredResults(cast("Any", None), cast("Any", None))
    store.add(store.next_number(), "T1", {})
    assert store.last == 1
    store.clear()
    assert store.next_number() == 2
    assert len(store.methods()) == 6

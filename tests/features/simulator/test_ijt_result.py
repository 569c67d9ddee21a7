"""Tests of the results of the simulated controller."""

from datetime import datetime

from edge.features.simulator.ijt_result import INTERVENTION, NOT_OK, OK, content, meta_data

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

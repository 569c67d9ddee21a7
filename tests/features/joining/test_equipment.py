"""A tightening controller fulfils the equipment contract, with any set of optional methods."""

from functools import partial
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from edge.features.joining.simulated.controller import JoiningController
from edge.features.joining.simulated.results import INTERVENTION, NOT_OK
from edge.station.equipment import EquipmentAnswer, Repetition
from tests.conftest import WaitUntil
from tests.equipment.contract import WORK, Contract, Opener
from tests.equipment.tightening import answered, begun, equipped

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]


class TestIjtContract(Contract):
    repetition = Repetition.ONCE


class TestIjtRepeatableContract(Contract):
    """The setting of those who want a joining with an unknown outcome to be started again."""

    @pytest.fixture
    def opener(self, controller: JoiningController, wait_until: WaitUntil) -> Opener:
        return partial(equipped, controller, wait_until, repetition="repeatable")


class TestIjtLockedContract(Contract):
    """The tool is enabled for a command only."""

    repetition = Repetition.ONCE

    @pytest.fixture
    def opener(self, controller: JoiningController, wait_until: WaitUntil) -> Opener:
        return partial(equipped, controller, wait_until, lock="on")


async def test_result_contains_torque_and_angle_with_their_units(opener: Opener, wait_until: WaitUntil) -> None:
    async with opener() as bench:
        data = (await answered(bench, wait_until)).data
    assert {name: data[name] for name in ("evaluation", "torque", "angle", "violations")} == {
        "evaluation": "OK",
        "torque": {"value": 85.2, "unit": "N·m"},
        "angle": {"value": 41.5, "unit": "°"},
        "violations": {},
    }
    assert list(data["steps"]) == ["Rundown", "Final"]
    assert msgspec.json.encode(data)


async def test_a_joining_that_is_not_ok_is_a_result_with_its_violations(
    opener: Opener, controller: JoiningController, wait_until: WaitUntil
) -> None:
    async with opener() as bench:
        await begun(bench, wait_until)
        await controller.end_joining(NOT_OK)
        await wait_until(lambda: bench.station.answers)
    (answer,) = bench.station.answers
    assert answer.error is None
    assert (answer.data["evaluation"], answer.data["failure_reason"]) == ("NotOK", "program")
    assert answer.data["violations"]["Torque"] == {
        "measured": {"value": 102.0, "unit": "N·m"},
        "low": {"value": 76.5, "unit": "N·m"},
        "high": {"value": 93.5, "unit": "N·m"},
        "target": {"value": 85.0, "unit": "N·m"},
        "violation": "High",
    }


async def test_identifiers_of_a_job_replace_the_previous_ones(
    opener: Opener, controller: JoiningController, wait_until: WaitUntil
) -> None:
    async with opener() as bench:
        controller.identifiers = [{"Name": "JobOrderID", "EntityId": "J0", "EntityType": 25}]
        parameters = {"joining_process_id": "P1", "vin": "WDB1", "identifiers": {"Cell": 7}}
        await bench.equipment.send(replace(WORK, parameters=parameters))
        await wait_until(lambda: bench.device.begun)
        sent = {
            (identifier["Name"], identifier["EntityId"], identifier["EntityType"])
            for identifier in controller.identifiers
        }
    assert sent == {
        ("CommandID", WORK.command_id, 31),
        ("JobOrderID", "J1", 25),
        ("VIN", "WDB1", 20),
        ("Cell", "7", 1),
    }


@pytest.mark.parametrize(
    "missing",
    [
        ("StartJoiningProcess",),
        ("StartSelectedJoining", "SelectJoiningProcess"),
        ("EnableAsset", "ResetIdentifiers", "GetIdentifiers"),
        ("SendIdentifiers", "StartJoiningProcess"),
        ("GetLatestResult", "RequestResults", "RequestUnacknowledgedResults", "AcknowledgeResults"),
    ],
)
async def test_controller_with_missing_methods_completes_the_command(
    opener: Opener, controller: JoiningController, wait_until: WaitUntil, missing: tuple[str, ...]
) -> None:
    async with controller.without(*missing), opener() as bench:
        controller.enabled = True
        answer = await answered(bench, wait_until)
    assert answer.error is None
    assert controller.begun == ["P1 85Nm"]


@pytest.mark.parametrize(
    ("missing", "parameters", "reason"),
    [
        (
            ("StartJoiningProcess", "SelectJoiningProcess"),
            {"joining_process_id": "P1"},
            "the controller has no method to select a joining process",
        ),
        (
            ("StartJoiningProcess", "SendIdentifiers", "SendTextIdentifiers"),
            {},
            "the controller takes no identifiers: its results could not be distinguished",
        ),
        ((), {"identifiers": "SN-7"}, "the parameter identifiers has to be an object: names and identifiers"),
        ((), {}, "StartSelectedJoining: no joining process is selected"),
    ],
)
async def test_command_without_required_methods_fails_with_the_reason(
    opener: Opener,
    controller: JoiningController,
    wait_until: WaitUntil,
    missing: tuple[str, ...],
    parameters: dict[str, Any],
    reason: str,
) -> None:
    async with controller.without(*missing), opener() as bench:
        await bench.equipment.send(replace(WORK, parameters=parameters))
        await wait_until(lambda: bench.station.answers)
    assert bench.station.answers == [EquipmentAnswer(WORK.command_id, error=reason)]


async def test_joining_can_be_started_by_the_trigger_of_the_tool(
    opener: Opener, controller: JoiningController, wait_until: WaitUntil
) -> None:
    async with opener() as bench:
        await bench.equipment.send(replace(WORK, parameters={"selection_name": "P2 20Nm", "start": False}))
        await wait_until(lambda: controller.selected)
        await controller.end_joining()
        await wait_until(lambda: bench.station.answers)
    assert controller.begun == []
    assert bench.station.answers[0].data["torque"] == {"value": 20.0, "unit": "N·m"}


async def test_a_joining_that_an_operator_ended_fails_the_command(
    opener: Opener, controller: JoiningController, wait_until: WaitUntil
) -> None:
    async with opener() as bench:
        await begun(bench, wait_until)
        await controller.end_joining(NOT_OK, INTERVENTION)
        await wait_until(lambda: bench.station.answers)
    assert bench.station.answers[0].error == "the joining did not come to its end: Aborted"


async def test_stop_locks_the_tool_of_a_controller_without_abort(
    opener: Opener, controller: JoiningController, wait_until: WaitUntil
) -> None:
    async with controller.without("AbortJoiningProcess"), opener() as bench:
        await begun(bench, wait_until)
        await bench.equipment.stop(WORK)
        assert controller.stopped == ["P1 85Nm"]
        assert not controller.enabled

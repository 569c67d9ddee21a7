"""The simulated controller: the operator triggers the tool once each time it is enabled; faults and power cuts."""

from datetime import datetime, timedelta

import pytest

from edge.features.openprotocol.protocol.trace import TORQUE, parse_curve
from edge.features.openprotocol.simulated.controller import (
    AWAY_SECONDS,
    OpenProtocolFault,
    TighteningController,
    open_openprotocol_controller,
)
from edge.features.openprotocol.simulated.messages import curve_of
from edge.features.openprotocol.simulated.server import DeclineError
from tests.conftest import WaitUntil


async def test_enabled_tool_is_triggered_once() -> None:
    async with open_openprotocol_controller(delay=None) as controller:
        controller.set_identifier("A")
        controller.select_parameter_set(3)
        controller.enable()
        controller.enable()
        controller.end_tightening()
        controller.enable()
        assert (controller.begun, controller.finished) == (["A"], ["A"])
        assert controller.results[1]["torque"] == 85.2
        controller.disable()
        controller.enable()
        controller.disable()
        assert (controller.begun, controller.stopped) == (["A", "A"], ["A"])


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        (OpenProtocolFault.NONE, [1]),
        (OpenProtocolFault.NOK, [0]),
        (OpenProtocolFault.ALARM, []),
        (OpenProtocolFault.RESTART, []),
        (OpenProtocolFault.DISCONNECT, [1]),
        (OpenProtocolFault.UNREPORTED, [1]),
    ],
)
async def test_each_simulated_fault_has_its_effect(
    fault: OpenProtocolFault, outcome: list[int], wait_until: WaitUntil
) -> None:
    async with open_openprotocol_controller(delay=0.01) as controller:
        controller.fault = fault
        controller.enable()
        await wait_until(lambda: controller.results or not controller.enabled, AWAY_SECONDS + 10)
        assert [result["status"] for result in controller.results.values()] == outcome
        assert bool(controller.alarm) is (fault is OpenProtocolFault.ALARM)


def prepared(controller: TighteningController) -> None:
    controller.select_job(1)
    controller.set_identifier("A")
    controller.enable()
    controller.end_tightening()


async def test_only_results_survive_a_power_cut() -> None:
    async with open_openprotocol_controller(delay=None) as controller:
        prepared(controller)
        controller.forget()
        assert (controller.enabled, controller.identifier, controller.parameter_set, controller.job) == (
            False,
            "",
            0,
            0,
        )
        assert [*controller.results] == [1]
        controller.clear()
        assert controller.results == {}


async def test_request_for_an_unknown_item_is_declined() -> None:
    async with open_openprotocol_controller() as controller:
        for attempt in (
            lambda: controller.select_parameter_set(99),
            lambda: controller.select_job(99),
            lambda: controller.describe(99),
            lambda: controller.set_time(None),
            controller.abort_job,
        ):
            with pytest.raises(DeclineError):
                attempt()
        controller.break_down()
        with pytest.raises(DeclineError):
            controller.enable()
        controller.clear_alarm()
        controller.enable()


async def test_clock_can_be_set() -> None:
    start = datetime(2026, 5, 1, 12)  # noqa: DTZ001 - the local time of a controller
    async with open_openprotocol_controller(now=lambda: start) as controller:
        controller.set_time(start + timedelta(minutes=5))
        assert controller.time == start + timedelta(minutes=5)


def test_curve_ends_with_the_value_of_its_result() -> None:
    at = datetime(2026, 5, 1, 12)  # noqa: DTZ001 - the local time of a controller
    curve = parse_curve(curve_of({"result": 7, "time": at, "torque": 85.2, "angle": 42}, TORQUE, 2000))
    assert (len(curve.values), curve.values[0], round(curve.values[-1], 2)) == (2000, 0.0, 85.2)

"""Subscriptions, and the curves of a result."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from structlog.testing import capture_logs

from edge.features.openprotocol.protocol.frame import MidFrame
from edge.features.openprotocol.protocol.mids import Mid
from edge.features.openprotocol.simulated.controller import (
    OpenProtocolFault,
    TighteningController,
    open_openprotocol_controller,
)
from tests.conftest import WaitUntil
from tests.equipment.contract import WORK
from tests.equipment.recording_station import RecordingStation
from tests.equipment.tightening_controller import attached, connected, tightened

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def controller() -> AsyncIterator[TighteningController]:
    """A controller that sends curves of 2,000 points and ends no tightening by itself."""
    async with open_openprotocol_controller(delay=None, points=2000, link_layer=False) as running:
        yield running


async def test_result_has_its_curves_of_torque_and_angle(
    controller: TighteningController, wait_until: WaitUntil
) -> None:
    async with connected(controller, wait_until, traces="on") as bench:
        data = (await tightened(bench, wait_until, parameter_set=3)).data
        received = controller.server.received
        await wait_until(lambda: len([mid_frame for mid_frame in received if mid_frame.mid == Mid.ACCEPTED]) > 2)
    channels = {channel["name"]: channel for channel in data["trace"]["channels"]}
    sizes = {name: (channel["unit"], len(channel["values"])) for name, channel in channels.items()}
    assert sizes == {"Torque": ("N·m", 2000), "Angle": ("°", 2000)}
    assert channels["Torque"]["values"][-1] == pytest.approx(data["torque"]["value"])
    acknowledged = [mid_frame for mid_frame in received if mid_frame.mid == Mid.ACCEPTED]
    assert [mid_frame.data for mid_frame in acknowledged] == [b"0901", b"0900", b"0900"]
    assert sorted(data["plot"].values()) == ["76.5", "93.5"]


async def test_unreadable_curve_is_recorded_and_the_result_is_kept(
    controller: TighteningController, wait_until: WaitUntil
) -> None:
    async with connected(controller, wait_until, traces="on") as bench:
        controller.server.send_raw(MidFrame(Mid.TRACE, b"0000000001 no time"))
        await wait_until(lambda: bench.station.refused)
        assert (await tightened(bench, wait_until, parameter_set=3)).error is None


async def test_controller_without_curves_delays_no_result(
    controller: TighteningController, wait_until: WaitUntil
) -> None:
    async with connected(controller, wait_until) as bench:
        data = (await tightened(bench, wait_until, parameter_set=3)).data
    assert "trace" not in data


async def test_result_of_several_spindles_contains_each_of_them(
    controller: TighteningController, wait_until: WaitUntil
) -> None:
    async with connected(controller, wait_until, spindles="several") as bench:
        controller.fault = OpenProtocolFault.NOK
        data = (await tightened(bench, wait_until, parameter_set=3)).data
        await wait_until(lambda: controller.acknowledged == [1])
    assert (data["evaluation"], data["result_id"]) == ("NotOK", "1")
    assert {name: result["evaluation"] for name, result in data["results"].items()} == {"1": "OK", "2": "NotOK"}
    assert data["results"]["2"]["torque"] == {"value": 102.0, "unit": "N·m"}
    assert Mid.RESULT_ACKNOWLEDGE not in {mid_frame.mid for mid_frame in controller.server.received}


async def test_selection_by_another_system_is_an_event(controller: TighteningController, wait_until: WaitUntil) -> None:
    named = {"parameter_set": "com.example.set.v1", "job": "com.example.job.v1"}
    async with connected(controller, wait_until, events=named) as bench:
        assert (await tightened(bench, wait_until, parameter_set=3)).error is None
        controller.select_parameter_set(2)
        await wait_until(lambda: bench.station.events)
        controller.select_job(1)
        controller.select_job(2)
        await wait_until(lambda: len(bench.station.events) > 1)
        received = controller.server.received
        mids = {Mid.PARAMETER_SET_ACKNOWLEDGE, Mid.JOB_ACKNOWLEDGE}
        await wait_until(lambda: mids <= {mid_frame.mid for mid_frame in received})
    events = [(event.type_id, event.data) for event in bench.station.events]
    assert events == [("com.example.set.v1", {"parameter_set": 2}), ("com.example.job.v1", {"job": 2})]


async def test_unreadable_plot_is_recorded_and_acknowledged(
    controller: TighteningController, wait_until: WaitUntil
) -> None:
    async with connected(controller, wait_until, traces="on") as bench:
        for data in (b"0000000001", b"0000000001" + b" " * 19 + b"001" + b"02111999F 0010000", b"\xff" * 40):
            controller.server.send_raw(MidFrame(Mid.TRACE_PARAMETERS, data))
        await wait_until(lambda: len(bench.station.refused) == 3)
        received = controller.server.received
        await wait_until(
            lambda: [mid_frame.data for mid_frame in received if mid_frame.mid == Mid.ACCEPTED] == [b"0901"] * 3
        )


async def test_tool_that_another_system_locks_during_a_command_is_a_problem(
    controller: TighteningController, wait_until: WaitUntil
) -> None:
    """It is named while the tool is locked; the command continues when it is enabled again."""
    async with connected(controller, wait_until) as bench:
        await bench.equipment.send(WORK)
        await wait_until(lambda: bench.device.begun)
        await wait_until(lambda: bench.equipment.problem == "")
        controller.disable()
        await wait_until(lambda: "the tool is locked at the controller" in str(bench.equipment.problem))
        controller.enable()
        await wait_until(lambda: bench.equipment.problem == "")
        await bench.device.finish()
        await wait_until(lambda: bench.station.answers)
        await wait_until(lambda: not controller.enabled)
        assert bench.equipment.problem == ""
    assert Mid.RELAY_ACKNOWLEDGE in {mid_frame.mid for mid_frame in controller.server.received}


async def test_own_disabling_of_the_tool_is_not_a_lock_by_another_system(
    controller: TighteningController, wait_until: WaitUntil
) -> None:
    """The controller reports the lock before it accepts our message."""
    with capture_logs() as logs:
        async with connected(controller, wait_until) as bench:
            received = controller.server.received
            await wait_until(lambda: Mid.RELAY_ACKNOWLEDGE in [mid_frame.mid for mid_frame in received])
            assert (await tightened(bench, wait_until, parameter_set=3)).error is None
            await wait_until(lambda: [mid_frame.mid for mid_frame in received].count(Mid.RELAY_ACKNOWLEDGE) == 3)
    assert "tool locked at the controller" not in [entry["event"] for entry in logs]


@pytest.mark.parametrize(("supplier", "lock", "asked"), [("ACT", "on", 1), ("ACT", "off", 0), ("ATG", "on", 0)])
async def test_only_makes_that_report_the_lock_are_asked_for_it(
    wait_until: WaitUntil, supplier: str, lock: str, asked: int
) -> None:
    """A controller from another vendor may have another table of relay functions."""
    async with (
        open_openprotocol_controller(delay=None, supplier=supplier) as other,
        connected(other, wait_until, lock=lock),
    ):
        # The tool is read after all subscriptions.
        await wait_until(lambda: Mid.TOOL in [mid_frame.mid for mid_frame in other.server.received])
        assert [mid_frame.mid for mid_frame in other.server.received].count(Mid.RELAY_SUBSCRIBE) == asked


async def test_controller_without_the_relay_function_works_as_before(
    controller: TighteningController, wait_until: WaitUntil
) -> None:
    controller.clear()
    controller.server.missing.add(Mid.RELAY_SUBSCRIBE)
    async with attached(controller, wait_until, RecordingStation()) as bench:
        assert (await tightened(bench, wait_until, parameter_set=3)).error is None
    controller.server.missing.clear()

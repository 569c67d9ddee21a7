"""Results that were missed while disconnected are requested; one without an answer costs no other."""

import pytest
from msgspec.structs import replace

from edge.features.openprotocol.device import OpenProtocolTimes
from edge.features.openprotocol.protocol.session import SessionTimes
from tests.conftest import WaitUntil
from tests.equipment.recording_station import RecordingStation
from tests.equipment.strict_controller import attached, bolt, completed
from tests.outside.devices.openprotocol_controller import StrictController, open_strict_controller
from tests.outside.devices.openprotocol_tool import Habits

TIMES = OpenProtocolTimes(SessionTimes(connect=10.0, answer=0.5), poll=0.2, curves=5.0, pause=0.05, again=0.5)


def own_bolts(controller: StrictController, count: int, *, time: str = "") -> None:
    """Tighten as the operator does; `time` overwrites the dates of the results."""
    for _ in range(count):
        controller.tool.tighten(vin="OWN")
        if time:
            controller.tool.results[-1]["time"] = time


def numbers(station: RecordingStation) -> list[int]:
    return sorted(int(result.data["result_id"]) for result in station.late_results)


async def test_unanswered_old_result_costs_this_result_only(wait_until: WaitUntil) -> None:
    station = RecordingStation()
    async with open_strict_controller() as controller, attached(controller, station, times=TIMES) as bench:
        await wait_until(lambda: bench.equipment.connected and 64 in controller.mids())
        own_bolts(controller, 1)
        await wait_until(lambda: numbers(station) == [1])
        async with controller.unplugged():
            controller.quirks.unanswered_results = frozenset({4})
            own_bolts(controller, 4)
        await wait_until(lambda: numbers(station) == [1, 2, 3, 5])
        assert (await completed(bench, wait_until, bolt(1)))["vin"] == "J1"
        controller.quirks.unanswered_results = frozenset()
        await wait_until(lambda: numbers(station) == [1, 2, 3, 4, 5])
        assert (controller.connections, controller.violations) == (2, [])


async def test_bolts_at_a_controller_without_results_survive_a_kill(wait_until: WaitUntil) -> None:
    """A new controller: the gateway was connected before its first bolts, and away during them."""
    station = RecordingStation()
    async with open_strict_controller() as controller:
        async with attached(controller, station, times=TIMES) as bench:
            await wait_until(lambda: bench.equipment.connected and 64 in controller.mids())
        own_bolts(controller, 3)
        async with attached(controller, station, times=TIMES):
            await wait_until(lambda: numbers(station) == [1, 2, 3])


async def test_late_answers_are_not_taken_for_those_of_other_results(wait_until: WaitUntil) -> None:
    station = RecordingStation()
    async with open_strict_controller() as controller, attached(controller, station, times=TIMES) as bench:
        await wait_until(lambda: bench.equipment.connected and 64 in controller.mids())
        own_bolts(controller, 1)
        await wait_until(lambda: numbers(station) == [1])
        async with controller.unplugged():
            # The answer for 7 comes while that for 6 is awaited.
            controller.quirks.late_results = {7: 0.8, 6: 0.4}
            own_bolts(controller, 7)
        await wait_until(lambda: numbers(station) == list(range(1, 9)))
        assert (controller.connections, controller.violations) == (2, [])


async def test_controller_that_answers_no_old_result_is_used(wait_until: WaitUntil) -> None:
    station = RecordingStation()
    async with open_strict_controller() as controller:
        controller.quirks.unanswered = frozenset({64})
        async with attached(controller, station, times=TIMES) as bench:
            await wait_until(lambda: bench.equipment.connected)
            for n in range(2):
                assert (await completed(bench, wait_until, bolt(n)))["vin"] == f"J{n}"
            assert (controller.connections, controller.violations) == (1, [])


@pytest.mark.parametrize("count", [2, 3, 5])
async def test_results_are_complete_when_numbers_begin_again(wait_until: WaitUntil, count: int) -> None:
    """The controller was reset while disconnected: its last number is below the last one, equal to it, or beyond it."""
    station = RecordingStation()
    async with (
        open_strict_controller(habits=Habits(dates="one second")) as controller,
        attached(controller, station, times=TIMES) as bench,
    ):
        await wait_until(lambda: bench.equipment.connected and 64 in controller.mids())
        own_bolts(controller, 3)
        await wait_until(lambda: numbers(station) == [1, 2, 3])
        async with controller.unplugged():
            controller.tool.results.clear()
            own_bolts(controller, count, time="2026-11-26:13:00:00")
        await wait_until(lambda: numbers(station) == sorted([1, 2, 3, *range(1, count + 1)]))
        assert (controller.connections, controller.violations) == (2, [])


async def test_lower_number_without_a_date_is_a_new_result(wait_until: WaitUntil) -> None:
    """Only the latest one is known to be new: those before it may be older than the last number."""
    station = RecordingStation()
    async with (
        open_strict_controller(habits=Habits(dates="zeros")) as controller,
        attached(controller, station, times=TIMES) as bench,
    ):
        await wait_until(lambda: bench.equipment.connected and 64 in controller.mids())
        own_bolts(controller, 3)
        await wait_until(lambda: numbers(station) == [1, 2, 3])
        async with controller.unplugged():
            controller.tool.results.clear()
            controller.tool.pset = 2
            own_bolts(controller, 2)
        await wait_until(lambda: numbers(station) == [1, 2, 2, 3])


async def test_gaps_of_an_earlier_connection_wait_for_the_subscription(wait_until: WaitUntil) -> None:
    """A controller that answers slowly was asked for them first, while the next bolt came unheard."""
    station, times = RecordingStation(), replace(TIMES, again=300.0)
    async with open_strict_controller() as controller, attached(controller, station, times=times) as bench:
        await wait_until(lambda: bench.equipment.connected and 64 in controller.mids())
        own_bolts(controller, 1)
        await wait_until(lambda: numbers(station) == [1])
        async with controller.unplugged():
            controller.quirks.unanswered_results = frozenset({4})
            own_bolts(controller, 4)
        await wait_until(lambda: numbers(station) == [1, 2, 3, 5])
        before = len(controller.mids())
        async with controller.unplugged():
            pass
        await wait_until(lambda: 64 in controller.mids()[before:])
        assert controller.mids()[before:][:4] == [1, 42, 60, 64]

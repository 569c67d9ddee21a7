"""A batch is OK only with all its bolts; each confirmed bolt is reported once, also after a restart or a reset."""

import pytest
from msgspec.structs import replace

from edge.features.openprotocol.device import OpenProtocolTimes
from edge.features.openprotocol.protocol.session import SessionTimes
from tests.conftest import WaitUntil
from tests.equipment.crashing_station import DurableStation
from tests.equipment.strict_controller import attached, bolt, memory_at, strict
from tests.outside.devices.openprotocol_controller import StrictController, open_strict_controller
from tests.outside.devices.openprotocol_quirks import Quirks
from tests.outside.devices.openprotocol_tool import Habits

BATCH = bolt(1, batch_size=3, classification="batch")
QUICK = OpenProtocolTimes(SessionTimes(connect=10.0, answer=0.5), poll=0.2, curves=5.0, pause=0.05, again=0.5)
SLOW = OpenProtocolTimes(SessionTimes(connect=10.0, answer=8.0), poll=0.2, curves=5.0)


async def begin(controller: StrictController, station: DurableStation, wait_until: WaitUntil) -> None:
    """Tighten the first bolt of a batch, and end the gateway when it is confirmed."""
    async with attached(controller, station, times=QUICK) as bench:
        await wait_until(lambda: bench.equipment.connected)
        await bench.equipment.send(BATCH)
        await wait_until(lambda: controller.tool.enabled)
        controller.tool.tighten()
        await wait_until(lambda: controller.acknowledged == [1])
    station.unanswered = [replace(BATCH, begun=True)]


@pytest.mark.parametrize(
    "quirks", [Quirks(refused={64: 99}), Quirks(greeting={"supplier": "CET"})], ids=["declined", "make CET"]
)
async def test_bolt_confirmed_before_a_kill_is_in_its_batch(quirks: Quirks, wait_until: WaitUntil) -> None:
    """The controller has no old results: what was confirmed is in the memory of the gateway only."""
    station = DurableStation()
    async with open_strict_controller(quirks, Habits(absent=True)) as controller:
        await begin(controller, station, wait_until)
        async with attached(controller, station, times=QUICK) as bench:
            await wait_until(lambda: bench.equipment.connected)
            for _ in range(2):
                controller.tool.tighten()
            await wait_until(lambda: station.answers)
            await wait_until(lambda: station.memory[memory_at(controller)].get("unsettled_results:edge", "[]") == "[]")
        data = station.answers[0].data
        assert (data["evaluation"], data["counts"]) == ("OK", {"ok": 3, "not_ok": 0})
        assert [result["batch"]["counter"] for result in data["results"].values()] == [1, 2, 3]
        assert (station.late_results, controller.acknowledged, controller.violations) == ([], [1, 2, 3], [])


async def test_batch_whose_bolts_are_missing_is_never_ok(wait_until: WaitUntil) -> None:
    """The last bolt is known by revision 1 of MID 0065, without the size of its batch; the others are not answered."""
    station, quirks = DurableStation(), Quirks(newest_result=1)
    async with open_strict_controller(quirks, Habits(absent=True)) as controller:
        await begin(controller, station, wait_until)
        for _ in range(2):
            controller.tool.tighten()
        quirks.unanswered_results = frozenset({1, 2})
        async with attached(controller, station, times=QUICK):
            await wait_until(lambda: station.unknown)
            assert "1 of its results have not come" in str(station.unknown[0].reason)
            quirks.unanswered_results = frozenset()
            await wait_until(lambda: len(station.late_results) == 3)
        assert sorted(result.data["result_id"] for result in station.late_results) == ["1", "2", "3"]
        assert {result.command_id for result in station.late_results} == {BATCH.command_id}
        assert (station.answers, controller.violations) == ([], [])


async def test_last_bolt_after_a_time_limit_takes_the_first_ones_along(wait_until: WaitUntil) -> None:
    """The tool is not disabled yet: two bolts are kept for the batch, the third one comes when nothing waits."""
    station = DurableStation()
    async with strict(wait_until, habits=Habits(absent=True), station=station) as bench:
        controller = bench.controller
        await bench.equipment.send(BATCH)
        await wait_until(lambda: controller.tool.enabled)
        for n in (1, 2):
            controller.tool.tighten()
            await wait_until(lambda n=n: len(controller.acknowledged) == n)
        station.stopped_meanwhile.add(BATCH.command_id)
        controller.tool.tighten()
        await wait_until(lambda: station.answers and len(controller.acknowledged) == 3)
        await wait_until(lambda: station.memory[memory_at(controller)].get("unsettled_results:edge", "[]") == "[]")
        assert [answer.data["counts"] for answer in station.answers] == [{"ok": 3, "not_ok": 0}]
        assert (station.late_results, controller.violations) == ([], [])


@pytest.mark.parametrize("resends", [True, False])
async def test_bolts_after_the_end_of_a_batch_are_late(wait_until: WaitUntil, *, resends: bool) -> None:
    """Without a gateway the tool stays enabled after the third bolt; the newest bolt is heard first."""
    station = DurableStation()
    async with open_strict_controller(Quirks(resends=resends), Habits(absent=True)) as controller:
        await begin(controller, station, wait_until)
        for _ in range(5):
            controller.tool.tighten()
        async with attached(controller, station, times=QUICK):
            await wait_until(lambda: station.answers and len(station.late_results) == 3)
        assert [result["result_id"] for result in station.answers[0].data["results"].values()] == ["1", "2", "3"]
        assert sorted(result.data["result_id"] for result in station.late_results) == ["4", "5", "6"]
        assert (station.unknown, controller.violations) == ([], [])


@pytest.mark.parametrize("bolts", [2, 5], ids=["the rest", "more than the rest"])
async def test_bolts_without_a_mark_during_a_cut_are_in_their_batch(wait_until: WaitUntil, bolts: int) -> None:
    """The last bolt is heard first on the new connection; those before it belong to the batch, too."""
    station = DurableStation()
    async with (
        open_strict_controller(Quirks(), Habits(absent=True)) as controller,
        attached(controller, station, times=QUICK, correlation="next") as bench,
    ):
        await wait_until(lambda: bench.equipment.connected)
        station.unanswered = [BATCH]
        await bench.equipment.send(BATCH)
        await wait_until(lambda: controller.tool.enabled)
        controller.tool.tighten()
        await wait_until(lambda: controller.acknowledged == [1])
        async with controller.unplugged():
            for _ in range(bolts):
                controller.tool.tighten()
        await wait_until(lambda: station.answers and len(station.late_results) == bolts - 2)
        assert [result["result_id"] for result in station.answers[0].data["results"].values()] == ["1", "2", "3"]
        assert (station.unknown, controller.tool.enabled, controller.violations) == ([], False, [])


async def test_live_bolts_are_confirmed_while_missing_ones_are_awaited(wait_until: WaitUntil) -> None:
    station = DurableStation()
    async with open_strict_controller(Quirks(), Habits(absent=True)) as controller:
        await begin(controller, station, wait_until)
        controller.quirks.unanswered = frozenset({64})
        async with attached(controller, station, times=SLOW) as bench:
            await wait_until(lambda: bench.equipment.connected)
            for _ in range(2):
                controller.tool.tighten()
            await wait_until(lambda: controller.acknowledged == [1, 2, 3], 3.0)
            assert station.answers == []

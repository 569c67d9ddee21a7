"""Every tightening counts once: results against the physical log of a strict controller."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from edge.features.openprotocol.device import OpenProtocolTimes
from edge.station.equipment import Command
from tests.conftest import WaitUntil
from tests.equipment.recording_station import RecordingStation
from tests.equipment.strict_controller import TIMES, StrictBench, attached, bolt, completed
from tests.outside.devices import openprotocol_frames as frames
from tests.outside.devices.openprotocol_controller import open_strict_controller
from tests.outside.devices.openprotocol_quirks import Quirks
from tests.outside.devices.openprotocol_tool import Habits

ABSENT = Habits(absent=True)
NUMBERS = ["zero", "restart", "repeat", "rising"]
DATES = ["true", "zeros", "blank", "year 1", "year 9999", "30 February", "one second"]


class Plant(RecordingStation):
    """A station that knows which commands still wait, as the store does."""

    async def is_outstanding(self, command_id: str) -> bool:
        ended = {answer.command_id for answer in self.answers} | {
            outcome_unknown.command_id for outcome_unknown in self.unknown
        }
        return command_id not in ended and command_id not in self.stopped_meanwhile


@asynccontextmanager
async def plant(
    wait_until: WaitUntil,
    quirks: Quirks | None = None,
    habits: Habits | None = None,
    times: OpenProtocolTimes = TIMES,
    **keys: Any,
) -> AsyncIterator[StrictBench]:
    """Open a controller and the equipment at it, for a station that knows its commands."""
    async with (
        open_strict_controller(quirks, habits) as controller,
        attached(controller, Plant(), times=times, **keys) as bench,
    ):
        await wait_until(lambda: bench.equipment.connected)
        yield bench


def counted(bench: StrictBench) -> int:
    """Return how many tightenings the station has, as answers or as late results."""
    return len([answer for answer in bench.station.answers if answer.data]) + len(bench.station.late_results)


def torques(bench: StrictBench) -> list[float]:
    data = [answer.data for answer in bench.station.answers if answer.data]
    data += [result.data for result in bench.station.late_results]
    return sorted(value["torque"]["value"] for value in data)


async def begun(bench: StrictBench, wait_until: WaitUntil, command: Command) -> None:
    bench.station.unanswered = [command]
    await bench.equipment.send(command)
    await wait_until(lambda: bench.controller.tool.enabled)


@pytest.mark.parametrize("correlation", ["mark", "next"])
@pytest.mark.parametrize(("numbers", "dates"), [(number, "zeros") for number in NUMBERS] + [("zero", d) for d in DATES])
async def test_each_tightening_counts_whatever_its_number_and_date(
    wait_until: WaitUntil, numbers: str, dates: str, correlation: str
) -> None:
    habits = Habits(numbers=numbers, dates=dates, reaction=0.0, work=0.01)
    async with plant(wait_until, None, habits, correlation=correlation) as bench:
        for n in range(4):
            data = await completed(bench, wait_until, bolt(n))
            assert data["evaluation"] == "OK"
        made = [int(result["torque"]) / 100 for result in bench.controller.tool.results]
        await wait_until(lambda: len(bench.controller.acknowledged) == len(made))
    assert torques(bench) == sorted(made)
    assert bench.station.late_results == []


@pytest.mark.parametrize("numbers", NUMBERS)
@pytest.mark.parametrize("dates", ["true", "zeros", "one second"])
async def test_second_result_of_a_command_is_kept_as_late(wait_until: WaitUntil, numbers: str, dates: str) -> None:
    """The operator pulls the trigger again before the tool is disabled."""
    async with plant(wait_until, None, Habits(numbers=numbers, dates=dates, absent=True)) as bench:
        await begun(bench, wait_until, bolt(1))
        bench.controller.tool.tighten()
        bench.controller.tool.tighten()
        await wait_until(lambda: len(bench.controller.acknowledged) == 2)
        await wait_until(lambda: counted(bench) == 2)
    (answer,) = bench.station.answers
    assert answer.data["torque"] == {"value": 85.0, "unit": "N·m"}
    assert [result.command_id for result in bench.station.late_results] == [answer.command_id]


@pytest.mark.parametrize("correlation", ["mark", "next"])
async def test_result_of_another_parameter_set_leaves_the_action_waiting(
    wait_until: WaitUntil, correlation: str
) -> None:
    async with plant(wait_until, None, ABSENT, correlation=correlation) as bench:
        await begun(bench, wait_until, bolt(1))
        tool = bench.controller.tool
        tool.pset = 4
        tool.tighten()
        await wait_until(lambda: bench.station.late_results)
        (late,) = bench.station.late_results
        assert (late.command_id, bench.station.answers) == (bolt(1).command_id, [])
        assert late.reason == "its program is not the commanded one: parameter set 4 instead of 3"
        assert tool.enabled
        tool.pset = 3
        tool.tighten()
        await wait_until(lambda: bench.station.answers)
    assert bench.station.answers[0].data["parameter_set"] == 3


@pytest.mark.parametrize("link", [True, False])
async def test_batch_has_the_bolt_whose_message_was_lost(wait_until: WaitUntil, *, link: bool) -> None:
    async with plant(wait_until, Quirks(link=link), times=replace(TIMES, poll=60.0)) as bench:
        tool = bench.controller.tool
        publish = tool.on_result

        def lose_the_second(values: dict[str, int | str]) -> None:
            if len(tool.results) != 2:
                publish(values)

        tool.on_result = lose_the_second
        data = await completed(bench, wait_until, bolt(1, batch_size=3, classification="batch"))
        assert len(tool.entries("pulled")) == len(data["results"]) == 3
        assert data["counts"] == {"ok": 3, "not_ok": 0}
        assert bench.station.late_results == []
        await wait_until(lambda: not tool.enabled)


@pytest.mark.parametrize("header", [b"0200", b"  02", b"0102"])
async def test_result_of_another_station_or_spindle_is_unsolicited(wait_until: WaitUntil, header: bytes) -> None:
    async with plant(wait_until, None, ABSENT) as bench:
        await begun(bench, wait_until, bolt(1))
        tool = bench.controller.tool
        tool.on_result, publish = lambda _: None, tool.on_result
        tool.tighten()
        raw = frames.frame(61, frames.result(6, tool.results[-1]), 6)
        await bench.controller.flood(raw[:12] + header + raw[16:])
        await wait_until(lambda: bench.station.late_results)
        (late,) = bench.station.late_results
        assert (late.command_id, bench.station.answers) == (bolt(1).command_id, [])
        assert late.reason == "another station or spindle made it"
        tool.on_result = publish
        tool.tighten()
        await wait_until(lambda: bench.station.answers)


async def test_unacknowledged_result_that_comes_again_after_a_kill_counts_once(wait_until: WaitUntil) -> None:
    """The result is in the inbox, and the gateway is killed before the controller has the acknowledgement."""
    habits, station = Habits(numbers="zero", dates="zeros", absent=True), Plant()

    def is_kept() -> bool:
        names = (name for entry in station.memory.values() for name, text in entry.items() if text)
        return any(name.startswith("unsettled_results:") for name in names)

    async with open_strict_controller(Quirks(resends=True), habits) as controller:
        async with attached(controller, station) as bench:
            await wait_until(lambda: bench.equipment.connected)
            await begun(bench, wait_until, bolt(1))
            controller.quirks.latency = 0.3
            controller.tool.tighten()
            await wait_until(is_kept)
        assert controller.acknowledged == []
        controller.quirks.latency = 0.0
        async with attached(controller, station):
            await wait_until(lambda: controller.acknowledged == [1] and station.answers)
    assert (len(station.answers), station.late_results) == (1, [])


async def test_own_joinings_while_the_gateway_was_down_are_fetched(wait_until: WaitUntil) -> None:
    station = Plant()
    async with open_strict_controller() as controller:
        async with attached(controller, station) as bench:
            await wait_until(lambda: bench.equipment.connected)
            await completed(bench, wait_until, bolt(1))
            await wait_until(lambda: controller.acknowledged)
        for n in range(30):
            controller.tool.tighten(vin=f"OWN{n}")
        async with attached(controller, station, times=replace(TIMES, pause=0.01)) as bench:
            await wait_until(lambda: len(station.late_results) == 30)
    assert sorted(result.data["result_id"] for result in station.late_results) == sorted(map(str, range(2, 32)))


def most_in_a_row(mids: list[int], wanted: int) -> int:
    longest = count = 0
    for mid in mids:
        count = count + 1 if mid == wanted else 0
        longest = max(longest, count)
    return longest


async def test_tool_is_disabled_before_missed_results_are_requested(wait_until: WaitUntil) -> None:
    """477 numbers are missing: 0042 and 0062 come first, then at most twenty requests in a row."""
    async with plant(wait_until, None, Habits(absent=True), replace(TIMES, poll=60.0)) as bench:
        await begun(bench, wait_until, bolt(1))
        tool = bench.controller.tool
        tool.on_result, publish = lambda _: None, tool.on_result
        for n in range(477):
            tool.tighten(vin=f"OWN{n}")
        tool.on_result = publish
        before = len(bench.controller.received)
        tool.tighten()
        await wait_until(lambda: bench.controller.acknowledged)
        await wait_until(lambda: len(bench.station.late_results) >= 20)
    mids = bench.controller.mids()[before:]
    # An optional exchange of the opening may be on its way when the bolt comes.
    assert mids.index(42) < mids.index(64)
    assert most_in_a_row(mids, 64) <= 20
    assert bench.station.answers[0].data["result_id"] == "478"


async def test_tool_is_disabled_within_two_round_trips_of_its_result(wait_until: WaitUntil) -> None:
    """With 300 ms in each direction and a jump of the numbers no second pull works."""
    async with plant(wait_until, None, Habits(absent=True)) as bench:
        await begun(bench, wait_until, bolt(1))
        tool = bench.controller.tool
        tool.results += tool.results or [{"number": n, "vin": "", "time": "", "torque": 0} for n in range(477)]
        bench.controller.quirks.latency = 0.3
        tool.tighten()
        await wait_until(lambda: not tool.enabled)
        (entry,), disabled = tool.entries("tightened"), tool.entries("disabled")[-1]
        assert disabled.at - entry.at < 2.5
        await wait_until(lambda: bench.station.answers)


async def test_requests_stop_after_the_first_missing_results(wait_until: WaitUntil) -> None:
    """A controller whose numbers jumped has none of the results in between."""
    async with plant(wait_until, None, Habits(absent=True)) as bench:
        tool = bench.controller.tool
        tool.tighten(vin="OWN")
        await wait_until(lambda: bench.station.late_results)
        values = tool.results[-1] | {"number": 900}
        tool.results.append(values)
        before = len(bench.controller.received)
        tool.on_result(values)
        await wait_until(lambda: len(bench.station.late_results) == 2)
        await wait_until(lambda: bench.controller.mids()[before:].count(64) == 3)
        await asyncio.sleep(0.3)
    assert bench.controller.mids()[before:].count(64) == 3


async def test_next_with_a_vin_works_at_a_controller_that_refuses_identifiers(wait_until: WaitUntil) -> None:
    async with plant(wait_until, Quirks(refused={50: 42, 51: 99}), correlation="next") as bench:
        for n in range(2):
            assert (await completed(bench, wait_until, bolt(n, vin="WDB1HXQZKRAMPLE")))["vin"] == "WDB1HXQZKRAMPLE"


async def test_next_after_a_kill_is_unknown_and_the_tool_is_disabled_at_once(wait_until: WaitUntil) -> None:
    station = Plant()
    async with open_strict_controller(None, Habits(absent=True)) as controller:
        async with attached(controller, station, correlation="next") as bench:
            await wait_until(lambda: bench.equipment.connected)
            await begun(bench, wait_until, bolt(1))
        assert controller.tool.enabled
        station.unanswered = [replace(bolt(1), begun=True, offered_again=True)]
        async with attached(controller, station, correlation="next") as bench:
            async with asyncio.timeout(1):
                await wait_until(lambda: station.unknown and not controller.tool.enabled)
    assert station.answers == []


@pytest.mark.parametrize("correlation", ["mark", "next"])
async def test_lost_connection_without_identifiers_of_the_controller_is_unknown(
    wait_until: WaitUntil, correlation: str
) -> None:
    """Nothing shows whether the tool still works for the command: it is disabled."""
    quirks = Quirks(refused={51: 99})
    async with plant(wait_until, quirks, Habits(absent=True), correlation=correlation) as bench:
        await begun(bench, wait_until, bolt(1, vin=""))
        async with bench.controller.unplugged():
            pass
        await wait_until(lambda: bench.station.unknown)
        await wait_until(lambda: not bench.controller.tool.enabled)
    assert bench.station.answers == []


@pytest.mark.parametrize("correlation", ["mark", "next"])
async def test_bolt_of_a_lost_connection_is_found_by_its_number(wait_until: WaitUntil, correlation: str) -> None:
    quirks = Quirks(refused={51: 99})
    async with plant(wait_until, quirks, Habits(absent=True), correlation=correlation) as bench:
        await begun(bench, wait_until, bolt(1))
        async with bench.controller.unplugged():
            bench.controller.tool.tighten()
        await wait_until(lambda: bench.station.answers)
        await wait_until(lambda: not bench.controller.tool.enabled)
    assert (bench.station.answers[0].error, bench.station.late_results) == (None, [])


GARBAGE = frames.frame(61, "not a result", 1)


async def test_result_that_cannot_be_read_and_not_requested_is_unknown(wait_until: WaitUntil) -> None:
    async with plant(wait_until, Quirks(refused={64: 99}), Habits(absent=True)) as bench:
        await begun(bench, wait_until, bolt(1))
        await bench.controller.flood(GARBAGE)
        await wait_until(lambda: bench.station.unknown)
        assert not bench.controller.tool.enabled
    assert "cannot be read" in str(bench.station.unknown[0].reason)


async def test_result_that_cannot_be_read_is_requested_as_an_old_one(wait_until: WaitUntil) -> None:
    async with plant(wait_until, None, Habits(absent=True)) as bench:
        await begun(bench, wait_until, bolt(1))
        tool = bench.controller.tool
        tool.on_result = lambda _: None
        tool.tighten()
        await bench.controller.flood(GARBAGE)
        await wait_until(lambda: bench.station.answers)
    assert (bench.station.answers[0].error, bench.station.unknown) == (None, [])


async def test_stop_after_the_time_limit_disables_the_tool(wait_until: WaitUntil) -> None:
    async with plant(wait_until, None, Habits(absent=True), correlation="next") as bench:
        await begun(bench, wait_until, bolt(1))
        bench.station.stopped_meanwhile.add(bolt(1).command_id)
        await bench.equipment.stop(bolt(1))
        assert not bench.controller.tool.enabled
        bench.controller.tool.tighten()
        await wait_until(lambda: bench.station.late_results)
    assert bench.station.answers == []


async def test_unanswered_disable_does_not_hold_the_result_back(wait_until: WaitUntil) -> None:
    async with plant(wait_until, Quirks(), Habits(absent=True)) as bench:
        await begun(bench, wait_until, bolt(1))
        bench.controller.quirks.unanswered = frozenset({42})
        bench.controller.tool.tighten()
        await wait_until(lambda: bench.station.answers)
    assert bench.station.answers[0].error is None


class SlowPlant(Plant):
    """A station whose store keeps nothing until it has `resumed`."""

    def __init__(self) -> None:
        super().__init__()
        self.resumed = asyncio.Event()
        self.resumed.set()

    async def remember(self, equipment: str, texts: Mapping[str, str]) -> None:
        await self.resumed.wait()
        await super().remember(equipment, texts)


async def test_tool_is_disabled_while_the_store_keeps_a_result_waiting(wait_until: WaitUntil) -> None:
    """With the link layer a result is made durable before it is confirmed; the operator pulls again meanwhile."""
    station = SlowPlant()
    async with (
        open_strict_controller(Quirks(link=True), Habits(absent=True)) as controller,
        attached(controller, station) as bench,
    ):
        await wait_until(lambda: bench.equipment.connected)
        await begun(bench, wait_until, bolt(1))
        station.resumed.clear()
        controller.tool.tighten()
        await wait_until(lambda: not controller.tool.enabled)
        assert station.answers == []
        station.resumed.set()
        await wait_until(lambda: station.answers)
    assert (len(station.answers), station.late_results) == (1, [])

"""Tightening at the strict controller, written from the specification; its physical log is the truth."""

import tracemalloc

import pytest
from msgspec.structs import replace

from edge.features.openprotocol.conversion import identifier_of
from edge.features.openprotocol.makes import MAKES
from edge.features.openprotocol.protocol.mids import Mid
from edge.model.equipment_traffic import TrafficKind
from tests.conftest import WaitUntil
from tests.equipment.recording_station import RecordingStation
from tests.equipment.strict_controller import TIMES, attached, bolt, completed, strict
from tests.outside.devices.openprotocol_controller import open_strict_controller
from tests.outside.devices.openprotocol_quirks import Quirks
from tests.outside.devices.openprotocol_tool import Habits


async def test_jobs_at_a_strict_controller_violate_nothing(wait_until: WaitUntil) -> None:
    async with strict(wait_until) as bench:
        for n in range(3):
            data = await completed(bench, wait_until, bolt(n))
            assert (data["evaluation"], data["vin"]) == ("OK", f"J{n}")
        tool = bench.controller.tool
        await wait_until(lambda: len(bench.controller.acknowledged) == 3 and not tool.enabled)
        assert [entry.vin[:2] for entry in tool.entries("tightened")] == ["J0", "J1", "J2"]
        assert bench.controller.violations == []


@pytest.mark.parametrize("error", [0, 4, 99])
async def test_batch_works_at_a_controller_with_and_without_mid_0020(wait_until: WaitUntil, error: int) -> None:
    quirks = Quirks(refused={20: error} if error else {})
    async with strict(wait_until, quirks, Habits(not_ok=frozenset({2}))) as bench:
        data = await completed(bench, wait_until, bolt(1, batch_size=3, classification="batch"))
        assert data["counts"] == {"ok": 3, "not_ok": 1}
        assert bench.controller.violations == []


async def test_result_without_a_usable_date_is_not_lost(wait_until: WaitUntil) -> None:
    """Zeros, blanks, the ends of the calendar and 30 February: each bolt answers its command, no date raises."""
    for dates in ("zeros", "blank", "year 1", "year 9999", "30 February", "one second"):
        async with strict(wait_until, habits=Habits(dates=dates, numbers="zero")) as bench:
            for n in range(2):
                data = await completed(bench, wait_until, bolt(n))
                assert (data["evaluation"], data["vin"]) == ("OK", f"J{n}"), dates
            await wait_until(lambda bench=bench: len(bench.controller.acknowledged) == 2)
            assert bench.station.late_results == []


async def test_frames_in_pieces_at_a_slow_controller_are_read(wait_until: WaitUntil) -> None:
    async with strict(wait_until, Quirks(pieces=7, latency=0.05, points=50), traces="on") as bench:
        assert (await completed(bench, wait_until, bolt(1)))["evaluation"] == "OK"
        assert bench.controller.violations == []


@pytest.mark.parametrize("link", [False, True])
async def test_result_of_two_spindles_answers_its_command(wait_until: WaitUntil, *, link: bool) -> None:
    """MID 0101, with the number of a synchronized tightening; each is confirmed once."""
    async with strict(wait_until, Quirks(spindles=2, link=link), spindles="several") as bench:
        for n in range(2):
            data = await completed(bench, wait_until, bolt(n))
            assert {name: result["evaluation"] for name, result in data["results"].items()} == {"1": "OK", "2": "OK"}
        await wait_until(lambda: bench.controller.acknowledged == [1, 2])
        assert bench.controller.violations == []


async def test_two_gateways_at_one_controller_work_in_turn(wait_until: WaitUntil) -> None:
    """Each sees the results of the other: these are not answers of its own commands."""
    async with (
        open_strict_controller() as controller,
        attached(controller) as strict_bench,
        attached(controller) as other,
    ):
        await wait_until(lambda: strict_bench.equipment.connected and other.equipment.connected)
        for n, bench in enumerate((strict_bench, other, strict_bench)):
            data = await completed(bench, wait_until, bolt(n))
            assert data["vin"] == f"J{n}"
        pulled = [entry.vin[:2] for entry in controller.tool.entries("pulled")]
        assert pulled == ["J0", "J1", "J2"]
        assert [answer.command_id for answer in (*strict_bench.station.answers, *other.station.answers)] == [
            bolt(n).command_id for n in (0, 2, 1)
        ]
        assert controller.violations == []


async def test_controller_that_is_not_the_first_station_answers_its_commands(wait_until: WaitUntil) -> None:
    """All its headers name station 3, also that of its greeting: a port for each station."""
    async with strict(wait_until, Quirks(station=3)) as bench:
        assert (await completed(bench, wait_until, bolt(1)))["vin"] == "J1"
        assert (bench.station.late_results, bench.controller.violations) == ([], [])


MEGABYTE = 1 << 20
RESULT_FRAME = b"00700061001         " + b"x" * 50 + b"\0"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"A" * MEGABYTE, "is not a number"),
        (b"\0" * MEGABYTE, "without a message"),
        (b"9999" + b"A" * MEGABYTE, "is not a number"),
        (b"99990061001         " + b"A" * MEGABYTE, "is not a number"),
        (b"00210061001       92" + b"x\0" * MEGABYTE, "part 2 of MID 0061 came, expected part 1"),
        (RESULT_FRAME * (4 * MEGABYTE // len(RESULT_FRAME)), ""),
        (b"00209999001         \0" * 20_000, ""),
    ],
)
async def test_flooding_controller_is_bounded_and_its_tool_is_disabled(
    wait_until: WaitUntil, data: bytes, reason: str
) -> None:
    """Memory stays bounded, the connection ends with the reason, and the next one disables the tool."""
    async with strict(wait_until) as bench:
        tool = bench.controller.tool
        await wait_until(lambda: Mid.DISABLE_TOOL in bench.controller.mids())
        # Enabled by another system while no command is at work.
        tool.habits.absent = True
        tool.enable()
        tracemalloc.start()
        try:
            await bench.controller.flood(data)
            if reason:
                await wait_until(lambda: not bench.equipment.connected or bench.controller.connections > 1)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 20 * MEGABYTE
        if reason:
            traffic = bench.station.traffic
            await wait_until(lambda: any(kind is TrafficKind.LOST and reason in text for kind, text in traffic))
            await wait_until(lambda: not tool.enabled)
        tool.habits.absent = False
        await wait_until(lambda: bench.equipment.connected)
        # The flood may end this connection, too: the store offers the command to the next one.
        bench.station.unanswered = [bolt(1)]
        assert (await completed(bench, wait_until, bolt(1)))["evaluation"] == "OK"
        await wait_until(lambda: not tool.enabled)


async def test_flood_during_a_command_leaves_its_result(wait_until: WaitUntil) -> None:
    async with strict(wait_until, habits=Habits(work=0.3)) as bench:
        tool = bench.controller.tool
        bench.station.unanswered = [replace(bolt(1), begun=True, offered_again=True)]
        await bench.equipment.send(bolt(1))
        await wait_until(lambda: tool.entries("pulled"))
        await bench.controller.flood(b"A" * MEGABYTE)
        await wait_until(lambda: bench.station.answers)
        assert bench.station.answers[0].data["evaluation"] == "OK"
        await wait_until(lambda: not tool.enabled)
        assert len(tool.entries("pulled")) == 1


@pytest.mark.parametrize("supplier", [*MAKES, "   ", "XYZ"])
async def test_each_make_works_at_a_strict_controller(wait_until: WaitUntil, supplier: str) -> None:
    """By its supplier code: a bolt, and a batch with one bolt done again."""
    quirks = Quirks(greeting={"supplier": supplier})
    async with strict(wait_until, quirks, Habits(not_ok=frozenset({3}))) as bench:
        assert (await completed(bench, wait_until, bolt(1)))["evaluation"] == "OK"
        data = await completed(bench, wait_until, bolt(2, batch_size=3, classification="batch"))
        assert data["counts"] == {"ok": 3, "not_ok": 1}
        await wait_until(lambda: not bench.controller.tool.enabled)
        assert bench.controller.violations == []


@pytest.mark.parametrize("numbers", ["zero", "restart", "repeat"])
@pytest.mark.parametrize("correlation", ["mark", "next"])
async def test_peculiar_numbers_of_results_lose_no_bolt(wait_until: WaitUntil, numbers: str, correlation: str) -> None:
    quirks = Quirks(refused={50: 8} if correlation == "next" else {})
    # Without a mark, a number that is not greater needs a later second.
    habits = Habits(numbers=numbers, work=1.1 if correlation == "next" and numbers != "zero" else 0.1)
    async with strict(wait_until, quirks, habits, correlation=correlation) as bench:
        for n in range(4):
            assert (await completed(bench, wait_until, bolt(n)))["vin"] == f"J{n}"
        await wait_until(lambda: bench.controller.acknowledged == [1, 2, 3, 4])
        assert len(bench.controller.tool.entries("pulled")) == 4
        assert (bench.station.late_results, bench.controller.violations) == ([], [])


@pytest.mark.parametrize("size", [1, 3])
async def test_result_is_heard_while_the_identifier_is_unknown(wait_until: WaitUntil, size: int) -> None:
    """After a reconnect, with a controller that reports no identifier: the tool stayed enabled for five seconds."""
    batch = {"batch_size": size, "classification": "batch"} if size > 1 else {}
    begun, station = replace(bolt(1, **batch), begun=True), RecordingStation()
    station.unanswered, station.begun = [begun], [begun.command_id]
    async with open_strict_controller(habits=Habits(absent=True)) as controller:
        tool = controller.tool
        tool.pset, tool.batch_size, tool.vin = 3, size, identifier_of(begun, "mark")
        tool.enable()
        async with attached(controller, station, times=replace(TIMES, poll=600.0)) as bench:
            await wait_until(lambda: bench.equipment.connected and Mid.IDENTIFIER_SUBSCRIBE in controller.mids())
            for _ in range(size):
                assert tool.enabled
                tool.tighten()
            await wait_until(lambda: not tool.enabled, deadline=10.0)
            await wait_until(lambda: len(controller.acknowledged) == size and station.answers, deadline=10.0)
        assert [answer.error for answer in station.answers] == [None]
        assert controller.violations == []

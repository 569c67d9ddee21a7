"""Tightening at the strict controller, written from the specification; its physical log is the truth."""

import pytest

from tests.conftest import WaitUntil
from tests.outside.devices.openprotocol_controller import open_strict_controller
from tests.outside.devices.openprotocol_quirks import Quirks
from tests.outside.devices.openprotocol_tool import Habits
from tests.southbound.strict_controller import attached, bolt, completed, strict


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
            assert {name: each["evaluation"] for name, each in data["results"].items()} == {"1": "OK", "2": "OK"}
        await wait_until(lambda: bench.controller.acknowledged == [1, 2])
        assert bench.controller.violations == []


async def test_two_gateways_at_one_controller_work_in_turn(wait_until: WaitUntil) -> None:
    """Each sees the results of the other: these are no answers of its own commands."""
    async with open_strict_controller() as controller, attached(controller) as one, attached(controller) as other:
        await wait_until(lambda: one.equipment.connected and other.equipment.connected)
        for n, bench in enumerate((one, other, one)):
            data = await completed(bench, wait_until, bolt(n))
            assert data["vin"] == f"J{n}"
        pulled = [entry.vin[:2] for entry in controller.tool.entries("pulled")]
        assert pulled == ["J0", "J1", "J2"]
        assert [each.command_id for each in (*one.station.answers, *other.station.answers)] == [
            bolt(n).command_id for n in (0, 2, 1)
        ]
        assert controller.violations == []

"""Tightening at the strict controller, written from the specification; its physical log is the truth."""

from tests.conftest import WaitUntil
from tests.outside.devices.openprotocol_tool import Habits
from tests.southbound.strict_controller import bolt, completed, strict


async def test_jobs_at_a_strict_controller_violate_nothing(wait_until: WaitUntil) -> None:
    async with strict(wait_until) as bench:
        for n in range(3):
            data = await completed(bench, wait_until, bolt(n))
            assert (data["evaluation"], data["vin"]) == ("OK", f"J{n}")
        tool = bench.controller.tool
        await wait_until(lambda: len(bench.controller.acknowledged) == 3 and not tool.enabled)
        assert [entry.vin[:2] for entry in tool.entries("tightened")] == ["J0", "J1", "J2"]
        assert bench.controller.violations == []


async def test_batch_of_bolts_is_answered_at_a_strict_controller(wait_until: WaitUntil) -> None:
    async with strict(wait_until, habits=Habits(not_ok=frozenset({2}))) as bench:
        data = await completed(bench, wait_until, bolt(1, batch_size=3, classification="batch"))
        assert data["counts"] == {"ok": 3, "not_ok": 1}
        assert bench.controller.violations == []

"""Results are read one by one; one that cannot be read, or is too large, does not hide the others."""

from typing import Any, cast

import pytest
from msgspec.structs import replace

from edge.features.joining.methods import IjtMethods, from_both_ends, latest_result, listed_ids
from edge.features.joining.simulated.controller import JoiningController
from edge.foundation.errors import Refused
from tests.conftest import WaitUntil
from tests.equipment.contract import WORK
from tests.equipment.tightening import begun, equipped

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

LIMIT = 100_000
NEXT = replace(WORK, command_id=WORK.command_id.replace("/1", "/2"), attempt=2)


class Listing:
    """A controller that lists these ids; it records the arguments of the call."""

    def __init__(self, ids: list[str]) -> None:
        self.ids = ids
        self.arguments: tuple[Any, ...] = ()

    def __contains__(self, name: object) -> bool:
        return name != "ReleaseResultHandle"

    async def call_result_method(self, _name: str, *arguments: Any, output_count: int) -> list[Any]:
        self.arguments = arguments
        return [0, self.ids][:output_count]


async def test_newest_id_is_first_at_either_end_of_the_list() -> None:
    assert from_both_ends(["a", "b", "c", "d", "e"]) == ["e", "a", "d", "b", "c"]
    assert from_both_ends([]) == []


async def test_all_results_are_listed_without_a_limit() -> None:
    """With the limit of 100, a controller that lists the oldest first hid every result after the hundredth."""
    listing = Listing([f"T{number}" for number in range(150)])
    ids = await listed_ids(cast("IjtMethods", listing))
    assert (len(ids), ids[0], listing.arguments[2]) == (150, "T149", 0)


@pytest.mark.parametrize("kind", ["too_large", "device"])
async def test_only_a_latest_result_that_is_too_large_is_an_error(kind: str) -> None:
    class Declining(Listing):
        async def call_result_method(self, _name: str, *_arguments: Any, output_count: int) -> list[Any]:
            raise Refused(kind, f"{output_count} outputs")

    methods = cast("IjtMethods", Declining([]))
    if kind == "device":
        assert await latest_result(methods) is None
        return
    with pytest.raises(Refused):
        await latest_result(methods)


@pytest.mark.parametrize("missing", [(), ("GetLatestResult",), ("GetIdentifiers",), ("GetResultIdListFiltered",)])
async def test_result_over_the_size_limit_does_not_block_the_controller(
    controller: JoiningController, wait_until: WaitUntil, missing: tuple[str, ...]
) -> None:
    """Before, the connection ended at such a result, and at each further one when the result came again."""
    async with (
        controller.without(*missing),
        equipped(controller, wait_until, max_message_bytes=LIMIT) as bench,
    ):
        await begun(bench, wait_until)
        controller.points = 20_000
        await controller.end_joining()
        controller.points = 0
        await wait_until(lambda: bench.station.unknown)
        await bench.equipment.send(NEXT)
        await wait_until(lambda: len(controller.begun) == 2)
        await controller.end_joining()
        await wait_until(lambda: bench.station.answers)
        large, small = controller.store.ids[-2:]
        assert (bench.equipment.connection_count, bench.station.answers[0].data["result_id"]) == (1, small)
    assert "max_message_bytes" in str(bench.station.unknown[0].reason)
    skipped = [(refused.kind, refused.event_id) for refused in bench.station.refused]
    assert skipped == [("too_large", "" if "GetResultIdListFiltered" in missing else large)]
    assert large not in controller.acknowledged


async def test_large_result_is_read_with_a_higher_limit(controller: JoiningController, wait_until: WaitUntil) -> None:
    async with equipped(controller, wait_until, max_message_bytes=8 << 20) as bench:
        await begun(bench, wait_until)
        controller.points = 20_000
        await controller.end_joining()
        controller.points = 0
        await wait_until(lambda: bench.station.answers)
    assert (bench.station.answers[0].error, bench.station.refused) == (None, [])


async def test_many_results_that_are_large_together_are_collected(
    controller: JoiningController, wait_until: WaitUntil
) -> None:
    """A server puts many notifications into one message: together they exceeded the limit on each connection."""
    async with equipped(controller, wait_until, max_message_bytes=LIMIT) as bench:
        await begun(bench, wait_until)
        bench.station.unanswered = [WORK]
        controller.points = 3_000
        async with bench.device.cut_off():
            await controller.end_joining()
            for _ in range(9):
                await controller.end_joining()
        controller.points = 0
        await wait_until(lambda: bench.station.answers)
        await wait_until(lambda: len(bench.station.late_results) == 9)
    assert (bench.station.answers[0].error, bench.station.refused) == (None, [])

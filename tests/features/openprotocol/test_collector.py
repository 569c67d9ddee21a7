"""Results of a controller are assigned to commands, requested when missed, or reported as late."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from edge.equipment.remembered_text import RememberedText
from edge.equipment.unclaimed import LateResults
from edge.features.openprotocol.collector import LAST_RESULT, TighteningCollector
from edge.features.openprotocol.conversion import TighteningResult, identifier_of
from edge.features.openprotocol.inbox import ResultInbox
from edge.features.openprotocol.protocol.mids import Mid
from edge.features.openprotocol.protocol.session import OpenProtocolSession, open_openprotocol
from edge.features.openprotocol.simulated.controller import TighteningController, open_openprotocol_controller
from edge.features.openprotocol.state import ToolState
from tests.equipment.contract import WORK
from tests.equipment.recording_station import RecordingStation


async def no_event(_: TighteningResult, __: str) -> bool:
    return False


class Collection:
    """A collector on a session with a simulated controller."""

    def __init__(self, controller: TighteningController, session: OpenProtocolSession, **keys: Any) -> None:
        self.controller = controller
        self.station = RecordingStation()
        self.state = ToolState()
        reporter = LateResults("wrench", "station-1", self.station)
        options: dict[str, Any] = {"correlation": "mark", "counts": True, "on_own": no_event} | keys
        memory = RememberedText(self.station, "wrench", LAST_RESULT)
        inbox = ResultInbox(partial(self.station.recall, "wrench"), partial(self.station.remember, "wrench"), "edge")
        self.results = TighteningCollector(session, self.state, reporter, memory, inbox, **options)

    def tighten(self, identifier: str) -> dict[str, Any]:
        """Tighten as an operator does; return the result as a live message has it."""
        self.controller.set_identifier(identifier)
        self.controller.end_tightening()
        return self.live(max(self.controller.results))

    def live(self, number: int) -> dict[str, Any]:
        return self.controller.results[number]


@asynccontextmanager
async def collecting(**keys: Any) -> AsyncIterator[Collection]:
    async with (
        open_openprotocol_controller(delay=None, link_layer=False) as controller,
        open_openprotocol("127.0.0.1", controller.server.port) as session,
    ):
        yield Collection(controller, session, **keys)


async def test_result_belongs_to_the_command_with_its_mark() -> None:
    async with collecting() as collection:
        collection.results.expect(WORK, "")
        await collection.results.handle_live(collection.tighten("OTHER"))
        assert not collection.results.find(WORK)
        await collection.results.handle_live(collection.tighten(identifier_of(WORK, "mark")))
        assert collection.results.find(WORK)
        assert [result.data["identifier"] for result in collection.station.late_results] == ["OTHER"]


async def test_gap_before_a_live_result_is_filled() -> None:
    async with collecting() as collection:
        await collection.results.handle_live(collection.tighten("A"))
        for name in ("B", "C", "D"):
            collection.tighten(name)
        await collection.results.handle_live(collection.live(4))
        await collection.results.fill()
        assert [result.data["identifier"] for result in collection.station.late_results] == ["A", "D", "B", "C"]


async def test_frame_that_is_sent_again_before_its_acknowledgement_counts_once() -> None:
    async with collecting() as collection:
        result = collection.tighten("A")
        sent = {"received": asyncio.get_running_loop().time()}
        await collection.results.handle_live(result | sent)
        await collection.results.handle_live(result | sent)
        await collection.results.catch_up()
        assert len(collection.station.late_results) == 1


async def test_equal_frame_after_the_acknowledgement_is_another_result() -> None:
    async with collecting() as collection:
        result = collection.tighten("A")
        await collection.results.handle_live(result)
        await collection.results.handle_live(result)
        keys = {late_result.key for late_result in collection.station.late_results}
        assert len(keys) == len(collection.station.late_results) == 2


async def test_first_connection_reports_no_earlier_results() -> None:
    async with collecting() as collection:
        for name in ("A", "B"):
            collection.tighten(name)
        await collection.results.catch_up()
        assert (collection.state.numbers.last, collection.station.late_results) == (2, [])


async def test_restarted_result_numbering_of_a_controller_is_followed() -> None:
    async with collecting() as collection:
        collection.state.numbers.last = 900
        collection.tighten("A")
        await collection.results.catch_up()
        assert collection.state.numbers.last == 1
        collection.tighten("B")
        await collection.results.catch_up()
        assert [result.data["identifier"] for result in collection.station.late_results] == ["A", "B"]


async def test_search_finds_the_result_of_a_command_among_others() -> None:
    async with collecting() as collection:
        collection.state.remember(WORK, "mark")
        for name in ("A", identifier_of(WORK, "mark"), "B", "C"):
            collection.tighten(name)
        await collection.results.search(WORK)
        assert collection.results.find(WORK)
        await collection.results.settle(WORK)
        assert not collection.results.find(WORK)


async def test_controller_without_old_results_reports_live_results_only() -> None:
    async with collecting() as collection:
        collection.controller.server.missing = {Mid.OLD_RESULT}
        await collection.results.catch_up()
        await collection.results.search(WORK)
        await collection.results.handle_live(collection.tighten("A"))
        collection.tighten("B")
        await collection.results.handle_live(collection.tighten("C"))
        assert [result.data["identifier"] for result in collection.station.late_results] == ["A", "C"]


async def test_results_without_matching_numbers_are_not_requested_again() -> None:
    async with collecting(counts=False) as collection:
        await collection.results.handle_live(collection.tighten("A"))
        collection.tighten("B")
        await collection.results.handle_live(collection.tighten("C"))
        await collection.results.catch_up()
        assert [result.data["identifier"] for result in collection.station.late_results] == ["A", "C"]


@pytest.mark.parametrize("used", [True, False])
async def test_own_result_not_used_as_an_event_is_late(*, used: bool) -> None:
    offered = []

    async def offer(result: TighteningResult, _: str) -> bool:
        offered.append(result["identifier"])
        return used

    async with collecting(on_own=offer) as collection:
        await collection.results.handle_live(collection.tighten("A"))
        assert (offered, len(collection.station.late_results)) == (["A"], int(not used))


async def test_result_is_acknowledged_once_it_is_durable() -> None:
    async with collecting() as collection:
        collection.results.expect(WORK, "")
        await collection.results.handle_live(collection.tighten(identifier_of(WORK, "mark")))
        assert collection.controller.acknowledged == []
        await collection.results.settle(WORK)
        await collection.results.catch_up()
        assert collection.controller.acknowledged == [1]


async def test_confirmed_result_that_comes_again_on_a_new_connection_counts_once() -> None:
    """The confirmation was lost with the connection: the inbox has the result, and the controller sends it again."""
    async with collecting() as collection:
        result = collection.tighten("A") | {"kept": "key"}
        await collection.results.restore()
        await collection.results.handle_live(result)
        result |= {"confirmed": asyncio.get_running_loop().time()}
        await collection.results.handle_live(result)
        assert len(collection.station.late_results) == 1
        await collection.results.handle_live(result)
        assert len(collection.station.late_results) == 2, (
            "confirmed on this connection: an equal frame is another result"
        )

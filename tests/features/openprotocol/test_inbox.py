"""Results are confirmed when they are durable, also where a controller waits for that before it continues."""

import asyncio
import copy
from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from edge.features.openprotocol.inbox import ResultInbox
from edge.features.openprotocol.protocol.frame import MidFrame
from edge.features.openprotocol.protocol.mids import Mid
from edge.foundation.errors import Unavailable
from edge.station.equipment import EquipmentAnswer, OutcomeUnknown
from tests.conftest import WaitUntil
from tests.equipment.recording_station import RecordingStation
from tests.equipment.strict_controller import StrictBench, attached, bolt, completed, memory_at, strict
from tests.outside.devices.openprotocol_controller import open_strict_controller
from tests.outside.devices.openprotocol_quirks import Quirks
from tests.outside.devices.openprotocol_tool import Habits


class Memory:
    """The memory of equipment; `is_away` makes the store unavailable."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.is_away = False

    async def recall(self) -> Mapping[str, str]:
        return dict(self.texts)

    async def remember(self, texts: Mapping[str, str]) -> None:
        await asyncio.sleep(0)  # the round trip to the store: other tasks run meanwhile
        if self.is_away:
            raise Unavailable("the store is away")
        self.texts |= texts

    def inbox(self, gateway: str = "edge") -> ResultInbox:
        return ResultInbox(self.recall, self.remember, gateway)


async def test_kept_results_are_returned_until_they_are_removed() -> None:
    memory = Memory()
    inbox = memory.inbox()
    assert list(await inbox.unsettled()) == []
    first, second = (MidFrame(Mid.RESULT, data, 3) for data in (b"\xe9 one", b"two"))
    key = await inbox.keep(first)
    assert await inbox.keep(first) == key
    await inbox.keep(second)
    assert list(await inbox.unsettled()) == [first, second]
    later = memory.inbox()
    assert list(await later.unsettled()) == [first, second]
    await later.remove(key)
    await later.remove("unknown")
    assert list(await later.unsettled()) == [second]
    assert list(await memory.inbox().unsettled()) == [second]


async def test_first_result_of_a_process_leaves_those_of_the_earlier_one() -> None:
    """A controller may send its next result while the gateway still subscribes to identifiers and curves."""
    memory = Memory()
    first, second = (MidFrame(Mid.RESULT, data, 3) for data in (b"one", b"two"))
    await memory.inbox().keep(first)
    later = memory.inbox()
    await later.keep(second)
    assert list(await later.unsettled()) == [first, second]


async def test_results_of_another_gateway_are_taken_over_once() -> None:
    memory = Memory()
    first, second, third = (MidFrame(Mid.RESULT, data, 3) for data in (b"one", b"two", b"three"))
    theirs, ours = memory.inbox("other"), memory.inbox()
    await ours.keep(first)
    await theirs.keep(second)
    await ours.take_over()
    assert sorted(await ours.unsettled(), key=lambda mid_frame: mid_frame.data) == [first, second]
    await theirs.take_over()
    assert sorted(await theirs.unsettled(), key=lambda mid_frame: mid_frame.data) == [first, second]
    await theirs.keep(third)
    await ours.take_over()
    assert len(await ours.unsettled()) == 3
    assert list(await memory.inbox("other").unsettled()) == []


async def test_result_removed_without_the_store_does_not_come_again() -> None:
    memory = Memory()
    inbox = memory.inbox()
    key = await inbox.keep(MidFrame(Mid.RESULT, b"one", 3))
    memory.is_away = True
    with pytest.raises(Unavailable):
        await inbox.remove(key)
    assert list(await inbox.unsettled()) == []
    memory.is_away = False
    second = MidFrame(Mid.RESULT, b"two", 3)
    await inbox.keep(second)
    assert list(await memory.inbox().unsettled()) == [second]


async def test_result_kept_while_another_is_removed_stays() -> None:
    memory = Memory()
    inbox = memory.inbox()
    key = await inbox.keep(MidFrame(Mid.RESULT, b"one", 3))
    second = MidFrame(Mid.RESULT, b"two", 3)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(inbox.keep(second))
        tasks.create_task(inbox.remove(key))
    assert list(await memory.inbox().unsettled()) == [second]


async def test_full_inbox_drops_no_result_and_takes_no_further() -> None:
    memory = Memory()
    inbox = memory.inbox()
    keys = [await inbox.keep(MidFrame(Mid.RESULT, str(n).encode())) for n in range(300)]
    assert await inbox.keep(MidFrame(Mid.RESULT, b"0")) == keys[0]
    with pytest.raises(Unavailable, match="300 results are not settled yet"):
        await inbox.keep(MidFrame(Mid.RESULT, b"further"))
    assert len(await memory.inbox().unsettled()) == 300
    await inbox.remove(*keys[1:])
    await inbox.keep(MidFrame(Mid.RESULT, b"further"))
    assert [frame.data for frame in await memory.inbox().unsettled()] == [b"0", b"further"]


async def test_second_gateway_at_a_controller_erases_no_result_of_the_first() -> None:
    memory = Memory()
    first, second = memory.inbox("gw-1"), memory.inbox("gw-2")
    assert not await second.unsettled()
    await first.keep(MidFrame(Mid.RESULT, b"1"))
    key = await second.keep(MidFrame(Mid.RESULT, b"2"))
    await second.remove(key)
    assert [frame.data for frame in await memory.inbox("gw-1").unsettled()] == [b"1"]


@pytest.mark.parametrize("text", ["", "what", "{}", '[["1"]]'])
async def test_damaged_inbox_is_empty(text: str) -> None:
    memory = Memory()
    memory.texts = {"unsettled_results:edge": text}
    assert list(await memory.inbox().unsettled()) == []


async def test_result_without_the_store_is_not_kept() -> None:
    memory = Memory()
    inbox = memory.inbox()
    memory.is_away = True
    with pytest.raises(Unavailable):
        await inbox.keep(MidFrame(Mid.RESULT, b"one"))
    memory.is_away = False
    assert list(await memory.inbox().unsettled()) == []


def confirmed(bench: StrictBench) -> list[int]:
    return bench.controller.acknowledged


@pytest.mark.parametrize("link", [False, True])
async def test_controller_that_waits_for_confirmation_sends_curves(wait_until: WaitUntil, *, link: bool) -> None:
    """Only one message is outstanding (3.2): the curves of a result come when it is confirmed."""
    async with strict(wait_until, Quirks(link=link, points=100), traces="on") as bench:
        for n in range(2):
            data = await completed(bench, wait_until, bolt(n))
            assert [channel["name"] for channel in data["trace"]["channels"]] == ["Angle", "Torque"]
        assert bench.controller.violations == []
        await wait_until(lambda: bench.station.memory[memory_at(bench.controller)]["unsettled_results:edge"] == "[]")


async def test_link_level_needs_no_acknowledgements_of_the_application(wait_until: WaitUntil) -> None:
    """Jobs, a batch and the release of the tool, with sequence numbers and one message outstanding."""
    async with strict(wait_until, Quirks(link=True), Habits(not_ok=frozenset({2}))) as bench:
        data = await completed(bench, wait_until, bolt(1, batch_size=3, classification="batch"))
        assert data["counts"] == {"ok": 3, "not_ok": 1}
        for n in (2, 3):
            assert (await completed(bench, wait_until, bolt(n)))["vin"] == f"J{n}"
        await wait_until(lambda: confirmed(bench) == [1, 2, 3, 4, 5, 6] and not bench.controller.tool.enabled)
        assert bench.controller.violations == []
        assert bench.controller.connections == 1


class StoreAway(RecordingStation):
    """A station that keeps no result, and no answer before `gate` is set."""

    def __init__(self, *, keeps_results: bool) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.keeps_results = keeps_results

    async def remember(self, equipment: str, texts: Mapping[str, str]) -> None:
        if "unsettled_results:edge" in texts and not self.keeps_results:
            raise Unavailable("the store is away")
        await super().remember(equipment, texts)

    async def answer(self, answer: EquipmentAnswer | OutcomeUnknown) -> None:
        await self.gate.wait()
        await super().answer(answer)


async def test_link_level_confirms_a_result_only_when_it_is_durable(wait_until: WaitUntil) -> None:
    """Without confirmation the controller sends the result again, also after it has given up the connection."""
    station, quirks = StoreAway(keeps_results=False), Quirks(link=True, resends=True, ack_seconds=0.5)
    async with open_strict_controller(quirks) as controller, attached(controller, station) as bench:
        await wait_until(lambda: bench.equipment.connected)
        await bench.equipment.send(bolt(1))
        station.unanswered = [replace(bolt(1), begun=True, offered_again=True)]
        await wait_until(lambda: controller.tool.results and not controller.tool.enabled)
        assert controller.acknowledged == []
        station.keeps_results = True
        station.gate.set()
        await wait_until(lambda: station.answers and controller.acknowledged == [1])
        assert controller.violations == []


async def test_confirmed_result_survives_a_restart_before_its_answer(wait_until: WaitUntil) -> None:
    """The controller has no old results: what was confirmed is in the memory of the gateway only."""
    station, command = StoreAway(keeps_results=True), bolt(1)
    async with open_strict_controller(Quirks(link=True, refused={64: 99})) as controller:
        async with attached(controller, station) as bench:
            await wait_until(lambda: bench.equipment.connected)
            await bench.equipment.send(command)
            await wait_until(lambda: controller.acknowledged == [1])
        assert station.answers == []
        station.gate.set()
        station.unanswered = [replace(command, begun=True, offered_again=True)]
        async with attached(controller, station):
            await wait_until(lambda: station.answers)
            assert station.outcomes()[command.command_id]["evaluation"] == "OK"
            await wait_until(lambda: station.memory[memory_at(controller)]["unsettled_results:edge"] == "[]")
        assert len(controller.tool.entries("pulled")) == 1


class OtherStation(RecordingStation):
    """The station of another gateway on the store of a first one."""

    def __init__(self, first: RecordingStation) -> None:
        super().__init__()
        self.memory = first.memory

    @property
    def gateway(self) -> str:
        return "other"


async def test_inbox_of_another_controller_with_the_same_name_is_left(wait_until: WaitUntil) -> None:
    """Two gateways call the tools of their stations `wrench`: the second one to connect takes nothing of the first."""
    station, quirks = StoreAway(keeps_results=True), Quirks(link=True)
    async with (
        open_strict_controller(quirks) as first,
        open_strict_controller(quirks) as second,
        attached(first, station) as bench,
    ):
        await wait_until(lambda: bench.equipment.connected)
        await bench.equipment.send(bolt(1))
        await wait_until(lambda: first.acknowledged == [1])
        memories = copy.deepcopy(station.memory)
        async with attached(second, OtherStation(station)) as other:
            await wait_until(lambda: other.equipment.connected)
            await completed(other, wait_until, bolt(2))
            assert other.station.late_results == []
        assert {name: station.memory[name] for name in memories} == memories

"""Results that their command does not take are reported and acknowledged: stopped, reset, answered before a cut."""

import asyncio
from collections.abc import Mapping

from msgspec.structs import replace

from edge.foundation.errors import Unavailable
from edge.sfc.signal import Phase
from edge.station.equipment import Command, EquipmentAnswer, OutcomeUnknown
from tests.conftest import WaitUntil
from tests.equipment.crashing_station import DurableStation
from tests.equipment.strict_controller import attached, bolt, completed, memory_at, strict
from tests.outside.devices.openprotocol_controller import open_strict_controller
from tests.outside.devices.openprotocol_quirks import Quirks
from tests.outside.devices.openprotocol_tool import Habits

BATCH = bolt(1, batch_size=3, classification="batch")


def stop_of(command: Command) -> Command:
    return replace(command, phase=Phase.STOP, parameters={})


class InboxAway(DurableStation):
    """A station that keeps no result in the inbox, and whose answer is durable when the connection is lost."""

    def __init__(self) -> None:
        super().__init__()
        self.is_answering = False

    async def remember(self, equipment: str, texts: Mapping[str, str]) -> None:
        if "unsettled_results:edge" in texts:
            raise Unavailable("the store is away")
        await super().remember(equipment, texts)

    async def answer(self, answer: EquipmentAnswer | OutcomeUnknown) -> None:
        await super().answer(answer)
        self.is_answering = True
        await asyncio.get_running_loop().create_future()


class SlowStation(DurableStation):
    """A station whose first answer does not come to the store."""

    def __init__(self) -> None:
        super().__init__()
        self.is_answering = False

    async def answer(self, answer: EquipmentAnswer | OutcomeUnknown) -> None:
        if not self.is_answering:
            self.is_answering = True
            await asyncio.get_running_loop().create_future()
        await super().answer(answer)


async def test_single_result_that_came_before_a_stop_is_settled(wait_until: WaitUntil) -> None:
    """The stop cancels the work with the result in memory; the controller sends nothing else until it is confirmed."""
    station = SlowStation()
    async with open_strict_controller() as controller, attached(controller, station) as bench:
        await wait_until(lambda: bench.equipment.connected)
        await bench.equipment.send(bolt(1))
        await wait_until(lambda: station.is_answering)
        station.stopped_meanwhile.add(bolt(1).command_id)
        await bench.equipment.stop(stop_of(bolt(1)))
        await wait_until(lambda: controller.acknowledged == [1])
        assert [(answer.command_id, answer.data["evaluation"]) for answer in station.answers] == [
            (bolt(1).command_id, "OK")
        ]
        assert (await completed(bench, wait_until, bolt(2)))["vin"] == "J2"
        await wait_until(lambda: controller.acknowledged == [1, 2])
        assert (controller.connections, controller.violations, station.late_results) == (1, [], [])


async def test_bolts_of_a_stopped_batch_are_late_and_confirmed(wait_until: WaitUntil) -> None:
    station = DurableStation()
    async with open_strict_controller() as controller, attached(controller, station) as bench:
        await wait_until(lambda: bench.equipment.connected)
        await bench.equipment.send(BATCH)
        await wait_until(lambda: controller.acknowledged)
        controller.tool.habits.absent = True
        station.stopped_meanwhile.add(BATCH.command_id)
        await bench.equipment.stop(stop_of(BATCH))
        count = len(controller.tool.results)
        await wait_until(lambda: len(controller.acknowledged) == count)
        assert {result.command_id for result in station.late_results} == {BATCH.command_id}
        assert (len(station.late_results), station.answers) == (count, [])


async def test_bolts_of_a_batch_that_is_reset_are_settled(wait_until: WaitUntil) -> None:
    """The reset ends the action with an error; what was tightened until then is kept as late results."""
    station = DurableStation()
    async with (
        open_strict_controller(habits=Habits(reaction=0.2)) as controller,
        attached(controller, station) as bench,
    ):
        await wait_until(lambda: bench.equipment.connected)
        await bench.equipment.send(BATCH)
        await wait_until(lambda: controller.acknowledged == [1])
        controller.tool.habits.absent = True
        reset = replace(BATCH, command_id=f"{BATCH.command_id}/reset", phase=Phase.RESET)
        await bench.equipment.reset(reset)
        await wait_until(lambda: len(station.answers) == 2)
        assert station.outcomes() == {
            reset.command_id: {"reset": True},
            BATCH.command_id: "the action was reset before it ended",
        }
        await wait_until(lambda: station.late_results)
        assert [result.command_id for result in station.late_results] == [BATCH.command_id]
        assert not controller.tool.enabled
        # Nothing is unsettled: a restart continues after the last result.
        await wait_until(lambda: '"number":1' in station.memory[memory_at(controller)]["last_result"])


async def test_answered_result_is_confirmed_on_the_next_connection(wait_until: WaitUntil) -> None:
    """The connection is lost between the answer and the confirmation; the controller sends the result again."""
    station = InboxAway()
    async with (
        open_strict_controller(Quirks(resends=True)) as controller,
        attached(controller, station) as bench,
    ):
        await wait_until(lambda: bench.equipment.connected)
        await bench.equipment.send(bolt(1))
        await wait_until(lambda: station.is_answering)
        async with controller.unplugged():
            await wait_until(lambda: not bench.equipment.connected)
            station.stored_results.add("1")
            assert (len(station.answers), controller.acknowledged) == (1, [])
        await wait_until(lambda: controller.acknowledged == [1])
        assert (len(station.answers), station.late_results) == (1, [])
        assert controller.violations == []


async def test_last_bolt_of_a_batch_that_was_given_up_is_not_an_answer(wait_until: WaitUntil) -> None:
    """An answer of the last bolt alone would resolve the unknown outcome of the whole batch."""
    async with strict(wait_until, habits=Habits(reaction=0.3)) as bench:
        station, controller = bench.station, bench.controller
        await bench.equipment.send(BATCH)
        await wait_until(lambda: controller.acknowledged == [1])
        controller.tool.habits.absent = True
        station.stopped_meanwhile.add(BATCH.command_id)
        await bench.equipment.stop(stop_of(BATCH))
        for _ in range(2):
            # The operator had pulled the trigger before the tool was disabled.
            controller.tool.tighten()
        await wait_until(lambda: len(station.late_results) == 3)
        assert {result.command_id for result in station.late_results} == {BATCH.command_id}
        assert station.answers == []

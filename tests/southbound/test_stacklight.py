"""A stack light shows what a recipe says, and its buttons are events of the station."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace

import pytest
import pytest_asyncio

from edge.errors import Unavailable
from edge.sfc.signal import Phase
from edge.southbound.stacklight import StackLight, open_stacklight
from edge.station.equipment import EquipmentAnswer, EquipmentEvent, Task
from tests.conftest import WaitUntil
from tests.southbound.contract import WORK, RecordingStation

START = "com.example.station.start-pressed.v1"


class FakeLines:
    """Lamps and a button on the desk of the test."""

    def __init__(self) -> None:
        self.lit = {"red": False, "green": False}
        self.failure: Unavailable | None = None
        self.presses: asyncio.Queue[str] = asyncio.Queue()

    def switch(self, lamps: Mapping[str, bool]) -> None:
        if self.failure:
            raise self.failure
        self.lit |= lamps

    async def pressed(self) -> str:
        return await self.presses.get()


@pytest.fixture
def lines() -> FakeLines:
    return FakeLines()


@pytest.fixture
def station() -> RecordingStation:
    return RecordingStation()


@pytest_asyncio.fixture
async def light(lines: FakeLines, station: RecordingStation) -> AsyncIterator[StackLight]:
    opened = open_stacklight("light", frozenset(lines.lit), {"start": START}, lines, station, "station-1")
    async with opened as light:
        yield light


async def test_a_command_switches_the_lamps_it_names_and_is_done(
    light: StackLight, lines: FakeLines, station: RecordingStation
) -> None:
    await light.send(replace(WORK, parameters={"green": True, "program": "P1"}))
    assert lines.lit == {"red": False, "green": True}
    assert station.answers == [EquipmentAnswer(WORK.command_id, {"green": True})]
    assert light.connected


async def test_the_same_command_again_has_the_same_effect_and_answer(
    light: StackLight, lines: FakeLines, station: RecordingStation
) -> None:
    for _ in range(2):
        await light.send(replace(WORK, parameters={"red": True}))
    assert lines.lit == {"red": True, "green": False}
    assert station.answers[0] == station.answers[1]


async def test_a_reset_puts_every_lamp_out_and_a_stop_none(
    light: StackLight, lines: FakeLines, station: RecordingStation
) -> None:
    command = replace(WORK, parameters={"red": True, "green": True})
    await light.send(command)
    await light.stop(replace(command, phase=Phase.STOP, parameters={}))
    assert lines.lit == {"red": True, "green": True}
    await light.send(replace(command, phase=Phase.RESET))
    assert lines.lit == {"red": False, "green": False}
    assert len(station.answers) == 2


@pytest.mark.parametrize(
    ("parameters", "error"),
    [({"program": "P1"}, "names a lamp: green, red"), ({"red": "on"}, "true or false: red"), ({}, "names a lamp")],
)
async def test_a_command_that_says_nothing_of_a_lamp_has_failed(
    light: StackLight, lines: FakeLines, station: RecordingStation, parameters: dict[str, object], error: str
) -> None:
    await light.send(replace(WORK, parameters=parameters))
    assert not any(lines.lit.values())
    (answer,) = station.answers
    assert error in (answer.error or "")


async def test_lamps_that_cannot_be_reached_leave_the_command_to_be_sent_again(
    light: StackLight, lines: FakeLines, station: RecordingStation
) -> None:
    lines.failure = Unavailable("gone")
    with pytest.raises(Unavailable):
        await light.send(replace(WORK, parameters={"red": True}))
    assert station.answers == []


@pytest.mark.usefixtures("light")
async def test_each_press_of_a_button_is_an_event_of_its_own(
    lines: FakeLines, station: RecordingStation, wait_until: WaitUntil
) -> None:
    lines.presses.put_nowait("start")
    lines.presses.put_nowait("start")
    await wait_until(lambda: len(station.events) == 2)
    first, second = station.events
    assert (first.type_id, first.scope, first.data) == (START, "station-1", {"button": "start"})
    assert first.source == "urn:microdcs-edge:equipment:light"
    assert first.event_id != second.event_id


async def test_a_press_while_the_store_is_away_does_not_end_the_watching(
    lines: FakeLines, wait_until: WaitUntil
) -> None:
    station = AwayOnce()
    async with open_stacklight("light", frozenset(lines.lit), {"start": START}, lines, station, "station-1"):
        lines.presses.put_nowait("start")
        lines.presses.put_nowait("start")
        await wait_until(lambda: len(station.events) == 1)


class AwayOnce(RecordingStation):
    """A station whose store is away for the first event."""

    def __init__(self) -> None:
        super().__init__()
        self._away = True

    async def event(self, event: EquipmentEvent) -> Task | None:
        if self._away:
            self._away = False
            raise Unavailable("the store is away")
        return await super().event(event)

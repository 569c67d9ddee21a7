"""A stack light shows the lamps of a recipe, and its buttons are events at the station."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio
from msgspec.structs import replace

from edge.equipment.connected_equipment import ConnectedEquipment
from edge.features.lamps import equipment, feature, settings
from edge.features.lamps.equipment import open_stacklight
from edge.features.lamps.lines import Lines
from edge.features.lamps.settings import StackLightSettings
from edge.foundation.errors import Unavailable
from edge.ports.alarm import AckState
from edge.sfc.signal import Phase
from edge.station.equipment import EquipmentAnswer, EquipmentEvent, Task
from tests.conftest import WaitUntil
from tests.equipment.alarm_feed import AlarmFeed, alarm
from tests.equipment.contract import SCOPES, TYPE_ID, WORK
from tests.equipment.recording_station import RecordingStation

START = "com.example.station.start-pressed.v1"
SETTINGS = StackLightSettings(
    kind="stacklight", type_ids=(TYPE_ID,), chip="desk", lamps={"red": 17, "green": 22}, buttons={START: 5}
)


class Desk:
    """Lamps and a button of the test, by name."""

    def __init__(self) -> None:
        self.lit: dict[str, bool] = {}
        self.presses: asyncio.Queue[str] = asyncio.Queue()

    @contextmanager
    def lines(self, chip: str, lamps: Mapping[str, int], buttons: Mapping[str, int]) -> Iterator[Lines]:
        self.lit = dict.fromkeys(lamps, False)
        yield self

    async def switch(self, lamps: Mapping[str, bool]) -> None:
        self.lit |= lamps

    async def pressed(self) -> str:
        return await self.presses.get()


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def station() -> RecordingStation:
    return RecordingStation()


@pytest_asyncio.fixture
async def light(desk: Desk, station: RecordingStation, wait_until: WaitUntil) -> AsyncIterator[ConnectedEquipment]:
    async with open_stacklight("light", SETTINGS, station, SCOPES, lines_factory=desk.lines) as light:
        await wait_until(lambda: light.connected)
        yield light


async def test_command_switches_its_lamps_and_completes(
    light: ConnectedEquipment, desk: Desk, station: RecordingStation, wait_until: WaitUntil
) -> None:
    await light.send(WORK)
    await wait_until(lambda: station.answers)
    assert desk.lit == {"red": False, "green": True}
    assert station.answers == [EquipmentAnswer(WORK.command_id, {"green": True})]


async def test_reset_switches_all_lamps_off_and_stop_switches_none(
    light: ConnectedEquipment, desk: Desk, station: RecordingStation, wait_until: WaitUntil
) -> None:
    command = replace(WORK, parameters={"red": True, "green": True})
    await light.send(command)
    await wait_until(lambda: station.answers)
    await light.stop(replace(command, phase=Phase.STOP, parameters={}))
    assert desk.lit == {"red": True, "green": True}
    await light.send(replace(command, command_id=f"{WORK.command_id}1", phase=Phase.RESET))
    await wait_until(lambda: len(station.answers) == 2)
    assert desk.lit == {"red": False, "green": False}


@pytest.mark.parametrize(
    ("parameters", "error"),
    [({"program": "P1"}, "names a lamp: green, red"), ({"red": "on"}, "true or false: red"), ({}, "names a lamp")],
)
async def test_command_without_a_lamp_fails(
    light: ConnectedEquipment,
    desk: Desk,
    station: RecordingStation,
    wait_until: WaitUntil,
    parameters: dict[str, object],
    error: str,
) -> None:
    await light.send(replace(WORK, parameters=parameters))
    await wait_until(lambda: station.answers)
    assert not any(desk.lit.values())
    assert error in str(station.answers[0].error)


@pytest.mark.usefixtures("light")
async def test_each_press_of_a_button_is_an_event_of_its_own(
    desk: Desk, station: RecordingStation, wait_until: WaitUntil
) -> None:
    desk.presses.put_nowait(START)
    desk.presses.put_nowait(START)
    await wait_until(lambda: len(station.events) == 2)
    first, second = station.events
    assert (first.type_id, first.scope, first.data) == (START, "station-1", {"pressed": True})
    assert first.source == "urn:microdcs-edge:equipment:light"
    assert first.event_id != second.event_id


async def test_buttons_are_watched_after_a_press_in_a_store_outage(desk: Desk, wait_until: WaitUntil) -> None:
    station = AwayOnce()
    async with open_stacklight("light", SETTINGS, station, SCOPES, lines_factory=desk.lines):
        desk.presses.put_nowait(START)
        desk.presses.put_nowait(START)
        await wait_until(lambda: len(station.events) == 1)


class AwayOnce(RecordingStation):
    """A station whose store is unavailable for the first event."""

    def __init__(self) -> None:
        super().__init__()
        self._away = True

    async def event(self, event: EquipmentEvent) -> Task | None:
        if self._away:
            self._away = False
            raise Unavailable("the store is away")
        return await super().event(event)


PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "add-equipment.md"


@pytest.mark.parametrize("excerpt", re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL))
def test_documentation_of_new_kinds_matches_the_source(excerpt: str) -> None:
    sources = [Path(module.__file__ or "").read_text() for module in (equipment, feature, settings)]
    # The page shows the body of a function without its indentation.
    assert any(" ".join(excerpt.split()) in " ".join(source.split()) for source in sources)


async def test_lamp_of_alarms_is_not_switched_by_commands(
    desk: Desk, station: RecordingStation, wait_until: WaitUntil
) -> None:
    feed, of_alarms = AlarmFeed(), msgspec.structs.replace(SETTINGS, alarms={"red": 1})
    async with open_stacklight("light", of_alarms, station, SCOPES, feed.follow, desk.lines) as light:
        feed.put(alarm(500, AckState.ACKNOWLEDGED))
        await wait_until(lambda: desk.lit.get("red"))
        await light.send(replace(WORK, phase=Phase.RESET))
        await wait_until(lambda: station.answers)
        assert (station.answers[0].data, desk.lit["red"]) == ({"green": False}, True)
        await light.send(replace(WORK, command_id=f"{WORK.command_id}1", parameters={"red": False}))
        await wait_until(lambda: len(station.answers) == 2)
        assert "names a lamp: green" in str(station.answers[1].error)

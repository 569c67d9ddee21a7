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

from edge.app.features import declared_sections
from edge.config import load_settings
from edge.equipment.connected_equipment import ConnectedEquipment
from edge.features.lamps import feature, stacklight
from edge.features.lamps.lines import Lines
from edge.features.lamps.stacklight import StackLightSettings, open_stacklight
from edge.foundation.errors import SettingsError, Unavailable
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


SECTION = """
[southbound.light]
kind = "stacklight"
type_ids = ["com.example.station.light.v1"]
chip = "pinctrl-rp1"
"""


def test_settings_are_read_from_the_own_section(tmp_path: Path) -> None:
    file = tmp_path / "edge.toml"
    file.write_text(f"{SECTION}lamps = {{ red = 17 }}\n[southbound.light.buttons]\n'{START}' = 5\n")
    given = {"EDGE_SOUTHBOUND__LIGHT__SCOPE": "station-2", "EDGE_GATEWAY__SCOPES": "station-1,station-2"}
    light = load_settings(file, given, declared_sections()).southbound["light"]
    assert isinstance(light, StackLightSettings)
    assert (light.lamps, light.buttons, light.scope) == ({"red": 17}, {START: 5}, "station-2")


def test_lamps_are_read_from_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "edge.toml"
    file.write_text(SECTION)
    light = load_settings(file, {"EDGE_SOUTHBOUND__LIGHT__LAMPS": '{"red": 17}'}, declared_sections()).southbound[
        "light"
    ]
    assert isinstance(light, StackLightSettings)
    assert light.lamps == {"red": 17}


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ("", "southbound.light.lamps: missing, expected a table of lines"),
        ("lamps = { red = -1 }", "southbound.light.lamps: expected a table of lines, as in { red = 17 }, got"),
        ("lamps = 17", "southbound.light.lamps: expected a table of lines, as in { red = 17 }, got a whole number"),
        ("lamps = { red = 5, green = 5 }", "southbound.light.lamps, buttons: line 5 is given 2 times"),
        (
            'lamps = { red = 5 }\nscope = "station-9"',
            "southbound.light.scope: station-9 is none of gateway.scopes: station-1",
        ),
    ],
)
def test_invalid_settings_are_reported(tmp_path: Path, keys: str, problem: str) -> None:
    file = tmp_path / "edge.toml"
    file.write_text(SECTION + keys)
    with pytest.raises(SettingsError) as refused:
        load_settings(file, {}, declared_sections())
    assert problem in refused.value.problems[0]


PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "add-equipment.md"


@pytest.mark.parametrize("excerpt", re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL))
def test_documentation_of_new_kinds_matches_the_source(excerpt: str) -> None:
    sources = [Path(module.__file__ or "").read_text() for module in (stacklight, feature)]
    # The page shows the body of a function without its indentation.
    assert any(" ".join(excerpt.split()) in " ".join(source.split()) for source in sources)


async def test_lamp_of_alarms_is_not_switched_by_commands(
    desk: Desk, station: RecordingStation, wait_until: WaitUntil
) -> None:
    feed, settings = AlarmFeed(), msgspec.structs.replace(SETTINGS, alarms={"red": 1})
    async with open_stacklight("light", settings, station, SCOPES, feed.follow, desk.lines) as light:
        feed.put(alarm(500, AckState.ACKNOWLEDGED))
        await wait_until(lambda: desk.lit.get("red"))
        await light.send(replace(WORK, phase=Phase.RESET))
        await wait_until(lambda: station.answers)
        assert (station.answers[0].data, desk.lit["red"]) == ({"green": False}, True)
        await light.send(replace(WORK, command_id=f"{WORK.command_id}1", parameters={"red": False}))
        await wait_until(lambda: len(station.answers) == 2)
        assert "names a lamp: green" in str(station.answers[1].error)


async def test_invalid_alarm_lamp_settings_are_reported(tmp_path: Path) -> None:
    file = tmp_path / "light.toml"
    file.write_text(
        '[telemetry]\nmode = "off"\n[southbound.light]\nkind = "stacklight"\ntype_ids = ["a"]\nchip = "fake"\n'
        "lamps = { red = 1, green = 2 }\nalarms = { blue = 5, green = 5 }\n"
    )
    with pytest.raises(SettingsError) as caught:
        load_settings(file, {}, declared_sections())
    found = "\n".join(caught.value.problems)
    assert all(part in found for part in ("blue is none of lamps", "the same severity", "telemetry.mode"))

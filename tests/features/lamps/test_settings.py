"""Faults of the section of a stack light are reported by key."""

from pathlib import Path

import pytest

from edge.app.features import declared_sections
from edge.config import load_settings
from edge.features.lamps.settings import StackLightSettings
from edge.foundation.errors import SettingsError

START = "com.example.station.start-pressed.v1"
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

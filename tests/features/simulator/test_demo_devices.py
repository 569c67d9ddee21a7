"""Tests that the devices of the demo match their recipe, with every protocol."""

import json
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from edge.app.features import declared_sections
from edge.config import load_settings
from edge.features.simulator.demo import CAMERA, CONTROLLER, DEVICES, DemoDevices
from edge.model.recipe import Recipe, parse_recipe


def recipe_data_of(devices: DemoDevices) -> dict[str, Any]:
    content = resources.files("edge.features.simulator").joinpath("recipes", devices.recipe).read_bytes()
    data: dict[str, Any] = json.loads(content)
    return data


def recipe_of(devices: DemoDevices) -> Recipe:
    recipe, faults = parse_recipe(recipe_data_of(devices))
    assert recipe is not None
    assert not faults
    return recipe


def chosen(over: str) -> DemoDevices:
    return DEVICES[over]("mqtt://127.0.0.1:1883", "station-1", 0.6)


@pytest.mark.parametrize("over", DEVICES)
def test_every_action_of_the_recipe_has_its_device(over: str, tmp_path: Path) -> None:
    devices = chosen(over)
    file = tmp_path / "edge.toml"
    file.write_text("\n".join(demo_device.section() for demo_device in devices.every))
    southbound = load_settings(file, {}, declared_sections()).southbound
    assert sorted(southbound) == [CAMERA, CONTROLLER]
    taken = sorted(type_id for equipment_settings in southbound.values() for type_id in equipment_settings.type_ids)
    assert taken == sorted({action.type_id for action in recipe_of(devices).actions})


def test_chart_is_the_same_for_every_device_protocol() -> None:
    def chart(recipe: Recipe) -> list[Any]:
        places = [(action.name, action.step, action.qualifier) for action in recipe.actions]
        return [
            recipe.steps,
            recipe.branches,
            places,
            [(transition.source, transition.target) for transition in recipe.transitions],
        ]

    charts = [chart(recipe_of(chosen(over))) for over in DEVICES]
    assert charts == [charts[0]] * len(DEVICES)


def test_opcua_devices_have_their_own_addresses() -> None:
    demo_devices, other = chosen("opcua"), chosen("opcua")
    assert (
        len(
            {
                argument
                for demo_device in (*demo_devices.every, *other.every)
                for argument in demo_device.arguments
                if argument.isdigit()
            }
        )
        == 4
    )
    assert demo_devices.unheard["com.example.station.tighten.v1"] == CONTROLLER
    assert chosen("mqtt").unheard == {}

"""Every kind declares what recipes name for it, as its reference page says."""

import pkgutil
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from edge.app.features import equipment_kinds, equipment_settings
from edge.config import EquipmentSettings
from edge.equipment.action_types import ActionParameter, ActionTypes
from edge.foundation.text import languages
from edge.model.recipe import Interaction
from tests.architecture.sources import text

T = "com.example.tighten.v1"
OPC = {"url": "opc.tcp://127.0.0.1:4840", "cert_file": "c", "key_file": "k", "trusted": "t"}
SECTIONS: dict[str, dict[str, Any]] = {
    "ijt": {"type_ids": [T], "events": {"result": "own.v1"}, **OPC},
    "vision": {"type_ids": [T], "events": {"error": "e.v1"}, **OPC},
    "openprotocol": {"type_ids": [T], "url": "tcp://127.0.0.1:4545", "events": {"job": "j.v1", "alarm": "a.v1"}},
    "reader": {"type_ids": ["code.v1"], "url": "tcp://127.0.0.1:2001"},
    "stacklight": {
        "type_ids": ["light.v1"],
        "chip": "fake",
        "lamps": {"red": 1, "green": 2},
        "alarms": {"red": 700},
        "buttons": {"pressed.v1": 3},
    },
    "operator": {"type_ids": [f"operator.{kind}.v1" for kind in ("confirm", "choose", "enter")]},
}
PROGRAMS = {
    "ijt": ("wheel 120Nm", "joint J-7"),
    "openprotocol": ("parameter set 3 (front axle)", "parameter set 4", "job 7 (rear: 2 x 3)"),
}


def types_of(kind: str) -> ActionTypes:
    section_type: type[EquipmentSettings] = pkgutil.resolve_name(equipment_settings()[kind])
    section = msgspec.convert({"kind": kind, **SECTIONS[kind]}, section_type)
    types: ActionTypes = pkgutil.resolve_name(equipment_kinds()[kind].action_types)(section, PROGRAMS.get(kind, ()))
    return types


def parameters_of(kind: str) -> dict[str, ActionParameter]:
    return {parameter.name: parameter for found in types_of(kind) for parameter in found.parameters}


def test_every_kind_but_mqtt_declares_its_action_types() -> None:
    assert {name for name, kind in equipment_kinds().items() if not kind.action_types} == {"mqtt"}
    assert set(SECTIONS) == set(equipment_kinds()) - {"mqtt"}


@pytest.mark.parametrize("kind", SECTIONS)
def test_commands_and_events_of_a_section_are_declared_once(kind: str) -> None:
    found = {action_type.type_id: action_type.interaction for action_type in types_of(kind)}
    events = {*SECTIONS[kind].get("events", {}).values(), *SECTIONS[kind].get("buttons", {})}
    commands = set(SECTIONS[kind]["type_ids"]) if kind != "reader" else set()
    assert {name for name, how in found.items() if how is Interaction.PUSH_COMMAND} == commands
    assert set(found) == {*SECTIONS[kind]["type_ids"], *events}
    assert len(found) == len(types_of(kind))


@pytest.mark.parametrize(
    ("kind", "heading"),
    [("ijt", "Tightening (OPC"), ("openprotocol", "Tightening (Open Protocol"), ("operator", "Operator")],
)
def test_declared_parameters_are_those_of_the_reference_page(kind: str, heading: str) -> None:
    page = text(Path("docs/reference/equipment.md")).split(f"\n## {heading}", 1)[1].split("\n## ", 1)[0]
    table = page.split("| parameter | meaning |\n|---|---|\n", 1)[1].split("\n\n", 1)[0]
    names = {name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert set(parameters_of(kind)) - {"joint_origin_id"} == names


@pytest.mark.parametrize("kind", SECTIONS)
def test_meaning_of_each_parameter_is_in_every_language(kind: str) -> None:
    for parameter in parameters_of(kind).values():
        assert len({parameter.meaning.in_language(language) for language in languages()}) == len(languages())


def test_programs_are_the_values_of_the_parameters_that_name_them() -> None:
    tightening, joining = parameters_of("openprotocol"), parameters_of("ijt")
    named = {name: [(item.value, item.name) for item in tightening[name].values] for name in ("parameter_set", "job")}
    assert named == {"parameter_set": [(3, "front axle"), (4, "")], "job": [(7, "rear: 2 x 3")]}
    assert [item.value for item in joining["joining_process_id"].values] == ["wheel 120Nm"]
    assert [item.value for item in joining["joint_id"].values] == ["J-7"]


def test_lamps_that_show_alarms_are_not_parameters() -> None:
    assert set(parameters_of("stacklight")) == {"green"}

"""An export is valid, says what the station does, and is the same recipe when it is imported."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from lxml import etree  # type: ignore[import-untyped]

from edge.features.recipes.plcopen import writer
from edge.features.recipes.plcopen.reader import import_plcopen
from edge.foundation.errors import Refused
from edge.sfc.compiler import compile_recipe
from edge.sfc.net import QUALIFIER_RULES, Net
from edge.sfc.structure import Arc, Structure
from tests.features.recipes.plcopen.exported import Json, edited, exported
from tests.features.recipes.plcopen.independent import PlcChart, Way, read_plc_chart
from tests.sfc.charts import recipes
from tests.sfc.recipes import action, branch, net_of, recipe, step, transition

SCHEMA = etree.XMLSchema(etree.parse(Path(__file__).with_name("tc6_reduced.xsd")))
OWN_DATA = re.compile(rb'<addData><data name="[^"]*/recipe".*?</addData>', re.DOTALL)
PARALLEL = recipe(
    "Init B C D",
    [transition("Init", "par", "go and steps.Init.T > 2s"), transition("par", "D", "actions.fit.done")],
    [action("fit", "B", "L", duration_seconds=2.5), action("look", "C", "P", timeout_seconds=0)],
    branch("par", "simultaneous", "B", "C"),
)


def arcs_of(data: Json) -> list[Arc]:
    return list(Structure(net_of(data).recipe).arcs)


def in_order(chart: PlcChart) -> dict[str, list[Way]]:
    """Return the ways that leave each step, the first tested first."""
    leaving: dict[str, list[Way]] = {}
    for way in sorted(chart.ways, key=lambda way: way.priority):
        for name in way.before:
            leaving.setdefault(name, []).append(way)
    return leaving


@given(recipes())
@settings(max_examples=500, deadline=None)
@pytest.mark.hypothesis
@pytest.mark.slow
def test_export_is_valid_and_imports_as_the_same_recipe(data: Json) -> None:
    xml = exported(data)
    SCHEMA.assertValid(etree.fromstring(xml))
    imported = import_plcopen(xml)
    assert (imported.recipe, imported.faults, imported.warnings) == (data, (), ())


@given(recipes())
@settings(max_examples=500, deadline=None)
@pytest.mark.hypothesis
@pytest.mark.slow
def test_an_independent_reader_finds_the_ways_of_the_station(data: Json) -> None:
    chart = read_plc_chart(exported(data))
    assert chart.steps == {item["name"] for item in data["steps"]}
    assert chart.initial == {item["name"] for item in data["steps"] if item.get("initial")}
    arcs = arcs_of(data)
    expected: dict[str, list[tuple[frozenset[str], frozenset[str]]]] = {}
    for arc in arcs:
        for name in arc.sources:
            expected.setdefault(name, []).append((frozenset(arc.sources), frozenset(arc.targets)))
    leaving = {name: [(way.before, way.after) for way in ways] for name, ways in in_order(chart).items()}
    assert leaving == expected
    for item in data["actions"]:
        timed = QUALIFIER_RULES[item["qualifier"]].timed
        duration = f"T#{item['duration_seconds']}s" if timed else ""
        assert (item["name"], item["qualifier"], duration) in chart.actions[item["step"]]


@given(recipes())
@pytest.mark.hypothesis
def test_a_chart_without_our_data_moves_as_the_recipe_or_is_refused(data: Json) -> None:
    """Branches that begin or end with a selection have no form without the data; everything else is the same."""
    imported = import_plcopen(OWN_DATA.sub(b"", exported(data)))
    if imported.recipe is None:
        assert all("parallel" in str(fault.text) or "convergence" in str(fault.text) for fault in imported.faults)
        return
    net = compile_recipe(imported.recipe)
    assert isinstance(net, Net)
    ways = {(frozenset(arc.sources), frozenset(arc.targets)) for arc in arcs_of(data)}
    again = {
        (frozenset(arc.sources), frozenset(arc.targets))
        for arc in Structure(net.recipe).arcs
        if "never" not in arc.conditions
    }
    assert again == ways or any("never" in arc.conditions for arc in arcs_of(data))


def test_conditions_without_form_are_variables_with_the_expression() -> None:
    chart = read_plc_chart(exported(PARALLEL))
    conditions = {way.condition for way in chart.ways}
    assert conditions == {"go AND Init.T > T#2s", "Condition"}
    assert chart.comments == {"Condition": "actions.fit.done"}
    again = import_plcopen(OWN_DATA.sub(b"", exported(PARALLEL))).recipe
    assert again is not None
    assert {item["condition"] for item in again["transitions"]} == {"go and steps.Init.T > 2s", "(actions.fit.done)"}


def test_names_that_a_plc_lacks_are_replaced_and_come_back() -> None:
    data = recipe("A", [transition("A", "Step 2", 'steps["Step 2"].X'), transition("A", "a")], [action("bö hr", "A")])
    data["steps"] += [step("Step 2"), step("a")]
    xml = exported(data)
    assert read_plc_chart(xml).steps == {"A", "Step_2", "a_2"}
    assert import_plcopen(xml).recipe == data


@pytest.mark.parametrize("name", ["", "a\x01\x7f", "<&\"'>", "ä" * 300, "]]>", "\u2028"])
def test_any_name_and_text_survives(name: str) -> None:
    data = recipe("A B", [transition("A", "B", 'x == "\\"<&>\x01\u2028"')], [action(name or "-", "B")])
    data["steps"].append(step(f"Z{name}"))
    data["transitions"].append(transition("A", f"Z{name}", "y"))
    data["actions"][0]["parameters"] = {"text": name, "number": 1.5e300, "list": [1, 1.0, None]}
    xml = exported(data, name)
    SCHEMA.assertValid(etree.fromstring(xml))
    assert import_plcopen(xml).recipe == data


def test_a_chart_that_would_not_be_read_back_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "MAX_ELEMENTS", 10)
    with pytest.raises(Refused, match="elements and"):
        exported(PARALLEL)


def test_steps_stand_where_our_drawing_has_them() -> None:
    text = exported(PARALLEL).decode()
    places = {
        name: (int(x), int(y)) for name, x, y in re.findall(r'name="(\w)"[^>]*><position x="(-?\d+)" y="(-?\d+)"', text)
    }
    assert places["B"][0] < places["C"][0]
    assert places["D"][1] > places["B"][1] == places["C"][1]


def test_a_recipe_in_pascal_case_comes_back_as_it_was_written() -> None:
    data = {
        "Steps": [{"Name": "A", "Initial": True}, {"Name": "B"}],
        "Transitions": [{"Source": "A", "Target": "B", "Condition": "x"}],
    }
    assert import_plcopen(edited(exported(data), ('x="0"', 'x="1"'))).recipe == data

"""Another tool may change an export: the chart wins, and what it left alone keeps its other members."""

from typing import Any

from edge.features.recipes.plcopen.reader import import_plcopen
from edge.sfc.compiler import compile_recipe
from edge.sfc.net import Net
from tests.features.recipes.plcopen.drawn import warnings_of
from tests.features.recipes.plcopen.exported import edited, exported
from tests.sfc.recipes import action, branch, recipe, step, transition

Json = dict[str, Any]


def example() -> Json:
    data = recipe(
        "Init B C D",
        [transition("Init", "par", "go"), transition("par", "D", "actions.fit.done")],
        [
            action("fit", "B", type_id="com.example.fit.v1", parameters={"torque": 5}),
            action("look", "C", interaction="pull_event", type_id="com.example.look.v1"),
        ],
        branch("par", "simultaneous", "B", "C") | {"lock": ["cell"]},
    )
    data["steps"][1] |= {"interventions": ["force"]}
    data["interventions"] = ["retry"]
    return data


def changed(*changes: tuple[str, str]) -> tuple[Json, list[str]]:
    imported = import_plcopen(edited(exported(example()), *changes))
    assert imported.recipe is not None, [fault.stated("en") for fault in imported.faults]
    assert isinstance(compile_recipe(imported.recipe), Net)
    return imported.recipe, warnings_of(imported)


def test_moved_elements_do_not_change_the_chart() -> None:
    assert changed(('x="0"', 'x="77"')) == (example(), [])


def test_a_changed_condition_wins_and_the_rest_keeps_its_members() -> None:
    recipe_, warnings = changed(("<xhtml:p>go</xhtml:p>", "<xhtml:p>go AND NOT stop</xhtml:p>"))
    assert [item["condition"] for item in recipe_["transitions"]] == ["go and not stop", "(actions.fit.done)"]
    assert recipe_["actions"] == [
        {key: value for key, value in item.items() if key != "duration_seconds"} for item in example()["actions"]
    ]
    assert recipe_["steps"][1] == example()["steps"][1]
    assert recipe_["interventions"] == ["retry"]
    assert recipe_["branches"] == example()["branches"]
    assert not any("the chart has changed" in warning for warning in warnings)


def test_a_changed_qualifier_wins_and_the_members_are_reported_lost() -> None:
    recipe_, warnings = changed(
        (
            'qualifier="N"><relPosition x="0" y="0"/><reference name="fit"',
            'qualifier="P"><relPosition x="0" y="0"/><reference name="fit"',
        )
    )
    fit = next(item for item in recipe_["actions"] if item["name"] == "fit")
    assert (fit["qualifier"], fit["type_id"], "parameters" in fit) == ("P", "plcopen.fit.v1", False)
    assert any("the members of action 'fit' in step 'B' are not carried over" in warning for warning in warnings)


def test_a_renamed_step_loses_its_members_with_a_warning() -> None:
    recipe_, warnings = changed(('name="B"', 'name="Fitting"'))
    assert recipe_["steps"][1] == {"name": "Fitting"}
    assert any("the members of step 'B' are not carried over" in warning for warning in warnings)
    assert any("the locks of branch 'par' are not carried over" in warning for warning in warnings)


def test_a_map_replaces_members_of_an_unchanged_chart() -> None:
    imported = import_plcopen(exported(example()), actions={"FIT": {"type_id": "com.example.new.v1"}})
    assert imported.recipe is not None
    assert [item["type_id"] for item in imported.recipe["actions"]] == ["com.example.new.v1", "com.example.look.v1"]


def test_data_that_is_not_a_recipe_is_left_out() -> None:
    for text in ("{", "[]", '{"steps": []}', "null", "[" * 5000):
        imported = import_plcopen(
            edited(exported({"steps": [step("A", initial=True)]}), ('{"steps"', text + '{"steps"'))
        )
        assert imported.recipe == {"steps": [step("A", initial=True)], "transitions": [], "actions": [], "branches": []}


def test_a_foreign_recipe_in_the_data_does_not_replace_the_chart() -> None:
    other = exported(recipe("X Y", [transition("X", "Y", "z")], [action("a", "Y")])).decode()
    mine = exported(recipe("X Y", [transition("X", "Y", "w")], [action("b", "Y")])).decode()
    mixed = mine[: mine.index("</body>\n<addData>")] + other[other.index("</body>\n<addData>") :]
    imported = import_plcopen(mixed.encode())
    assert imported.recipe is not None
    assert (imported.recipe["transitions"][0]["condition"], imported.recipe["actions"][0]["name"]) == ("w", "b")

"""Names of a recipe become identifiers of a PLC, each another one."""

from edge.features.recipes.plcopen.names import NameGiver, names_of_recipe
from edge.model.recipe import parse_recipe
from tests.sfc.recipes import action, branch, recipe


def test_names_that_can_stay_stay() -> None:
    giver = NameGiver()
    assert [giver.name(name) for name in ("Weld", "weld", "Step 2", "step_2", "IF", "7up", "ä")] == [
        "Weld",
        "weld_2",
        "Step_2",
        "step_2_2",
        "N_IF",
        "N_7up",
        "N",
    ]


def test_steps_branches_and_actions_share_their_names() -> None:
    data = recipe("A B", [], [action("a", "A"), action("a", "B")], branch("b", "selection", "B"))
    parsed, _ = parse_recipe(data)
    assert parsed is not None
    assert names_of_recipe(parsed, NameGiver()).all == ["A", "B", "b_2", "a_2"]

"""Members of results that are probably misspelt."""

import pytest

from edge.app.features import result_members
from edge.features.openprotocol.conversion import result_data
from edge.features.recipes.members import member_findings
from tests.features.recipes.recipes import action, net_of, recipe, way


def texts(*conditions: str) -> list[str]:
    ways = (way("A", "B", condition, priority) for priority, condition in enumerate((*conditions, "always")))
    net = net_of(recipe(*ways, actions=(action("a", "A"),)))
    return [f"{item.element.name}: {item.remedy}" for item in member_findings(net, result_members())]


@pytest.mark.parametrize("member", ["evalution", "Evaluation", "torque_statu"])
def test_member_almost_like_one_of_known_equipment_is_found(member: str) -> None:
    (text,) = texts(f"actions.a.result.{member} == 'OK'")
    assert text.startswith("A → B: Did you mean ")


@pytest.mark.parametrize("member", ["evaluation", "colour", "grade"])
def test_known_and_own_members_are_not_reported(member: str) -> None:
    assert texts(f"actions.a.result.{member} == 'OK'") == []


def test_member_almost_like_another_one_of_the_recipe_is_found() -> None:
    conditions = ("actions.a.result.thickness > 3", "actions.a.result.thicknes < 5")
    assert texts(*conditions) == ["A → B: Did you mean thickness?"]


def test_members_of_a_kind_are_those_of_its_results() -> None:
    assert result_data({"status": 1, "result": 5, "torque": 8500}).keys() <= result_members()

"""Where elements stand in the text of a recipe."""

import pytest

from edge.features.recipes.finding import ElementType
from edge.features.recipes.positions import positions_of

TEXT = """{"Interventions": [],
 "steps": [{"name": "A", "note": "ä,]"}, {"name": "B"}],
 "transitions": [
   {"source": "A", "target": "B"}]}"""


def test_each_element_has_line_and_column() -> None:
    positions = positions_of(TEXT)
    assert positions == {
        (ElementType.STEP, 0): (2, 12),
        (ElementType.STEP, 1): (2, 42),
        (ElementType.TRANSITION, 0): (4, 4),
    }


@pytest.mark.parametrize("text", ["{}", ' { "steps" : [ ] } '])
def test_recipe_without_elements_has_no_positions(text: str) -> None:
    assert positions_of(text) == {}

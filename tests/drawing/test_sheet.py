"""A page is no wider than requested; wider branches are folded, not omitted."""

from hypothesis import given
from hypothesis import strategies as st

from edge.drawing.marks import Marks
from edge.drawing.reading import read_chart
from edge.drawing.shapes import Drawing, Label, ShapeRole
from edge.drawing.sheet import MIN_WIDTH, draw, draw_within
from tests.drawing.sketches import Json, any_recipe, recipe_of, simultaneous, sound


def texts(drawing: Drawing, role: ShapeRole) -> list[str]:
    return [shape.text for shape in drawing.shapes if isinstance(shape, Label) and shape.role is role]


def parallel(paths: int, length: int = 1) -> Drawing:
    names = [[f"S{path}_{number}" for number in range(length)] for path in range(paths)]
    recipe = recipe_of([("Init", "B", "always"), ("B", "End", "always")], [simultaneous(*names)])
    return draw_within(read_chart(recipe), "wide", None, 80)


@given(any_recipe, st.integers(MIN_WIDTH, 200))
def test_no_page_is_wider_than_requested(data: Json, width: int) -> None:
    assert draw_within(read_chart(sound(data)), "title", None, width).width <= width


def test_very_long_names_and_conditions_fit_every_page() -> None:
    recipe = recipe_of([("A" * 300, "B" * 300, f"x == '{'y' * 900}'"), ("B" * 300, "C d" * 100, "always")])
    for width in (MIN_WIDTH, 100, 300):
        assert draw_within(read_chart(recipe), "t" * 500, None, width).width <= width


def test_branch_that_fits_the_page_is_not_folded() -> None:
    assert not [text for text in texts(parallel(4), ShapeRole.BRANCH) if "below" in text]


def test_branch_wider_than_the_page_is_folded_with_its_paths_below() -> None:
    drawing = parallel(40)
    text = " ".join(texts(drawing, ShapeRole.BRANCH))
    assert "B: 40 paths, below" in text
    assert "B: path 1 of 40" in text
    assert "B: path 40 of 40" in text
    assert len(texts(drawing, ShapeRole.STEP)) == 42


def test_chart_without_a_page_width_is_not_folded() -> None:
    names = [[f"S{number}"] for number in range(40)]
    recipe = recipe_of([("Init", "B", "always"), ("B", "End", "always")], [simultaneous(*names)])
    drawing = draw(read_chart(recipe), "", None)
    assert texts(drawing, ShapeRole.BRANCH) == ["B"]
    assert drawing.width > 400


def test_title_and_wait_reasons_are_drawn_around_the_chart() -> None:
    marks = Marks("job J1: running", {}, {}, ("A → B [go] waits for go: no value yet",))
    drawing = draw(read_chart(recipe_of([("A", "B", "go")])), "recipe", marks)
    assert texts(drawing, ShapeRole.TITLE) == ["recipe", "job J1: running"]
    assert texts(drawing, ShapeRole.NOTE) == ["waiting:", "A → B [go] waits for go: no value yet"]
    assert drawing.title == "recipe – job J1: running"

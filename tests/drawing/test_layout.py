"""Each shape of a layout has its own place."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.drawing.layout import Layout, step_block
from edge.drawing.marks import ActionMark, Marks, StepMark
from edge.drawing.reading import Chart, Fork, Jump, Leg, StepBlock, TransitionBar, read_chart
from edge.drawing.shapes import (
    MAX_LIMITS,
    Arrow,
    Block,
    ChartTarget,
    Drawing,
    Frame,
    Label,
    Line,
    LineLimits,
    LineStyle,
    Shape,
    ShapeRole,
    Stroke,
    columns,
)
from edge.drawing.sheet import MIN_WIDTH, draw, draw_within
from edge.model.recipe import Action, BranchType, Interaction, Qualifier
from edge.sfc.run import ActionState
from tests.drawing.drawn import items_of
from tests.drawing.sketches import Json, any_recipe, sound

STEPS = {ShapeRole.STEP, ShapeRole.INITIAL}
NAMED = {"A": StepBlock("A", initial=True, actions=()), "B": StepBlock("B", initial=False, actions=())}


def inside(shape: Shape) -> Iterator[tuple[int, int]]:
    """Yield the cells a shape has for itself: those of texts, arrows and lines, and what a frame encloses."""
    match shape:
        case Frame():
            for y in range(shape.y + 1, shape.y + shape.height - 1):
                for x in range(shape.x + 1, shape.x + shape.width - 1):
                    yield x, y
        case Label():
            indent = max(0, shape.room - columns(shape.text)) // 2
            for x in range(shape.x + indent, shape.x + indent + columns(shape.text)):
                yield x, shape.y
        case Arrow():
            yield shape.x, shape.y
        case Line():
            for y in range(min(shape.y0, shape.y1), max(shape.y0, shape.y1) + 1):
                for x in range(min(shape.x0, shape.x1), max(shape.x0, shape.x1) + 1):
                    yield x, y
        case ChartTarget():
            pass  # Nothing of it is drawn.


def border(frame: Frame) -> set[tuple[int, int]]:
    columns_, rows = range(frame.x, frame.x + frame.width), range(frame.y, frame.y + frame.height)
    return {(x, y) for x in columns_ for y in rows} - set(inside(frame))


def overlaps(drawing: Drawing) -> list[str]:
    """Return which cells belong to two shapes that have nothing to do with each other."""
    texts = Counter(cell for shape in drawing.shapes if isinstance(shape, Label) for cell in inside(shape))
    frames = Counter(cell for shape in drawing.shapes if isinstance(shape, Frame) for cell in inside(shape))
    lines = {cell for shape in drawing.shapes if isinstance(shape, Line) for cell in inside(shape)}
    borders = set().union(*(border(shape) for shape in drawing.shapes if isinstance(shape, Frame)))
    found = [f"two texts at {cell}" for cell, times in texts.items() if times > 1]
    found += [f"two frames around {cell}" for cell, times in frames.items() if times > 1]
    found += [f"a line through a frame at {cell}" for cell in lines & frames.keys()]
    found += [f"a line through a text at {cell}" for cell in lines & texts.keys()]
    found += [f"a border through a text at {cell}" for cell in borders & texts.keys()]
    found += [f"a frame around a border at {cell}" for cell in borders & frames.keys()]
    everywhere = {*texts, *lines, *borders}
    found += [
        f"{x}, {y} lies outside" for x, y in everywhere if not (0 <= x < drawing.width and 0 <= y < drawing.height)
    ]
    return found


@given(any_recipe, st.sampled_from([None, MIN_WIDTH, 80, 130]))
def test_shapes_do_not_overlap_at_any_page_width(data: Json, width: int | None) -> None:
    chart = read_chart(sound(data))
    drawing = draw(chart, "title", None) if width is None else draw_within(chart, "title", None, width)
    assert overlaps(drawing) == []


@given(any_recipe, st.sampled_from([None, MIN_WIDTH, 80, 130]))
def test_every_step_action_and_transition_is_drawn_once(data: Json, width: int | None) -> None:
    recipe = sound(data)
    chart = read_chart(recipe)
    drawing = draw(chart, "", None) if width is None else draw_within(chart, "", None, width)
    frames = Counter(shape.role for shape in drawing.shapes if isinstance(shape, Frame))
    bars = sum(isinstance(shape, Line) and shape.stroke is Stroke.HEAVY for shape in drawing.shapes)
    assert frames[ShapeRole.INITIAL] == 1
    assert frames[ShapeRole.STEP] == len(recipe.steps) - 1
    assert frames[ShapeRole.ACTION] == len(recipe.actions)
    assert bars == sum(isinstance(item, TransitionBar) for item in items_of(chart.pieces))


def test_items_of_a_sequence_are_aligned_on_one_spine() -> None:
    block = Layout({}, MAX_LIMITS, None).sequence((NAMED["A"], TransitionBar("go", (0,)), NAMED["B"]))
    out: list[Shape] = []
    block.put(20, 0, out)
    upright = [shape for shape in out if isinstance(shape, Line) and shape.x0 == shape.x1]
    assert {line.x0 for line in upright} == {20}
    assert min(line.y0 for line in upright) == 2


@pytest.mark.parametrize(
    ("kind", "stroke"), [(BranchType.SELECTION, Stroke.LIGHT), (BranchType.SIMULTANEOUS, Stroke.DOUBLE)]
)
def test_simultaneous_branch_has_double_lines_and_selection_single_lines(kind: BranchType, stroke: Stroke) -> None:
    fork = Fork("Both", kind, (Leg((NAMED["A"],), open=True), Leg((NAMED["B"],), open=True)))
    block = Layout({}, MAX_LIMITS, None).item(fork)
    out: list[Shape] = []
    block.put(40, 0, out)
    level = [shape for shape in out if isinstance(shape, Line) and shape.x0 != shape.x1]
    assert [line.stroke for line in level] == [stroke, stroke]
    assert [line.y0 for line in level] == [block.top, block.bottom]


def test_legs_that_end_do_not_reach_the_convergence() -> None:
    legs = (Leg((TransitionBar("a", (0,), 1),), open=True), Leg((TransitionBar("b", (1,), 2), Jump("A")), open=False))
    block = Layout({"A": ("B",)}, MAX_LIMITS, None).item(Fork("", BranchType.SELECTION, legs))
    out: list[Shape] = []
    block.put(40, 0, out)
    assert sum(isinstance(shape, Line) and shape.y0 == shape.y1 and shape.stroke is Stroke.LIGHT for shape in out) == 1


def test_target_of_a_jump_names_its_sources() -> None:
    chart = Chart(
        ((NAMED["A"], TransitionBar("go", (0,)), NAMED["B"], TransitionBar("again", (1,)), Jump("A")),), {"A": ("B",)}
    )
    texts = {(shape.text, shape.role) for shape in draw(chart, "", None).shapes if isinstance(shape, Label)}
    assert ("B", ShapeRole.ARRIVAL) in texts
    assert ("A", ShapeRole.JUMP) in texts


def action(qualifier: Qualifier = Qualifier.N, **more: Any) -> Action:
    return Action("tighten", "Tighten", qualifier, Interaction.PUSH_COMMAND, "com.example.tighten.v1", **more)


def shapes(block: Block) -> list[Shape]:
    out: list[Shape] = []
    block.put(50, 10, out)
    return out


def texts(block: Block) -> list[str]:
    return [shape.text for shape in shapes(block) if isinstance(shape, Label)]


@pytest.mark.parametrize("qualifier", Qualifier)
def test_action_block_shows_its_qualifier_and_its_duration_if_timed(qualifier: Qualifier) -> None:
    block = step_block(StepBlock("Tighten", False, ((0, action(qualifier, duration_seconds=5)),)), MAX_LIMITS, None)
    text = texts(block)
    assert text[1] == qualifier
    assert ("T#5s" in text) == (qualifier in {"L", "D", "SD", "DS", "SL"})


@pytest.mark.parametrize("name", ["A", "AB", "x" * 23, "x" * 300])
def test_spine_is_at_the_middle_of_the_frame(name: str) -> None:
    block = step_block(StepBlock(name, True, ()), MAX_LIMITS, None)
    (frame,) = (shape for shape in shapes(block) if isinstance(shape, Frame))
    assert frame.x + frame.width // 2 == 50
    assert frame.width % 2 == 1
    assert (block.left, block.right) == (frame.width // 2, frame.width // 2 + 1)


def test_a_step_without_timeout_has_no_third_column() -> None:
    with_timeout = step_block(StepBlock("A", False, ((0, action(timeout_seconds=30)),)), MAX_LIMITS, None)
    without = step_block(StepBlock("A", False, ((0, action()),)), MAX_LIMITS, None)
    assert "≤ 30 s" in texts(with_timeout)
    assert without.width < with_timeout.width


def test_timeout_is_below_the_name_in_a_narrow_step() -> None:
    step = StepBlock("A", False, ((0, action(timeout_seconds=30)),))
    narrow = step_block(step, LineLimits(8, 10, 10, stacked=True), None)
    assert "≤ 30 s" in texts(narrow)
    assert narrow.width < 40


def test_actions_are_drawn_one_below_the_other() -> None:
    block = step_block(StepBlock("A", False, tuple((number, action()) for number in range(12))), MAX_LIMITS, None)
    rows = [shape.y for shape in shapes(block) if isinstance(shape, Frame) and shape.role is ShapeRole.ACTION]
    assert rows == list(range(10, 46, 3))
    assert block.height == 37
    assert block.bottom == 2


def test_marks_show_the_step_and_each_action() -> None:
    marks = Marks(
        "",
        {"A": StepMark(active=True, elapsed_ms=1200, count=3)},
        {7: ActionMark(ActionState.FAILED, 2, 900, False)},
        (),
    )
    block = step_block(StepBlock("A", False, ((7, action()),)), MAX_LIMITS, marks)
    assert {"● 1.2 s ×3", "✗ failed", "0.9 s, #2"} <= set(texts(block))
    styles = [shape.style for shape in shapes(block) if isinstance(shape, Frame)]
    assert styles == [LineStyle.ACTIVE, LineStyle.FAILED, LineStyle.FAILED, LineStyle.FAILED]

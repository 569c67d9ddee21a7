"""A step with its action blocks is as large as its texts require."""

from typing import Any

import pytest

from edge.chart.elements import StepBlock
from edge.chart.marks import ActionMark, Marks, StepMark
from edge.chart.shapes import MAX_LIMITS, Block, Frame, Label, LineLimits, LineStyle, Shape, ShapeRole
from edge.chart.step import step_block
from edge.model.recipe import Action, Interaction, Qualifier
from edge.sfc.run import ActionState


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

"""Charts in Unicode match drawings made by hand."""

import re
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.drawing.marks import ActionMark, Marks, StepMark
from edge.drawing.reading import read_chart
from edge.drawing.shapes import columns
from edge.drawing.sheet import MIN_WIDTH, draw_within
from edge.drawing.text import ANSI, PLAIN, chart_text
from edge.model.recipe import Recipe, parse_recipe
from edge.sfc.run import ActionState
from tests.drawing.sketches import Json, any_recipe, recipe_of, selection, simultaneous, sound

pytestmark = pytest.mark.slow


def drawn(recipe: Recipe, marks: Marks | None = None) -> str:
    """Draw a recipe without a title, 100 columns wide."""
    return "\n".join(chart_text(draw_within(read_chart(recipe), "", marks, 100), PLAIN)) + "\n"


def picture(text: str) -> str:
    return dedent(text).removeprefix("\n")


def one_action() -> Recipe:
    recipe, faults = parse_recipe(
        {
            "steps": [{"name": "Init", "initial": True}, {"name": "Tighten"}],
            "transitions": [{"source": "Init", "target": "Tighten", "condition": "part_present"}],
            "actions": [
                {
                    "name": "tighten",
                    "step": "Tighten",
                    "qualifier": "L",
                    "interaction": "push_command",
                    "type_id": "com.example.tighten.v1",
                    "timeout_seconds": 60,
                    "duration_seconds": 2.5,
                },
                {
                    "name": "result",
                    "step": "Tighten",
                    "qualifier": "N",
                    "interaction": "pull_event",
                    "type_id": "com.example.result.v1",
                },
            ],
        }
    )
    assert recipe is not None
    assert not faults
    return recipe


def test_step_is_drawn_with_its_actions() -> None:
    assert drawn(one_action()) == picture("""
        ╔═════════╗
        ║  Init   ║
        ╚════╤════╝
             │
           ╺━┿━╸ part_present
             │
        ┌────┴────┐  ┌────────┬──────────────────────────┬────────┐
        │ Tighten ├──┤   L    │ tighten                  │ ≤ 60 s │
        └─────────┘  │ T#2.5s │ → com.example.tighten.v1 │        │
                     ├────────┼──────────────────────────┼────────┤
                     │   N    │ result                   │        │
                     │        │ ← com.example.result.v1  │        │
                     └────────┴──────────────────────────┴────────┘
        """)


def test_simultaneous_paths_are_drawn_between_double_lines() -> None:
    recipe = recipe_of(
        [("Init", "Both", "always"), ("Both", "End", "torque_ok")], [simultaneous(["A"], ["B"], name="Both")]
    )
    assert drawn(recipe) == picture("""
               ╔═════════╗
               ║  Init   ║
               ╚════╤════╝
                    │
                  ╺━┿━╸ TRUE
                    │
                    │ Both
           ══╤══════╧══════╤══
             │             │
        ┌────┴────┐   ┌────┴────┐
        │    A    │   │    B    │
        └────┬────┘   └────┬────┘
             │             │
           ══╧══════╤══════╧══
                    │
                  ╺━┿━╸ torque_ok
                    │
               ┌────┴────┐
               │   End   │
               └─────────┘
        """)


def test_selection_is_drawn_with_its_jump_back() -> None:
    recipe = recipe_of(
        [
            ("Init", "Way", "always"),
            ("Way", "Good", "ok"),
            ("Way", "Bad", "not ok"),
            ("Bad", "Init", "again"),
            ("Way", "End", "always"),
        ],
        [selection(["Good"], ["Bad"], name="Way")],
    )
    assert drawn(recipe) == picture("""
                            ┌◀ Bad
                       ╔════╧════╗
                       ║  Init   ║
                       ╚════╤════╝
                            │ * Way
             ┌──────────────┴───────────────┐
             │                              │
         1 ╺━┿━╸ ok                     2 ╺━┿━╸ not ok
             │                              │
        ┌────┴────┐                    ┌────┴────┐
        │  Good   │                    │   Bad   │
        └────┬────┘                    └────┬────┘
             │                              │ *
           ╺━┿━╸ TRUE       ┌───────────────┤
             │              │               │
             │          1 ╺━┿━╸ again   2 ╺━┿━╸ TRUE
             │              │               │
             │              ▼ Init          │
             │                              │
             └──────────────┬───────────────┘
                            │
                       ┌────┴────┐
                       │   End   │
                       └─────────┘
        """)


@given(any_recipe, st.integers(MIN_WIDTH, 160))
def test_no_line_is_longer_than_the_requested_width(data: Json, width: int) -> None:
    lines = chart_text(draw_within(read_chart(sound(data)), "title", None, width), PLAIN)
    assert max(map(columns, lines)) <= width


@given(any_recipe)
def test_text_with_and_without_colours_is_equal(data: Json) -> None:
    drawing = draw_within(read_chart(sound(data)), "title", None, 120)
    plain = chart_text(drawing, PLAIN)
    assert "\x1b" not in "".join(plain)
    assert [re.sub("\x1b\\[[0-9;]*m", "", line).rstrip() for line in chart_text(drawing, ANSI)] == plain


def test_control_characters_in_names_are_not_printed() -> None:
    recipe = recipe_of([("\x1b[2J\x1b]0;owned\x07", "\u202eEnd", "x == '\x9b31m'")])
    assert drawn(recipe).replace("\n", "").isprintable()


def test_running_job_shows_its_state_without_colours() -> None:
    marks = Marks(
        "job J1 in line-4: running after 12.3 s",
        {
            "Init": StepMark(active=False, elapsed_ms=100, count=1),
            "Tighten": StepMark(active=True, elapsed_ms=12_200, count=2),
        },
        {
            0: ActionMark(ActionState.DISPATCHED, 2, 12_200, stored=False),
            1: ActionMark(ActionState.COMPLETED, 1, 800, stored=False),
        },
        (),
    )
    picture = drawn(one_action(), marks)
    for text in ("● 12.2 s ×2", "▶ dispatched", "12.2 s, #2", "✓ completed", "0.8 s", "┏━", "job J1 in line-4"):
        assert text in picture

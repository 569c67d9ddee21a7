"""Charts as SVG are well formed for every recipe."""

import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.drawing.marks import ActionMark, Marks, StepMark
from edge.drawing.reading import read_chart
from edge.drawing.sheet import draw
from edge.drawing.svg import chart_svg
from edge.sfc.run import ActionState
from tests.drawing.sketches import Json, any_recipe, recipe_of, sound
from tests.drawing.test_text import one_action

SVG = "{http://www.w3.org/2000/svg}"
DRAWN = {f"{SVG}{tag}" for tag in ("svg", "title", "style", "rect", "path", "text")}


def parsed(document: str) -> ET.Element:
    return ET.fromstring(document)  # noqa: S314  our own document, and that it parses is the point


def texts(root: ET.Element) -> list[str]:
    return [element.text or "" for element in root.iter(f"{SVG}text")]


@given(any_recipe)
def test_every_chart_is_well_formed_svg(data: Json) -> None:
    recipe = sound(data)
    root = parsed(chart_svg(draw(read_chart(recipe), "title", None)))
    assert {element.tag for element in root.iter()} <= DRAWN
    text = texts(root)
    assert all(step.name in text for step in recipe.steps)


@pytest.mark.parametrize(
    "name",
    [
        "<script>alert(1)</script>",
        "</text></svg>",
        "\"' onload='x' \"",
        "]]>",
        "&lt;&#0;&x;",
        "\x00\x1b\ud800\uffff",
        "<!--",
        "検査🌀",
        "n" * 300,
    ],
)
def test_names_are_escaped_in_svg(name: str) -> None:
    recipe = recipe_of([(name, f"{name}2", f"x == '{name}'")])
    document = chart_svg(draw(read_chart(recipe), name, None))
    document.encode()
    assert {element.tag for element in parsed(document).iter()} <= DRAWN


@given(st.text(min_size=1))
def test_texts_are_escaped_in_svg(name: str) -> None:
    root = parsed(chart_svg(draw(read_chart(recipe_of([(name, f"{name}2", name)])), name, None)))
    assert {element.tag for element in root.iter()} <= DRAWN


def test_text_is_shown_literally_in_svg() -> None:
    root = parsed(chart_svg(draw(read_chart(recipe_of([("A & B", "<End>", 'x < 3 && y == "z"')])), "", None)))
    assert {"A & B", "<End>", 'x < 3 && y == "z"'} <= set(texts(root))


def test_an_initial_step_has_two_frames() -> None:
    root = parsed(chart_svg(draw(read_chart(recipe_of([("A", "B", "go")])), "", None)))
    frames = [element.get("class") for element in root.iter(f"{SVG}rect")]
    assert frames == ["page", "initial", "initial", "step"]


def test_states_of_a_running_job_differ_by_colour_and_text() -> None:
    marks = Marks(
        "job J1",
        {"Tighten": StepMark(active=True, elapsed_ms=1500, count=1)},
        {
            0: ActionMark(ActionState.TIMED_OUT, 1, 1500, stored=False),
            1: ActionMark(ActionState.WAITING, 1, 1500, stored=True),
        },
        (),
    )
    root = parsed(chart_svg(draw(read_chart(one_action()), "", marks)))
    looks = {(element.get("class") or "").partition(" ")[2] for element in root.iter(f"{SVG}rect")}
    assert {"active", "failed", "busy"} <= looks
    assert {"● 1.5 s", "⊗ timed out", "◔ waiting", "is set"} <= set(texts(root))


def test_svg_is_as_large_as_its_content() -> None:
    root = parsed(chart_svg(draw(read_chart(recipe_of([("A", "B", "go")])), "", None)))
    width, height = (int(root.get(side) or 0) for side in ("width", "height"))
    assert root.get("viewBox") == f"0 0 {width} {height}"
    corners = [
        (float(element.get("x") or 0) + float(element.get("width") or 0), float(element.get("y") or 0))
        for element in root.iter(f"{SVG}rect")
    ]
    assert all(x <= width and y <= height for x, y in corners)


def test_long_title_is_not_cut_off_at_the_edge_of_the_picture() -> None:
    title = "stopped after 1.2 s: stopped by root at the command line, xyz"
    root = parsed(chart_svg(draw(read_chart(one_action()), title, None)))
    # A bold letter of 14 pixels in DejaVu Sans Mono is 8.43 pixels wide.
    assert float(root.attrib["width"]) >= len(title) * 8.43 + 2 * 16

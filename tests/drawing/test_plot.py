"""A plot is a well-formed SVG for any values, and escapes markup in names."""

import re
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from edge.drawing.plot import PlotLimit, PlotPoint, plot_svg

NUMBERS = st.floats(-1e300, 1e300)

LETTERS = re.compile(r"@media\(max-width:(\d+)px\)\{text\{font-size:(\d+)px")


@given(st.lists(st.tuples(st.floats(0, 1e15), NUMBERS), max_size=100), st.lists(NUMBERS, max_size=3))
def test_every_plot_is_well_formed(points: list[tuple[float, float]], limits: list[float]) -> None:
    drawn = plot_svg("<script>", [PlotPoint(*point) for point in points], [PlotLimit("&", limit) for limit in limits])
    assert ET.fromstring(drawn).tag.endswith("svg")  # noqa: S314 - our own picture
    assert "nan" not in drawn
    assert "<script>" not in drawn


def test_points_and_limits_are_drawn_in_order() -> None:
    drawn = plot_svg("t", [PlotPoint(0, 1), PlotPoint(1, 2)], [PlotLimit("upper", 3)])
    root = ET.fromstring(drawn)  # noqa: S314 - our own picture
    circles = [element for element in root if element.tag.endswith("circle")]
    assert float(circles[0].get("cy", "")) > float(circles[1].get("cy", ""))
    assert "upper" in drawn


def test_points_beyond_the_limits_are_marked() -> None:
    points = [PlotPoint(0, 1), PlotPoint(1, 4), PlotPoint(2, -1)]
    limits = [PlotLimit("CL", 0, is_bound=False), PlotLimit("LCL", -2), PlotLimit("UCL", 3)]
    root = ET.fromstring(plot_svg("t", points, limits))  # noqa: S314 - our own picture
    looks = [element.get("class") for element in root if element.tag.endswith("circle")]
    assert looks == ["dot", "dot out", "dot"]


def test_small_plots_have_their_figures_inside() -> None:
    drawn = plot_svg("t", [PlotPoint(0, -123456), PlotPoint(1, 123456)])
    root = ET.fromstring(drawn)  # noqa: S314 - our own picture
    assert [element.get("class") for element in root if element.get("text-anchor") == "end"][:3] == ["figure"] * 3
    assert "@media(max-width:599px){.figure{text-anchor:start" in drawn


def test_letters_of_a_plot_have_twelve_pixels_at_each_width() -> None:
    drawn = plot_svg("t", [])
    steps = [(int(most), int(size)) for most, size in LETTERS.findall(drawn)]
    for width in range(290, 1000):
        (size, *_) = (size for most, size in reversed([(10_000, 12), *steps]) if width <= most)
        assert size * width / 800 >= 12, width

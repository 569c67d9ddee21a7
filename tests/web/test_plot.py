"""A plot is a well-formed picture whatever its values are, and contains no markup of names."""

from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from edge.web.plot import PlotLimit, PlotPoint, plot_svg

NUMBERS = st.floats(-1e300, 1e300)


@given(st.lists(st.tuples(st.floats(0, 1e15), NUMBERS), max_size=100), st.lists(NUMBERS, max_size=3))
def test_every_plot_is_well_formed(points: list[tuple[float, float]], limits: list[float]) -> None:
    drawn = plot_svg(
        "<script>", [PlotPoint(*each) for each in points], [PlotLimit("&", each) for each in limits], is_time=True
    )
    assert ET.fromstring(drawn).tag.endswith("svg")  # noqa: S314 - as above
    assert "nan" not in drawn
    assert "<script>" not in drawn


def test_points_and_limits_are_drawn_in_their_order() -> None:
    drawn = plot_svg("t", [PlotPoint(0, 1), PlotPoint(1, 2)], [PlotLimit("upper", 3)], is_time=False)
    root = ET.fromstring(drawn)  # noqa: S314 - as above
    circles = [each for each in root if each.tag.endswith("circle")]
    assert float(circles[0].get("cy", "")) > float(circles[1].get("cy", ""))
    assert "upper" in drawn

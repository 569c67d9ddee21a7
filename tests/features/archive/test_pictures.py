"""Pictures of an analysis are whole SVG documents whose texts are escaped."""

from xml.etree import ElementTree as ET

from edge.features.archive.analysis import ReasonCount, StepQuantiles
from edge.features.archive.pictures import pareto_svg, steps_svg


def texts_of(document: str) -> list[str]:
    """Return the texts of a picture."""
    root = ET.fromstring(document)  # noqa: S314 - a document of our own
    return ["".join(element.itertext()) for element in root.iter("{http://www.w3.org/2000/svg}text")]


def test_pareto_shows_each_reason_with_its_share() -> None:
    reasons = [
        ReasonCount(
            reason="<b> & angle high, which is a very long reason",
            violation="<b> & angle high, which is a very long reason",
            jobs=3,
            share=0.75,
        ),
        ReasonCount(reason="camera", violation="camera", jobs=1, share=1.0),
    ]
    assert texts_of(pareto_svg("Why", reasons, "none")) == [
        "<b> & angle high, which is a very long …",
        "camera",
        "3 · 75%",
        "1 · 100%",
    ]


def test_box_plot_shows_each_step_with_its_median() -> None:
    steps = [StepQuantiles(step="Fit", title="Einlegen", jobs=9, p5=100, p25=200, p50=1500, p75=2000, p95=4000)]
    assert texts_of(steps_svg("Times", steps, "axle", "none")) == ["Einlegen", "1.5 s", "axle"]


def test_pictures_of_nothing_are_empty() -> None:
    assert texts_of(pareto_svg("Why", [], "<all> OK")) == ["<all> OK"]
    assert texts_of(steps_svg("Times", [], "", "none")) == ["none"]

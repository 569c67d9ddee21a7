"""The Gantt chart of a run has a row per step and action, bars in order, and escaped texts."""

import xml.etree.ElementTree as ET

import pytest

from edge.drawing.gantt import gantt_lines, gantt_svg
from edge.sfc.history import read_record
from edge.sfc.replay import timeline
from edge.sfc.run import new_run
from edge.sfc.signal import Answer, Pause, Resume, Signal, Start
from tests.sfc.recipes import action, chain, net_of
from tests.sfc.test_history import played

SVG = "{http://www.w3.org/2000/svg}"
NET = net_of(chain("Load Screw<b>", action("one & only", "Load"), action("two", "Screw<b>")))


def drawn(*signals: tuple[Signal, int], until: int) -> ET.Element:
    run, stored_decisions = played(NET, new_run("J1", "s", "R1", {}), list(signals))
    records = [read_record(NET, run, decision) for decision in stored_decisions]
    return ET.fromstring(gantt_svg("job <J1>", NET, timeline(records), until))  # noqa: S314 - the text is our own


def test_rows_follow_the_recipe_and_bars_follow_time() -> None:
    answer = Answer("J1/R1/one%20%26%20only/1", ok=True)
    picture = drawn((Start(), 0), (Pause(), 500), (Resume(), 900), (answer, 1000), until=3000)
    labels = [element.text for element in picture.iter(f"{SVG}text") if element.get("class") in {"step", "action"}]
    assert labels == ["Load", "one & only", "Screw<b>", "two"]
    bars = [
        element for element in picture.iter(f"{SVG}rect") if element.get("class") in {"step", "completed", "dispatched"}
    ]
    assert [bar.get("class") for bar in bars] == ["step", "completed", "step", "dispatched"]
    spans = [(float(bar.get("x", "")), float(bar.get("width", ""))) for bar in bars]
    assert spans[0] == spans[1]
    assert spans[2] == spans[3]
    assert spans[2][0] == pytest.approx(spans[0][0] + spans[0][1], abs=0.2)
    assert spans[2][1] == pytest.approx(2 * spans[0][1], abs=0.3)
    assert [element.get("class") for element in picture.iter(f"{SVG}rect")].count("pause") == 1


def test_timeline_for_a_person_has_the_titles_in_the_language() -> None:
    data = chain("Load Done", {**action("fetch_part", "Load"), "title": {"en": "Fetch", "de": "Holen"}})
    data["steps"][0]["title"] = {"en": "Load it", "de": "Einlegen"}
    net = net_of(data)
    run, stored_decisions = played(net, new_run("J1", "s", "R1", {}), [(Start(), 0)])
    spans = timeline([read_record(net, run, decision) for decision in stored_decisions])
    document = "".join(gantt_lines("", net, spans, 1000, "de"))
    assert (">Einlegen</text>" in document, ">Holen</text>" in document, "fetch_part</text>" in document) == (
        True,
        True,
        False,
    )
    assert ">Load</text>" in gantt_svg("", net, spans, 1000)


@pytest.mark.parametrize("until", [0, 1, 999, 86_400_000 * 30])
def test_time_axis_of_any_length_has_2_to_12_ticks_inside_the_plot(until: int) -> None:
    picture = drawn((Start(), 0), until=until)
    ticks = [element for element in picture.iter(f"{SVG}text") if element.get("class") == "tick"]
    assert 2 <= len(ticks) <= 12
    assert all(0 < float(tick.get("x", "")) < float(picture.get("width", "")) for tick in ticks)

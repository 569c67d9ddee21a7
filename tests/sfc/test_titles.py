"""Titles of the parts of a chart: own ones by language, else names as words."""

from edge.sfc.titles import action_title, step_title, transition_title
from tests.sfc.recipes import action, net_of, recipe, step, transition

_NET = net_of(
    {
        **recipe(
            "SeatCable TightenBolt1",
            [
                {**transition("SeatCable", "TightenBolt1"), "title": {"en": "Seated", "de": "Sitzt"}},
                transition("TightenBolt1", "SeatCable", "false"),
            ],
            [
                action("tighten_left", "TightenBolt1"),
                {**action("tighten_left", "SeatCable"), "title": "Left bolt"},
                {**action("scan", "SeatCable"), "title": {"de": "Code lesen"}},
            ],
        ),
        "steps": [
            {**step("SeatCable", initial=True), "title": {"en": "Seat the cable", "de": "Kabel einlegen"}},
            step("TightenBolt1"),
        ],
    }
)


def test_step_has_its_title_in_the_language_of_the_reader() -> None:
    assert step_title(_NET, "SeatCable", ("de",)) == "Kabel einlegen"
    assert step_title(_NET, "SeatCable", ("it",)) == "Seat the cable"
    assert step_title(_NET, "TightenBolt1", ("de",)) == "Tighten bolt 1"
    assert step_title(_NET, "GoneStep", ()) == "Gone step"


def test_action_without_a_title_has_that_of_its_name_elsewhere() -> None:
    assert action_title(_NET, "tighten_left", "TightenBolt1", ("de",)) == "Left bolt"
    assert action_title(_NET, "scan", "SeatCable", ("en",)) == "Code lesen"
    assert action_title(_NET, "gone_action", "SeatCable", ()) == "Gone action"


def test_only_a_transition_with_a_title_has_one() -> None:
    titles = [transition_title(_NET, item, ("de",)) for item in _NET.transitions]
    assert titles == ["Sitzt", ""]


def test_titles_do_not_change_the_source_of_a_recipe_without_them() -> None:
    plain = recipe("A B", [transition("A", "B")], [action("bolt", "A")])
    assert "title" not in net_of(plain).source
    assert "verdict" not in net_of(plain).source

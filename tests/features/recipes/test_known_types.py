"""Types of commands that no equipment takes, and actions whose command is still to be chosen."""

import pytest

from edge.features.recipes.check import check_net
from edge.features.recipes.finding import FindingKind, FindingLevel
from edge.features.recipes.known_types import UNCHOSEN, declared_types
from edge.features.recipes.workbench_requests import text_of
from edge.store.client import Store
from tests.features.recipes.desks import ANNA
from tests.features.recipes.recipes import Json, action, net_of, recipe, wait, way
from tests.features.recipes.test_check import shipped
from tests.features.recipes.test_offers import TIGHTEN, desk_with_equipment
from tests.sfc.recipes import action as command
from tests.sfc.recipes import chain

KNOWN = ("com.example.tighten.v1", "com.example.scanned.v1")


def types_in(data: Json, types: tuple[str, ...] = KNOWN) -> list[tuple[str, str, str, str]]:
    """Return level, name, message and remedy of what is found about types."""
    kinds = {FindingKind.UNKNOWN_TYPE, FindingKind.NO_COMMAND}
    return [
        (item.level.value, item.element.name, str(item.message), str(item.remedy))
        for item in check_net(net_of(data), types=types).findings
        if item.kind in kinds
    ]


def test_misspelt_command_is_an_information_with_what_was_meant() -> None:
    data = recipe(way("A", "B"), actions=(action("tighten", "A", type_id="com.example.tigthen.v1"),))
    assert types_in(data) == [
        (
            "information",
            "tighten",
            "action tighten: no equipment of this station takes com.example.tigthen.v1",
            "Did you mean com.example.tighten.v1?",
        )
    ]


def test_unknown_command_is_reported_once() -> None:
    data = recipe(way("A", "B"), actions=tuple(action(name, "A", type_id="press") for name in ("x", "y")))
    ((level, name, _, remedy),) = types_in(data)
    assert (level, name) == ("information", "x")
    assert remedy == "Choose a type that the equipment takes, or add press to its type_ids."


def test_event_of_others_than_equipment_is_not_reported() -> None:
    data = recipe(way("A", "B"), actions=(wait("w", "A", type_id="order"), wait("v", "A", type_id=KNOWN[1])))
    assert types_in(data) == []
    misspelt = recipe(way("A", "B"), actions=(wait("w", "A", type_id="com.example.scaned.v1"),))
    assert [remedy for *_, remedy in types_in(misspelt)] == ["Did you mean com.example.scanned.v1?"]


def test_action_without_a_command_is_a_fault() -> None:
    data = recipe(way("A", "B"), actions=(action("a", "A", type_id=UNCHOSEN),))
    assert types_in(data, ()) == [
        ("fault", "a", "action a: its command or event is not chosen", "Choose a command or an event of action a.")
    ]


@pytest.mark.parametrize("name", shipped())
def test_recipe_of_examples_has_no_warning_at_another_station(name: str) -> None:
    findings = check_net(net_of(shipped()[name]), types=KNOWN).findings
    assert [item.message for item in findings if item.level is not FindingLevel.INFORMATION] == []


async def test_draft_is_checked_with_the_equipment_of_the_station(store: Store) -> None:
    desk = desk_with_equipment(store)
    assert declared_types(desk.settings) == (TIGHTEN, "code.v1")
    text = text_of(chain("A B", command("a", "A", type_id="tigthen.v1")))
    found = (await desk.check_text(text, ANNA.language)).findings
    assert [(item.kind, item.remedy) for item in found] == [("unknown-type", f"Did you mean {TIGHTEN}?")]

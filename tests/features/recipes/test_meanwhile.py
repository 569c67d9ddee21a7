"""A change is refused where it takes back what another person has written into the same member meanwhile."""

import pytest
from msgspec.structs import replace

from edge.features.recipes.changes import (
    Change,
    RenameAction,
    RenameElement,
    SetAction,
    SetBranch,
    SetRecipe,
    SetStep,
    SetTransition,
)
from edge.features.recipes.meanwhile import changed_meanwhile
from edge.foundation.errors import Refused
from edge.model.recipe import Step, Transition
from edge.store.client import Store
from tests.features.recipes.desks import ANNA, BEN, SCOPE, TEXT, desk_on
from tests.features.recipes.editing import LINE, done, read
from tests.sfc.recipes import action, chain

ACTION = LINE.actions[0]


@pytest.mark.parametrize(
    ("seen", "mine", "theirs"),
    [
        (SetStep("A", Step("A")), SetStep("A", Step("A", title="x")), SetStep("A", Step("A", title="y"))),
        (
            SetAction(0, ACTION),
            SetAction(0, replace(ACTION, timeout_seconds=3)),
            SetAction(0, replace(ACTION, timeout_seconds=4)),
        ),
        (
            SetTransition(0, Transition("A", "B", "always")),
            SetTransition(0, Transition("A", "B", "x")),
            SetTransition(0, Transition("A", "B", "y")),
        ),
        (SetRecipe(), SetRecipe(verdict="x"), SetRecipe(verdict="y")),
    ],
    ids=["step", "action", "transition", "recipe"],
)
def test_same_member_of_two_persons_is_a_conflict(seen: Change, mine: Change, theirs: Change) -> None:
    assert changed_meanwhile(LINE, mine, seen) == ()
    (difference,) = changed_meanwhile(done(LINE, theirs), mine, seen)
    assert difference.kind == "changed"
    assert changed_meanwhile(done(LINE, theirs), theirs, seen) == ()


def test_name_of_two_persons_is_a_conflict() -> None:
    seen, theirs = RenameAction("a", "a"), done(LINE, RenameAction("a", "theirs"))
    (difference,) = changed_meanwhile(theirs, RenameAction("theirs", "mine"), seen)
    assert (difference.name, difference.before, difference.after) == ("a", "a", "theirs")
    assert changed_meanwhile(LINE, RenameAction("a", "mine"), seen) == ()


def test_other_members_and_parameters_are_not_a_conflict() -> None:
    recipe = read(chain("A B", action("a", "A", parameters={"torque": 85, "angle": 3}, title={"en": "a", "de": "b"})))
    own = recipe.actions[0]
    theirs = replace(own, timeout_seconds=3, parameters={"torque": 90, "angle": 3}, title={"en": "a", "de": "c"})
    now = done(recipe, SetAction(0, theirs))
    mine = replace(theirs, parameters={"torque": 90, "angle": 4}, title={"en": "d", "de": "c"})
    assert changed_meanwhile(now, SetAction(0, mine), SetAction(0, own)) == ()
    torque = replace(theirs, parameters={"torque": 95, "angle": 3})
    (difference,) = changed_meanwhile(now, SetAction(0, torque), SetAction(0, own))
    assert (difference.member, difference.before, difference.after) == ("parameters.torque", 85, 90)


def test_element_that_is_gone_is_left_to_the_edit() -> None:
    for change in (SetStep("X", Step("X", title="x")), SetAction(9, ACTION), SetBranch("X", ("lock",))):
        assert changed_meanwhile(LINE, change, change) == ()
    assert changed_meanwhile(LINE, RenameElement("A", "X"), RenameAction("a", "a")) == ()


async def test_desk_refuses_to_take_back_the_change_of_another_person(store: Store) -> None:
    desk = desk_on(store)
    draft = await desk.create(SCOPE, "WM", ANNA, TEXT)
    seen = SetStep("A", Step("A", initial=True))
    draft, _ = await desk.edit(draft.id, draft.current, SetStep("A", Step("A", title="Bens")), BEN)
    with pytest.raises(Refused, match=r"ben has changed this meanwhile: step A: title .* to Bens") as refused:
        await desk.edit(draft.id, draft.current, SetStep("A", Step("A", title="Annas")), ANNA, seen)
    assert refused.value.kind == "draft_changed"
    draft, _ = await desk.edit(draft.id, draft.current, SetStep("A", Step("A", title="Annas")), ANNA)
    assert draft.current == 3

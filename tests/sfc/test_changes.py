"""The text of what a decision changed names every change, and is read as it was."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from edge.sfc.changes import ActionChange, changes_of, decode_changes, encode_changes, first_completed
from edge.sfc.identifiers import AssociationKey
from edge.sfc.run import ActionState
from edge.sfc.signal import Phase
from tests.sfc.charts import DAY, recipes
from tests.sfc.recipes import action, chain, net_of
from tests.sfc.test_advance_properties import MANY, Day, fresh, play


@MANY
@given(recipes(), DAY)
def test_changes_are_read_as_they_were_written(document: dict[str, Any], day: Day) -> None:
    net = net_of(document)
    for before, _, _, advanced in play(net, fresh(), day):
        changes = changes_of(net, before, advanced)
        assert decode_changes(net, encode_changes(net, changes)) == changes


@pytest.mark.parametrize("text", ["0z", "9d", "+0x", "x", ">0c", "0c>1S"])
def test_text_that_names_no_changes_is_refused(text: str) -> None:
    with pytest.raises((ValueError, LookupError)):
        decode_changes(net_of(chain("A B", action("one", "A"))), text)


def test_first_completed_action_is_named_by_its_latest_activation() -> None:
    left, second = AssociationKey("one", "A", 1, 3), AssociationKey("two", "B")
    changes = (ActionChange(second, ActionState.DISPATCHED), ActionChange(left, ActionState.COMPLETED))
    assert first_completed(changes) == AssociationKey("one", "A")
    assert first_completed(changes[:1]) is None


def test_reference_page_explains_every_letter_of_a_history_record() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "redis.md"
    table = page.read_text(encoding="utf-8").partition("| action | letters |")[2].partition("\n\n")[0]
    letters = re.findall(r"`(\w)`", table)
    net = net_of(chain("A B", action("one", "A")))
    read = [decode_changes(net, f"0{letter}") for letter in letters]
    assert {changes.actions[0].state for changes in read if changes.actions} == {*ActionState, None}
    assert {changes.commands[0].phase for changes in read if changes.commands} == set(Phase)
    assert len(letters) == len(set(letters)) == len(set(read))

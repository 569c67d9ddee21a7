"""Texts of drafts are looked at, edited, checked and compared; the program answers as this process does."""

import time

import msgspec
import pytest

from edge.features.recipes.changes import AddWay, InsertAfter, RenameElement, SetTransition
from edge.features.recipes.workbench import answer, answer_encoded, ask_here, checked, compared, edited, view
from edge.features.recipes.workbench_requests import CheckText, DraftCheck, EditText, EncodedAnswer, ViewText, text_of
from edge.foundation.errors import Refused
from edge.model.recipe import Transition
from tests.sfc.recipes import action, branch, chain, recipe, transition

SOUND = text_of(chain("A B", action("a", "A")))
STUCK = text_of(recipe("A B", [transition("A", "B", "actions.a.failed")], [action("a", "A")]))
LOST = (
    '{"steps": [{"name": "A", "initial": true}],\n "transitions": [{"source": "A", "target": "X", "condition": "1 <"}]}'
)


def test_faults_of_a_text_have_their_places() -> None:
    seen = view(LOST)
    assert {(item.element, item.number, item.line) for item in seen.problems} == {("transition", 0, 2)}
    assert "<svg" in seen.chart


def test_text_that_is_not_json_is_kept_with_line_and_column() -> None:
    seen = view('{"steps":\n  [}')
    assert (seen.text, seen.recipe, seen.chart) == ('{"steps":\n  [}', None, "")
    assert (seen.problems[0].line, seen.problems[0].column) == (2, 4)


def test_faults_of_syntax_are_in_the_language_of_the_reader() -> None:
    (fault,) = checked('{"steps":\n  [}', "de").problems
    assert fault.message.endswith("hier fehlt ein Wert: Zeile 2, Spalte 4 (Zeichen 13)")
    assert (fault.line, fault.column) == (2, 4)
    (condition,) = checked(LOST.replace("X", "A"), "fr").problems
    assert condition.message.endswith("il manque une valeur à la fin (au caractère 4)")


def test_problems_of_an_edited_draft_are_in_the_language_of_the_reader() -> None:
    """The editor had them in English only."""
    (seen,) = answer(ViewText(LOST.replace("X", "A"), language="de")).problems  # type: ignore[attr-defined]
    assert seen.message.endswith("am Ende fehlt ein Wert (bei Zeichen 4)")
    after = answer(EditText(LOST, InsertAfter("A", "B"), language="fr"))
    assert "{" not in "".join(problem.message for problem in after.problems)  # type: ignore[attr-defined]
    assert after != answer(EditText(LOST, InsertAfter("A", "B")))


def test_change_of_a_text_is_drawn() -> None:
    seen = edited(SOUND, InsertAfter("A", "Verify"))
    assert ">Verify</text>" in seen.chart
    assert not seen.problems


def test_change_of_60_steps_takes_a_part_of_the_budget() -> None:
    """The editor shows a change within 150 ms; the browser and the way there need theirs."""
    names = " ".join(f"S{number}" for number in range(60))
    ways = [
        transition(f"S{number}", f"S{number + 1}", f"actions.a{number}.result.torque > {number}")
        for number in range(59)
    ]
    text = text_of(recipe(names, ways, [action(f"a{number}", f"S{number}") for number in range(60)]))
    took = []
    for number in range(9):
        before = time.process_time()
        edited(text, RenameElement("S5", f"Fit {number}"))
        took.append(time.process_time() - before)
    assert sorted(took)[len(took) // 2] < 0.075


def test_impossible_change_is_refused_with_its_reason() -> None:
    with pytest.raises(Refused, match="'B' is used already"):
        edited(SOUND, RenameElement("A", "B"))
    with pytest.raises(Refused, match="not JSON"):
        edited("{", RenameElement("A", "B"))


def test_check_finds_a_dead_end_with_its_place() -> None:
    result = checked(STUCK, "en")
    assert [(item.kind, item.element.name) for item in result.findings if item.level == "fault"] == [("dead-end", "A")]
    assert result.findings[0].line is not None
    assert checked("{", "en").problems
    assert checked(LOST, "en").problems


def test_differences_are_in_words_of_the_reader() -> None:
    longer = edited(SOUND, InsertAfter("A", "Verify")).text
    assert "step Verify added" in compared(SOUND, longer, "en").words
    assert "Schritt Verify hinzugefügt" in compared(SOUND, longer, "de").words
    assert "step Verify removed" in compared(longer, SOUND, "en").words
    assert compared(SOUND, SOUND, "en").words == ()


def test_way_is_stated_with_its_condition_and_order() -> None:
    """The list of a comparison lacked them where a transition came, went or was tried elsewhere."""
    wider = edited(SOUND, AddWay("A", "A", "actions.a.attempts < 3")).text
    assert compared(SOUND, wider, "en").words == (
        "transition A → B: order of the ways changed from 1 to 2",
        "transition A → A added: actions.a.attempts < 3 (order 1)",
    )
    words = compared(wider, SOUND, "de").words
    assert "Transition A → A entfernt: actions.a.attempts < 3 (Reihenfolge 1)" in words
    other = edited(SOUND, SetTransition(0, Transition("A", "B", "x"))).text
    assert compared(SOUND, other, "fr").words == ("transition A → B : condition changé de always en x",)


def test_paths_of_a_branch_are_stated_as_the_chart_shows_them() -> None:
    ways = [transition("I", "P")]
    old = text_of(recipe("I A B", ways, [], branch("P", "simultaneous", "A", "B")))
    new = text_of(recipe("I A B C", ways, [], branch("P", "simultaneous", "A", "B C")))
    assert "branch P: branches changed from A | B to A | B → C" in compared(old, new, "en").words


async def test_program_answers_as_this_process() -> None:
    encoded = msgspec.json.decode(answer_encoded(msgspec.json.encode(CheckText(STUCK))), type=EncodedAnswer)
    assert encoded.refusal is None
    assert msgspec.json.decode(encoded.value, type=DraftCheck) == await ask_here(CheckText(STUCK), DraftCheck)


def test_program_answers_a_refusal_with_its_text() -> None:
    request = msgspec.json.encode(EditText(SOUND, RenameElement("A", "B")))
    refusal = msgspec.json.decode(answer_encoded(request), type=EncodedAnswer).refusal
    assert refusal is not None
    assert (refusal.kind, str(refusal.reason)) == ("impossible_edit", "the name 'B' is used already")
    assert msgspec.json.decode(answer_encoded(msgspec.json.encode(ViewText("{"))), type=EncodedAnswer).value


def test_declaration_of_xml_with_many_blanks_is_read_at_once() -> None:
    """Its pattern takes the square of the blanks in time: 200 000 took more than 100 s."""
    before = time.process_time()
    assert view("<?xml" + " " * 60_000).problems
    assert time.process_time() - before < 0.5

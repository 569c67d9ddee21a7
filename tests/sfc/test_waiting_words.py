"""What a run waits for, in words of people."""

from typing import Any

import pytest

from edge.foundation.text import Text, stated_in
from edge.model.recipe import Intervention
from edge.sfc.run import Sending
from edge.sfc.signal import Intervene, Pause, SecondPerson, Unknown
from edge.sfc.waiting_words import NEEDS_A_PERSON, WaitFacts, WaitInWords, WaitKind, waits_in_words
from tests.sfc.driving import Driven
from tests.sfc.recipes import Json, action, chain, net_of, recipe, step, transition, wait

_FACTS = WaitFacts(equipment={"bolt.v1": "wrench"})


def _waits(driven: Driven, now: int, facts: WaitFacts = _FACTS, *languages: str) -> tuple[WaitInWords, ...]:
    return waits_in_words(driven.net, driven.run, now, languages, facts)


def _one(data: Json, now: int = 12_000, **facts: Any) -> WaitInWords:
    (words,) = _waits(Driven(net_of(data)), now, WaitFacts(**facts) if facts else _FACTS)
    return words


def test_command_waits_for_its_equipment_of_the_time_allowed() -> None:
    words = _one(chain("A B", action("bolt", "A", timeout_seconds=45)))
    assert (words.kind, words.title, str(words.text)) == (WaitKind.EQUIPMENT, "Bolt", "waits for wrench")
    assert (words.waited_ms, words.allowed_ms) == (12_000, 45_000)


def test_command_that_has_not_left_is_not_sent_yet() -> None:
    driven = Driven(net_of(chain("A B", action("bolt", "A"))))
    facts = WaitFacts(unsent={"J1/R1/bolt/1": Sending.NOT_YET}, equipment={"bolt.v1": "wrench"})
    assert [str(words.text) for words in _waits(driven, 1000, facts)] == ["not sent to wrench yet"]


def test_command_whose_note_may_be_missing_may_have_been_sent() -> None:
    """It was "not sent to wrench yet" while the wrench turned, and the store accepted no note of it."""
    driven = Driven(net_of(chain("A B", action("bolt", "A"))))
    for equipment, english, german in (
        ({"bolt.v1": "wrench"}, "may have been sent to wrench", "vielleicht an wrench gesendet"),
        ({}, "may have been sent", "vielleicht gesendet"),
    ):
        (words,) = _waits(driven, 1000, WaitFacts(unsent={"J1/R1/bolt/1": Sending.MAYBE}, equipment=equipment))
        assert (words.kind, str(words.text), stated_in(words.text, "de")) == (WaitKind.EQUIPMENT, english, german)


def test_wait_for_equipment_names_why_it_cannot_work() -> None:
    data = chain("A B", action("bolt", "A"))
    away = {"wrench": "not connected"}
    assert str(_one(data, equipment={"bolt.v1": "wrench"}, obstacles=away).text) == "waits for wrench: not connected"
    assert str(_one(data, equipment={"bolt.v1": "camera"}, obstacles=away).text) == "waits for camera"


def test_event_without_known_equipment_waits_for_the_answer() -> None:
    words = _one(chain("A B", wait("code", "A")))
    assert (words.title, str(words.text)) == ("Code", "waits for the answer")


def test_title_of_an_action_is_in_the_language_of_the_reader() -> None:
    titled = {**action("bolt", "A"), "title": {"en": "Tighten", "de": "Anziehen"}}
    driven = Driven(net_of(chain("A B", titled)))
    (words,) = _waits(driven, 0, _FACTS, "de")
    assert (words.title, stated_in(words.text, "de")) == ("Anziehen", "wartet auf wrench")


def test_unfulfilled_condition_is_named_without_a_formula() -> None:
    words = _one(recipe("A B", [transition("A", "B", "part_present == 'yes' and pressure > 3")]))
    assert (words.kind, words.title, str(words.text)) == (WaitKind.CONDITION, "Part present, Pressure", "not yet")
    assert not set("=>()'") & set(words.title)


def test_condition_about_an_action_at_work_is_left_to_the_action() -> None:
    """Below the question of an operator stood "Look, Choice: not yet"."""
    data = recipe("A B", [transition("A", "B", "actions.look.done and choice == 'flush'")], [action("look", "A")])
    assert [words.title for words in _waits(Driven(net_of(data)), 1000)] == ["Look"]


def test_transition_with_a_title_is_named_by_it() -> None:
    words = _one(recipe("A B", [{**transition("A", "B", "part_present"), "title": "Part is in the fixture"}]))
    assert words.title == "Part is in the fixture"


def test_wait_for_time_has_the_time_that_is_left() -> None:
    words = _one(recipe("A B", [transition("A", "B", "steps.A.T >= 30")]))
    assert (words.kind, words.waited_ms, words.allowed_ms) == (WaitKind.TIME, 12_000, 30_000)


def test_lock_names_its_holder_and_its_time() -> None:
    data = recipe("A B", [transition("A", "B")])
    data["steps"] = [step("A", initial=True), step("B", lock=["left_fixture"], lock_timeout_seconds=60)]
    driven = Driven(net_of(data))
    facts = WaitFacts(holders={"left_fixture": Text("held by job J2")})
    (words,) = _waits(driven, 5000, facts)
    assert (words.kind, words.title, str(words.text)) == (WaitKind.LOCK, "Left fixture", "held by job J2")
    assert (words.waited_ms, words.allowed_ms) == (5000, 60_000)


def _failed() -> Driven:
    driven = Driven(
        net_of({**chain("A B", action("bolt", "A"), wait("code", "A")), "interventions": ["retry", "skip"]})
    )
    driven.answer("bolt", 100, error="torque low")
    return driven


def test_decision_of_a_person_comes_first() -> None:
    words = _waits(_failed(), 200)
    assert [item.kind for item in words] == [WaitKind.FAILURE, WaitKind.EQUIPMENT]
    assert (words[0].title, str(words[0].text), words[0].action) == ("Bolt", "failed: torque low", "bolt")


def test_second_person_is_asked_with_the_first_one_named() -> None:
    driven = _failed()
    asked = Intervene(Intervention.SKIP, action="bolt", reason="no bolt", by="anna", second=SecondPerson(60_000))
    driven.signal(asked, 200)
    (words,) = (item for item in _waits(driven, 300) if item.kind is WaitKind.SECOND_PERSON)
    assert words.intervention == "skip"
    assert str(words.text) == "anna asks for: skip. A second person confirms it."
    assert stated_in(words.text, "de") == "anna bittet um: Überspringen. Eine zweite Person bestätigt es."


def test_unknown_outcome_needs_a_person() -> None:
    driven = Driven(net_of(chain("A B", action("bolt", "A"))))
    driven.signal(Unknown("J1/R1/bolt/1", "power lost"), 100)
    (words,) = _waits(driven, 200)
    assert words.kind in NEEDS_A_PERSON
    assert "power lost" in str(words.text)


def test_unknown_outcome_asks_to_look_at_the_work_of_its_step() -> None:
    data = chain("A B", {**action("bolt", "A"), "title": {"en": "Tighten", "de": "Anziehen"}})
    data["steps"][0]["title"] = {"en": "Bolt 1", "de": "Schraube 1"}
    driven = Driven(net_of(data))
    driven.signal(Unknown("J1/R1/bolt/1", "power lost"), 100)
    for language, ask in (
        ("en", "Look at “Bolt 1 – Tighten”, then decide"),
        ("de", "Prüfen Sie „Schraube 1 – Anziehen“ und entscheiden Sie dann"),
    ):
        (words,) = _waits(driven, 200, _FACTS, language)
        assert stated_in(words.ask, language) == ask


def test_paused_job_waits_for_its_resume() -> None:
    driven = Driven(net_of(chain("A B", action("bolt", "A"))))
    driven.signal(Pause(), 1000)
    assert [item.kind for item in _waits(driven, 3000)] == [WaitKind.PAUSE, WaitKind.EQUIPMENT]


@pytest.mark.parametrize("now", [0, 500])
def test_run_that_has_ended_waits_for_nothing(now: int) -> None:
    assert _waits(Driven(net_of(chain("A B"))), now) == ()

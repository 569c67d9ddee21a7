"""The choice of a person with which a job is not OK is known, with the person."""

from typing import Any

import msgspec

from edge.features.archive.choices import DecidingChoice, deciding_choices, skipped_actions
from edge.model.recipe import Intervention
from edge.sfc.signal import Intervene, PersonAnswer
from edge.sfc.verdict import NOT_OK, verdict_of
from tests.sfc.driving import Driven
from tests.sfc.recipes import action, chain, net_of

CHOOSE = "com.example.operator.choose.v1"
PROUD = {"en": "No, it stands out", "de": "Nein, er steht vor"}
CHOICES = [{"value": "flush", "title": "Yes"}, {"value": "proud", "title": PROUD}]


def _ask(name: str, step: str) -> dict[str, Any]:
    return action(name, step, type_id=CHOOSE, parameters={"title": "Flush?", "choices": CHOICES})


def _driven(verdict: str, **answers: str) -> Driven:
    """Return a run whose prompts were answered by anna, in this order."""
    driven = Driven(net_of({**chain("A B C", _ask("first", "A"), _ask("second", "B")), "verdict": verdict}))
    for at, (name, choice) in enumerate(answers.items(), start=1):
        driven.signal(PersonAnswer(f"J1/R1/{name}/1", {"choice": choice}, "anna"), 100 * at)
    assert verdict_of(driven.net, driven.run, 0) == NOT_OK
    return driven


def test_choice_that_made_a_job_not_ok_is_named_with_the_person() -> None:
    driven = _driven('choice == "flush"', first="flush", second="proud")
    (choice,) = deciding_choices(driven.net, driven.run)
    assert choice == DecidingChoice("second", PROUD, "anna")
    assert choice.text() == "second: No, it stands out"
    assert choice.remark("de") == "second: Nein, er steht vor (anna)"


def test_only_the_choice_that_counts_is_named() -> None:
    driven = _driven('actions.first.result.choice == "flush"', first="proud", second="proud")
    assert [choice.action for choice in deciding_choices(driven.net, driven.run)] == ["first"]


def test_last_choice_is_named_where_the_verdict_asks_for_the_way() -> None:
    driven = _driven("steps.B.count > 5", first="proud", second="proud")
    assert [choice.action for choice in deciding_choices(driven.net, driven.run)] == ["second"]


def test_choice_that_a_tool_reports_is_not_one_of_a_person() -> None:
    driven = Driven(net_of({**chain("A B", _ask("first", "A")), "verdict": 'choice == "flush"'}))
    driven.answer("first", 100, {"choice": "proud"})
    assert deciding_choices(driven.net, driven.run) == ()


def test_skipped_action_is_a_reason_with_the_person() -> None:
    driven = Driven(net_of({**chain("A B", action("bolt", "A")), "interventions": ["skip"]}))
    driven.signal(Intervene(Intervention.SKIP, action="bolt", reason="no bolt left", by="anna"), 50)
    (choice,) = skipped_actions(driven.run)
    assert choice.remark() == "bolt: Skipped (anna: no bolt left)"


def test_skipped_action_is_read_as_it_was_written() -> None:
    """A search that met such a job failed: its empty title was refused."""
    skipped = DecidingChoice("bolt", "", "anna: no bolt left")
    assert msgspec.json.decode(msgspec.json.encode(skipped), type=DecidingChoice) == skipped

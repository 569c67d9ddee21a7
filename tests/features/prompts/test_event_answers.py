"""Buttons and codes answer the prompt of their scope, each event once, and none where a person must log in."""

from typing import Any

import pytest

from edge.features.prompts.answering import PromptContext, load_jobs, open_prompts
from edge.features.prompts.event_answers import EventAnswers, by_button, by_code, scanned_field
from edge.features.prompts.open_prompt import OpenPrompt
from edge.features.prompts.prompt import PromptKind, parse_prompt
from edge.foundation.errors import Refused
from edge.station.equipment import EquipmentEvent, Task
from edge.station.public_result import public_results
from edge.station.stored_job import find
from tests.features.prompts.conftest import ask
from tests.features.prompts.recipes import CHOOSE, CONFIRM, prompt
from tests.station.plant import SCAN, SCOPE, Plant, pull

BUTTON, CODE = "com.example.button.v1", "com.example.code.v1"
SCANNED = prompt("enter", fields=[{"name": "serial", "type": "scan"}, {"name": "note", "optional": True}])


def event(type_id: str, event_id: str = "1", scope: str = SCOPE, **data: Any) -> EquipmentEvent:
    return EquipmentEvent("urn:microdcs-edge:equipment:scanner", event_id, type_id, scope, data)


@pytest.fixture
def answering(plant: Plant, context: PromptContext) -> Plant:
    """A station whose buttons and codes answer prompts."""
    answers = EventAnswers(context, {BUTTON: by_button, CODE: by_code})
    plant.runs.event_takers.append(answers.take)
    return plant


async def is_open(context: PromptContext) -> bool:
    return bool(open_prompts(context, await load_jobs(context.runs), (SCOPE,)))


@pytest.mark.parametrize(
    ("action", "given", "result"),
    [
        (CONFIRM, event(BUTTON, pressed=True), {"confirmed": True}),
        (CHOOSE, event(CODE, code="defective"), {"choice": "defective"}),
        (SCANNED, event(CODE, code="S\x1d1"), {"serial": "S\x1d1"}),
    ],
    ids=["confirm", "choose", "enter"],
)
async def test_event_answers_the_prompt_of_its_scope(
    answering: Plant, context: PromptContext, action: dict[str, object], given: EquipmentEvent, result: object
) -> None:
    await ask(answering, "J1", action)
    elsewhere = EquipmentEvent(given.source, "0", given.type_id, "elsewhere", given.data)
    assert await answering.answers.event(elsewhere) is None
    assert await is_open(context)
    assert await answering.answers.event(given) == Task("J1", "ask", {})
    assert not await is_open(context)
    stored = await find(answering.store, "J1")
    assert stored
    assert [found.result for found in public_results(stored)] == [result]


@pytest.mark.parametrize("parameters", [{"role": "operator"}, {"second_person": True}], ids=str)
async def test_event_does_not_answer_where_a_person_must_log_in(
    answering: Plant, context: PromptContext, parameters: dict[str, Any]
) -> None:
    await ask(answering, "J1", prompt("confirm", **parameters))
    assert await answering.answers.event(event(BUTTON)) is None
    assert await is_open(context)


async def test_event_of_another_type_answers_nothing(answering: Plant, context: PromptContext) -> None:
    await ask(answering, "J1", CONFIRM)
    assert await answering.answers.event(event("com.example.other.v1")) is None
    assert await answering.answers.event(event(CODE, code="ok")) is None
    assert await is_open(context)


async def test_button_for_two_prompts_answers_none(answering: Plant, context: PromptContext) -> None:
    await ask(answering, "J1", CONFIRM)
    await ask(answering, "J2", CONFIRM)
    assert await answering.answers.event(event(BUTTON)) is None
    assert await is_open(context)


async def test_repeated_event_does_not_answer_the_next_prompt(answering: Plant, context: PromptContext) -> None:
    await ask(answering, "J1", CONFIRM, prompt("confirm", name="again", step="Again"))
    pressed = event(BUTTON)
    for _ in range(2):
        assert await answering.answers.event(pressed) == Task("J1", "ask", {})
    assert await is_open(context)
    assert await answering.answers.event(event(BUTTON, "2")) == Task("J1", "again", {})


async def test_job_that_waits_for_the_event_takes_it(plant: Plant, context: PromptContext) -> None:
    """An action that pulls the event comes before the prompt of another job."""
    plant.runs.event_takers.append(EventAnswers(context, {SCAN: by_button}).take)
    await ask(plant, "J1", CONFIRM)
    await ask(plant, "J2", pull("wait", "Wait", SCAN))
    task = await plant.answers.event(event(SCAN))
    assert isinstance(task, Task)
    assert task.job_id == "J2"
    assert await is_open(context)


def opened(kind: PromptKind, *fields: dict[str, Any]) -> OpenPrompt:
    found, faults = parse_prompt(kind, {"title": "x", "fields": list(fields)})
    assert found, faults
    return OpenPrompt("J1/0/ask/1", kind, found, SCOPE, "J1", "Ask", "ask", 0)


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        (({"name": "serial", "type": "scan"},), "serial"),
        (({"name": "serial", "type": "scan"}, {"name": "mass", "type": "number"}), ""),
        (({"name": "one", "type": "scan"}, {"name": "two", "type": "scan"}), ""),
        (({"name": "mass", "type": "number"},), ""),
    ],
)
def test_code_fills_the_only_value_that_must_be_there(fields: tuple[dict[str, Any], ...], name: str) -> None:
    assert scanned_field(opened(PromptKind.ENTER, *fields)) == name


def test_code_that_names_a_choice_comes_before_a_value() -> None:
    chosen, faults = parse_prompt(PromptKind.CHOOSE, {"title": "x", "choices": [{"value": "ok"}, {"value": "no"}]})
    assert chosen, faults
    choosing = OpenPrompt("J2/0/ask/1", PromptKind.CHOOSE, chosen, SCOPE, "J2", "Ask", "ask", 0)
    entering = opened(PromptKind.ENTER, {"name": "serial", "type": "scan"})
    assert by_code([entering, choosing], {"code": "ok"}).prompt is choosing
    assert by_code([entering, choosing], {"code": "S1"}).prompt is entering
    with pytest.raises(Refused, match="no code"):
        by_code([entering], {})

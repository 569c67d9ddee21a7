"""The MES lists and answers prompts: once for each event, never where a person must log in."""

import pytest

from edge.features.prompts.answering import PromptAnswered, PromptContext, Prompts
from edge.features.prompts.calls import PromptCalls
from edge.features.prompts.open_prompt import PromptList
from edge.foundation.errors import Refused
from edge.model.cloudevent import CloudEvent
from edge.model.event_types import PROMPT_METHOD_TYPE
from edge.station.active_runs import ActiveRuns
from tests.features.prompts.conftest import ask
from tests.features.prompts.recipes import CHOOSE, ENTER, prompt
from tests.station.plant import SCOPE, Plant


@pytest.fixture
def calls(plant: Plant, context: PromptContext) -> PromptCalls:
    active = ActiveRuns(plant.runs, (SCOPE,))
    return PromptCalls(Prompts(context, (SCOPE,), active.loaded.values))


def event(method: str, data: object = None, id_: str = "e1", **members: str) -> CloudEvent:
    return CloudEvent(id=id_, source="/mes", type=PROMPT_METHOD_TYPE.format(method), data=data, **members)  # type: ignore[arg-type]


async def test_mes_lists_and_answers_a_prompt(plant: Plant, calls: PromptCalls) -> None:
    await ask(plant, "J1", ENTER)
    listed = await calls.list_open(event("List", subject=SCOPE), "topic")
    assert isinstance(listed, PromptList)
    (only,) = listed.prompts
    answer = event("Answer", {"Prompt": only.id, "Values": {"mass": 5, "serial": "S1"}, "By": "anna"})
    first, again = [await calls.answer(answer, "topic") for _ in range(2)]
    assert isinstance(first.data, PromptAnswered)
    assert (first.data.by, first.data.result) == ("anna", {"mass": {"value": 5, "unit": "kg"}, "serial": "S1"})
    assert first.change
    assert (first.change.action, first.change.subject, first.change.by) == ("Answer prompt", "J1/ask", "anna")
    assert isinstance(again.data, PromptAnswered)
    assert (await calls.list_open(event("List"), "topic")).prompts == ()


async def test_prompts_of_another_scope_are_not_listed(plant: Plant, calls: PromptCalls) -> None:
    await ask(plant)
    assert (await calls.list_open(event("List", subject="elsewhere"), "topic")).prompts == ()
    assert len((await calls.list_open(event("List"), "rpc")).prompts) == 1


async def test_mes_cannot_answer_for_a_person_who_must_log_in(plant: Plant, calls: PromptCalls) -> None:
    await ask(plant, "J1", prompt("confirm", role="operator"))
    (only,) = (await calls.list_open(event("List"), "topic")).prompts
    with pytest.raises(Refused) as refused:
        await calls.answer(event("Answer", {"Prompt": only.id, "By": "anna"}), "topic")
    assert refused.value.kind == "no_login"


@pytest.mark.parametrize("data", [None, {}, {"Prompt": 1}, {"Prompt": "x", "Value": {}}])
async def test_wrong_arguments_are_refused(calls: PromptCalls, data: object) -> None:
    with pytest.raises(Refused):
        await calls.answer(event("Answer", data), "topic")


async def test_caller_without_a_name_is_named_by_its_source(plant: Plant, calls: PromptCalls) -> None:
    await ask(plant, "J1", CHOOSE)
    (only,) = (await calls.list_open(event("List"), "topic")).prompts
    answered = await calls.answer(event("Answer", {"Prompt": only.id, "Choice": "ok"}), "rpc")
    assert isinstance(answered.data, PromptAnswered)
    assert answered.data.by == "/mes"

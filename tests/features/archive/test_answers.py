"""What people answered to prompts is kept in the words of the recipe, with the person."""

from functools import partial

from edge.features.archive.answers import PromptAnswer, prompt_answers
from edge.model.job_state import Cause
from edge.sfc.signal import PersonAnswer
from edge.station.stored_job import load
from tests.station.plant import Clock, FakeEquipment, Plant, action, linear, order, until_true

NOT_OK = {"en": "Not OK", "de": "Nicht OK"}
PROMPTS = (
    {"title": {"en": "Is the gap OK?"}, "choices": [{"value": "not_ok", "title": NOT_OK}]},
    {"title": "Weigh it", "fields": [{"name": "mass", "title": "Weight"}, {"name": "serial"}]},
    {"title": "Seat the cable"},
)
ANSWERS: tuple[dict[str, object], ...] = (
    {"choice": "not_ok"},
    {"mass": {"value": 5.5, "unit": "kg"}, "serial": "S1"},
    {},
)


async def test_each_answer_is_kept_with_its_prompt_and_person(plant: Plant, tool: FakeEquipment, clock: Clock) -> None:
    tool.replies = lambda _: None
    asks = (action(f"a{number}", f"s{number}", parameters=given) for number, given in enumerate(PROMPTS))
    await plant.teach("asks", linear(*asks))
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1", "asks"))
        for number, data in enumerate(ANSWERS):
            await until_true(partial(_has_received, tool, number + 1))
            clock.now += 1000
            await plant.runs.signal("J1", PersonAnswer(tool.commands[number].command_id, data, "anna"))
    assert prompt_answers(await load(plant.store, "J1")) == (
        PromptAnswer({"en": "Is the gap OK?"}, NOT_OK, "anna"),
        PromptAnswer("Weigh it", "Weight 5.5 kg, Serial S1", "anna"),
        PromptAnswer("Seat the cable", None, "anna"),
    )


def _has_received(tool: FakeEquipment, number: int) -> bool:
    return len(tool.commands) == number


async def test_result_of_a_tool_is_not_an_answer(plant: Plant) -> None:
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
    assert prompt_answers(await load(plant.store, "J1")) == ()

"""The button of a stack light at GPIO lines confirms the prompt of its scope, one for each press."""

from edge.features.lamps.equipment import open_stacklight
from edge.features.lamps.settings import StackLightSettings
from edge.features.prompts.answering import PromptContext, load_jobs, open_prompts
from edge.features.prompts.event_answers import EventAnswers, by_button
from edge.model.job_state import JobState
from edge.station.runs import Progress
from tests.conftest import WaitUntil
from tests.features.lamps.test_equipment import Desk
from tests.features.prompts.conftest import (  # noqa: F401 - fixtures
    ask,
    clock,
    context,
    equipment,
    plant,
)
from tests.features.prompts.recipes import CONFIRM, prompt
from tests.station.plant import SCOPE, Plant

BUTTON = "com.example.station.confirmed.v1"
SETTINGS = StackLightSettings(
    kind="stacklight", type_ids=("com.example.light.v1",), chip="desk", lamps={"green": 22}, buttons={BUTTON: 5}
)


async def test_button_of_a_stack_light_confirms_one_prompt_for_each_press(
    plant: Plant,  # noqa: F811
    context: PromptContext,  # noqa: F811
    wait_until: WaitUntil,
) -> None:
    desk = Desk()
    plant.runs.event_takers.append(EventAnswers(context, {BUTTON: by_button}).take)

    async def asked() -> list[str]:
        return [found.action for found in open_prompts(context, await load_jobs(context.runs), (SCOPE,))]

    await ask(plant, "J1", CONFIRM, prompt("confirm", name="again", step="Again"))
    moves: list[Progress] = []
    plant.runs.listeners.append(moves.append)
    async with open_stacklight("light", SETTINGS, plant.answers, (SCOPE,), lines_factory=desk.lines) as light:
        await wait_until(lambda: light.connected)
        for number, action in enumerate(("ask", "again"), 1):
            assert await asked() == [action]
            desk.presses.put_nowait(BUTTON)
            await wait_until(lambda number=number: len(moves) == number)
    assert await asked() == []
    assert (await plant.job("J1")).status.state is JobState.ENDED

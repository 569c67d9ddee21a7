"""A gateway asks the people at the station; a prompt that cannot be asked fails, and a restart keeps the open ones."""

from collections.abc import Sequence

from edge.app.wiring import open_gateway
from edge.config import MqttSettings, RedisSettings, Settings
from edge.features.prompts.answering import PromptContext, load_jobs, open_prompts
from edge.features.prompts.open_prompt import OpenPrompt
from edge.features.prompts.settings import OperatorSettings
from edge.model.isa95 import WorkMaster
from edge.model.job_state import Cause, JobState
from edge.model.recipe import RECIPE_DATASCHEMA
from edge.store import resources
from edge.store.client import Store
from tests.app.running import NO_OPCUA
from tests.features.prompts.recipes import CONFIRM, TYPES, prompt
from tests.station.plant import SCOPE, Plant, linear, order, until


def settings_for(redis: RedisSettings) -> Settings:
    people = OperatorSettings(kind="operator", type_ids=tuple(sorted(TYPES)))
    return Settings(redis=redis, mqtt=MqttSettings(url=""), opcua=NO_OPCUA, southbound={"people": people})


async def teach(store: Store, recipe: dict[str, object]) -> None:
    master = WorkMaster(id="ask", data=recipe, dataschema=RECIPE_DATASCHEMA)
    await store.commit(resources.save_work_master(store.keys, SCOPE, master))


async def test_prompt_waits_over_a_restart_of_the_gateway(redis: RedisSettings, plant: Plant) -> None:
    context = PromptContext(plant.runs, TYPES, 60_000, 60_000)

    async def opened() -> Sequence[OpenPrompt]:
        return open_prompts(context, await load_jobs(plant.runs), (SCOPE,))

    async def is_asked() -> bool:
        return bool(await opened())

    await teach(plant.store, linear(CONFIRM, {**CONFIRM, "name": "next", "step": "Next"}))
    async with open_gateway(settings_for(redis)):
        await plant.order(Cause.STORE_AND_START, order("J1", "ask"))
        await until(is_asked)
        (before,) = await opened()
    async with open_gateway(settings_for(redis)):
        assert await opened() == (before,)


async def test_prompt_that_cannot_be_asked_fails_its_job(redis: RedisSettings, plant: Plant) -> None:
    # As an earlier release, or a program, may have stored it.
    await teach(plant.store, linear(prompt("choose")))
    async with open_gateway(settings_for(redis)):
        await plant.order(Cause.STORE_AND_START, order("J1", "ask"))
        job = await plant.until_state("J1", JobState.ABORTED)
    assert "the prompt cannot be asked: choices: expected 2 to 6, not 0" in str(job.error)

"""Prompts are published to a real broker when they open and end; what is not confirmed is published again."""

from typing import Any

from edge.config import MqttSettings
from edge.features.prompts import keys as prompts_keys
from edge.features.prompts.answer import GivenAnswer
from edge.features.prompts.answering import Person, PromptContext, Prompts
from edge.features.prompts.prompt_changes import opened_with
from edge.features.prompts.prompt_publisher import MOST_WAITING, PromptPublisher
from edge.foundation.task_group import background_task
from edge.links.mqtt import Message, MqttSession, open_session, to_event
from edge.model.cloudevent import CloudEvent
from edge.model.user import Role
from edge.northbound.topics import Topics
from edge.station.active_runs import ActiveRuns
from tests.conftest import WaitUntil
from tests.features.prompts.conftest import ask
from tests.features.prompts.recipes import CHOOSE, TYPES
from tests.station.plant import SCOPE, Plant

ANNA = Person("anna", Role.OPERATOR)


class Site:
    """A station whose prompts are published, and what the MES receives."""

    def __init__(self, plant: Plant, context: PromptContext, unique: str) -> None:
        plant.runs.additions.append(lambda decision: opened_with(plant.store.keys, TYPES, decision))
        self.plant = plant
        self.active = ActiveRuns(plant.runs, (SCOPE,))
        self.prompts = Prompts(context, (SCOPE,), lambda: tuple(self.active.loaded.values()))
        self.topics = Topics(unique, SCOPE)
        self.received: list[CloudEvent] = []

    async def take(self, message: Message) -> None:
        self.received.append(to_event(message))

    def publisher(self, session: MqttSession) -> PromptPublisher:
        return PromptPublisher(self.plant.runs, self.active, self.prompts, session, "urn:x", self.topics, retry_s=0.05)

    async def answer(self) -> None:
        (found,) = self.prompts.open
        await self.prompts.answer(found.id, GivenAnswer(choice="ok"), ANNA, "test", "1")

    async def waiting(self) -> int:
        return int(await self.plant.store.execute("HLEN", prompts_keys.prompts(self.plant.store.keys, SCOPE)))


def changes(events: list[CloudEvent]) -> list[Any]:
    return [(event.data["change"], event.data["outcome"], event.data["by"]) for event in events]


async def test_prompt_is_published_when_it_opens_and_when_it_ends(
    plant: Plant, context: PromptContext, mqtt: MqttSettings, unique: str, wait_until: WaitUntil
) -> None:
    site = Site(plant, context, unique)
    async with open_session(mqtt, f"{unique}-mes") as mes, open_session(mqtt, f"{unique}-edge") as session:
        await mes.subscribe(site.topics.events, site.take)
        async with background_task(site.publisher(session).run(), "prompts"):
            await ask(plant, "J1", CHOOSE)
            await wait_until(lambda: len(site.received) == 1)
            await site.answer()
            await wait_until(lambda: len(site.received) == 2)
    assert changes(site.received) == [("opened", "", ""), ("ended", "completed", "anna")]
    assert site.received[1].data["result"] == {"choice": "ok"}
    assert await site.waiting() == 0


async def test_prompt_without_a_publisher_is_published_later(
    plant: Plant, context: PromptContext, mqtt: MqttSettings, unique: str, wait_until: WaitUntil
) -> None:
    site = Site(plant, context, unique)
    await ask(plant, "J1", CHOOSE)
    await site.answer()
    async with open_session(mqtt, f"{unique}-mes") as mes, open_session(mqtt, f"{unique}-edge") as session:
        await mes.subscribe(site.topics.events, site.take)
        async with background_task(site.publisher(session).run(), "prompts"):
            await wait_until(lambda: len(site.received) == 2)
    assert changes(site.received) == [("opened", "", ""), ("ended", "completed", "anna")]


async def test_prompt_that_a_command_opened_is_published(
    plant: Plant, context: PromptContext, mqtt: MqttSettings, unique: str, wait_until: WaitUntil
) -> None:
    site = Site(plant, context, unique)
    plant.runs.additions.clear()
    await ask(plant, "J1", CHOOSE)
    async with open_session(mqtt, f"{unique}-mes") as mes, open_session(mqtt, f"{unique}-edge") as session:
        await mes.subscribe(site.topics.events, site.take)
        async with background_task(site.publisher(session).run(), "prompts"):
            await wait_until(lambda: len(site.received) == 1)
    assert changes(site.received) == [("opened", "", "")]


async def test_unreadable_and_too_many_prompts_are_forgotten(
    plant: Plant, context: PromptContext, mqtt: MqttSettings, unique: str
) -> None:
    site = Site(plant, context, unique)
    await ask(plant, "J1", CHOOSE)
    key = prompts_keys.prompts(plant.store.keys, SCOPE)
    ((_, text),) = (await plant.store.execute("HGETALL", key)).items()
    late = text.replace("1970", "1999")
    await plant.store.execute(
        "HSET", key, "broken", "{", *(part for number in range(MOST_WAITING) for part in (f"p{number}", late))
    )
    async with open_session(mqtt, f"{unique}-edge") as session:
        found = await site.publisher(session)._load()  # noqa: SLF001 - the bound is the point
    assert len(found) == MOST_WAITING
    assert "broken" not in found

"""Opens prompts: what the kind `operator` needs, the port by which the page and the MES answer, and the events."""

from contextlib import AsyncExitStack
from functools import partial

from edge.app.feature import Opened
from edge.app.parts import GatewayParts, Works
from edge.config import Settings
from edge.features.prompts.answering import PromptContext, Prompts
from edge.features.prompts.calls import PromptCalls
from edge.features.prompts.event_answers import EventAnswers, by_button, by_code
from edge.features.prompts.prompt import kind_of, parse_prompt
from edge.features.prompts.prompt_changes import opened_with
from edge.features.prompts.prompt_publisher import PromptPublisher
from edge.features.prompts.settings import PromptsSettings, operator_types
from edge.foundation.text import Text
from edge.northbound.topics import Topics
from edge.station.equipment import Command
from edge.station.runs import Runs


def context_of(runs: Runs, settings: Settings) -> PromptContext:
    """Return what prompts are read and answered with; where there is a MES, decisions write the prompts that open."""
    type_ids = operator_types(settings)
    if settings.mqtt.url:
        runs.additions.append(partial(opened_with, runs.store.keys, type_ids))
    return PromptContext(
        runs,
        type_ids,
        settings.users.second_person_within * 1000,
        settings.retention.dedupe * 1000,
    )


async def prepare_prompts(_stack: AsyncExitStack, core: GatewayParts) -> Opened:
    """Return what the people of a station are asked with."""
    active = core.active_runs

    async def fault_of(command: Command) -> Text | None:
        loaded = await core.runs.get(command.job_id)
        kind = kind_of(command.type_id)
        if loaded is None or kind is None:
            return None
        # The parameters of the recipe: those of a job order do not change who may answer.
        named = (action for action in loaded.net.starting.get(command.action, ()) if action.type_id == command.type_id)
        faults = [fault for action in named for fault in parse_prompt(kind, action.parameters)[1]]
        return Text.of("the prompt cannot be asked: {faults}", faults="; ".join(faults)) if faults else None

    section = core.settings.section(PromptsSettings)
    context = context_of(core.runs, core.settings)
    prompts = Prompts(context, core.scopes, lambda: tuple(active.loaded.values()), section.pictures)
    answers = dict.fromkeys(section.buttons, by_button) | dict.fromkeys(section.codes, by_code)
    core.runs.event_takers.append(EventAnswers(context, answers).take)
    return Opened(port=prompts, equipment={"operator": (fault_of,)}, calls=PromptCalls(prompts).table)


async def publish_prompts(stack: AsyncExitStack, core: GatewayParts, _works: Works) -> None:
    """Publish the prompts that open and end where there is a MES."""
    session = core.health.sessions.get("MES")
    if session is None:
        return
    for scope, gate in core.instance.publisher_gates.items():
        topics = Topics(core.settings.northbound.topic_prefix, scope)
        prompts: Prompts = core.ports["prompts"]
        publisher = PromptPublisher(core.runs, core.active_runs, prompts, session, core.source, topics)
        await core.keep_running_while(stack, gate, f"prompts of {scope}", publisher.run)

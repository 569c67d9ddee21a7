"""Opens prompts: what the kind `operator` needs, and the port by which the page and the MES read and answer them."""

from contextlib import AsyncExitStack

from edge.app.feature import Opened
from edge.app.parts import GatewayParts
from edge.config import Settings
from edge.features.prompts.answering import PromptContext, Prompts
from edge.features.prompts.calls import PromptCalls
from edge.features.prompts.prompt import kind_of, parse_prompt
from edge.features.prompts.settings import PromptsSettings, operator_types
from edge.foundation.text import Text
from edge.station.equipment import Command
from edge.station.runs import Runs


def context_of(runs: Runs, settings: Settings) -> PromptContext:
    """Return what the prompts of these settings are read and answered with."""
    return PromptContext(
        runs,
        operator_types(settings),
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

    pictures = core.settings.section(PromptsSettings).pictures
    context = context_of(core.runs, core.settings)
    prompts = Prompts(context, core.scopes, lambda: tuple(active.loaded.values()), pictures)
    return Opened(port=prompts, equipment={"operator": (fault_of,)}, calls=PromptCalls(prompts).table)

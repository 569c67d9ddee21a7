"""Answers prompts by events of equipment: a button confirms, a code names the choice or is the value to scan."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import structlog
from msgspec import Struct

from edge.features.prompts.answer import GivenAnswer
from edge.features.prompts.answering import (
    Person,
    PromptAnswered,
    PromptContext,
    PromptRequest,
    answer_prompt,
    load_jobs,
    open_prompts,
)
from edge.features.prompts.open_prompt import OpenPrompt
from edge.features.prompts.prompt import FieldType, PromptKind
from edge.foundation.errors import Refused
from edge.foundation.text import Text
from edge.station.equipment import EquipmentEvent, Task
from edge.store import dedupe

logger = structlog.get_logger(__name__)

_SOURCE = "urn:microdcs-edge:prompts"


class EventAnswer(Struct, frozen=True):
    """A prompt and its answer by an event."""

    prompt: OpenPrompt
    given: GivenAnswer


FindAnswer = Callable[[Sequence[OpenPrompt], Mapping[str, Any]], EventAnswer]
"""Finds the one prompt that the data of an event answer. Raises Refused where there is none, or several."""


def by_button(prompts: Sequence[OpenPrompt], _data: Mapping[str, Any]) -> EventAnswer:
    """Return the confirmation of the only prompt that asks for one. Raises Refused."""
    found = [EventAnswer(prompt, GivenAnswer()) for prompt in prompts if prompt.kind is PromptKind.CONFIRM]
    return _only(found)


def by_code(prompts: Sequence[OpenPrompt], data: Mapping[str, Any]) -> EventAnswer:
    """Return the choice that a code names, else the values of the prompt that asks for one code. Raises Refused."""
    code = data.get("code")
    if not isinstance(code, str):
        raise Refused("device", Text.of("the event has no code"))
    named = [
        EventAnswer(prompt, GivenAnswer(choice=code))
        for prompt in prompts
        if prompt.kind is PromptKind.CHOOSE and any(choice.value == code for choice in prompt.prompt.choices)
    ]
    entered = [
        EventAnswer(prompt, GivenAnswer(values={name: code})) for prompt in prompts if (name := scanned_field(prompt))
    ]
    return _only(named or entered)


def codes_of(prompt: OpenPrompt) -> list[str]:
    """Return the names of the fields whose values are scanned."""
    return [field.name for field in prompt.prompt.fields if field.type is FieldType.SCAN]


def scanned_field(prompt: OpenPrompt) -> str:
    """Return the field that a code fills alone: the only code that is asked for, and no other value must be there."""
    codes = codes_of(prompt)
    others = [field for field in prompt.prompt.fields if field.type is not FieldType.SCAN and not field.optional]
    return codes[0] if len(codes) == 1 and not others else ""


def _only(found: Sequence[EventAnswer]) -> EventAnswer:
    match found:
        case [answer] if answer.prompt.prompt.needs_login:
            raise Refused("no_login", Text.of("the prompt asks for a person who has logged in"))
        case [answer]:
            return answer
        case []:
            raise Refused("unknown_prompt", Text.of("no prompt waits for it"))
        case _:
            raise Refused("ambiguous", Text.of("{count} prompts wait for it", count=len(found)))


class EventAnswers:
    """Takes the events that no job waits for: those of buttons and readers that the settings name answer prompts."""

    def __init__(self, context: PromptContext, answers: Mapping[str, FindAnswer]) -> None:
        """Find the answers by the types of events."""
        self._context = context
        self._answers = answers

    async def take(self, equipment: str, event: EquipmentEvent) -> Task | None:
        """Answer the prompt of the scope that an event is for; return what it was used for. Raises Unavailable."""
        find = self._answers.get(event.type_id)
        if find is None:
            return None
        # The same event again must not answer the next prompt.
        event_id = f"{event.source} {event.event_id}"
        earlier = await dedupe.load_answer(self._context.runs.store, _SOURCE, event_id)
        try:
            if earlier is None:
                answered = await self._answer(equipment, event, find, event_id)
            else:
                answered = dedupe.decode_answer(earlier, PromptAnswered)
        except Refused as refusal:
            logger.warning("event answers no prompt", type=event.type_id, scope=event.scope, reason=refusal.message)
            return None
        return Task(answered.job_order_id, answered.action, {})

    async def _answer(self, equipment: str, event: EquipmentEvent, find: FindAnswer, event_id: str) -> PromptAnswered:
        scopes = (event.scope,)
        data = event.data if isinstance(event.data, Mapping) else {}
        answer = find(open_prompts(self._context, await load_jobs(self._context.runs), scopes), data)
        request = PromptRequest(
            prompt=answer.prompt.id,
            given=answer.given,
            person=Person(equipment),
            source=_SOURCE,
            event_id=event_id,
            scopes=scopes,
        )
        return await answer_prompt(self._context, request)

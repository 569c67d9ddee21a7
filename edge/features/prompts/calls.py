"""Executes the calls of the MES and of sidecars about prompts: what is open, and an answer; each event once."""

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta, field

from edge.features.prompts.answer import GivenAnswer
from edge.features.prompts.answering import Person, Prompts
from edge.features.prompts.open_prompt import PromptList, public_prompt
from edge.model.cloudevent import CloudEvent
from edge.model.event_types import PROMPT_METHOD_TYPE
from edge.model.isa95 import Payload
from edge.northbound.reply import CallEffect, Handler, Reply, arguments_of, languages_of, replying


class PromptCall(Payload, frozen=True, kw_only=True):
    """The answer to a prompt: nothing to confirm, the value of a choice, or values by the names of the fields.

    Example: {"Prompt": "mgq3zjvgkpsfhx7u", "Choice": "ok", "By": "anna"}
    """

    prompt: str
    choice: Annotated[str, Meta(max_length=100)] = ""
    values: Annotated[dict[str, Any], Meta(max_length=12)] = field(default_factory=dict)
    by: str = ""


class PromptCalls:
    """The prompts of this gateway as the MES sees them."""

    def __init__(self, prompts: Prompts) -> None:
        self._prompts = prompts

    @property
    def table(self) -> Mapping[str, Handler]:
        """Return the calls by their CloudEvents type."""
        return {
            PROMPT_METHOD_TYPE.format("List"): replying(self.list_open),
            PROMPT_METHOD_TYPE.format("Answer"): self.answer,
        }

    async def list_open(self, event: CloudEvent, _origin: str) -> PromptList:
        """Return the open prompts of a scope, or of all, in the language of the caller."""
        languages = languages_of(event)
        return PromptList(
            prompts=tuple(
                public_prompt(prompt, languages)
                for prompt in self._prompts.open
                if event.subject in {None, "", prompt.scope}
            )
        )

    async def answer(self, event: CloudEvent, _origin: str) -> Reply:
        """Answer a prompt as a caller without a login. Raises Refused as `answer_prompt`, and for wrong arguments."""
        call = arguments_of(event, PromptCall, "Send Prompt, and Choice or Values, and optionally By.")
        answered = await self._prompts.answer(
            call.prompt,
            GivenAnswer(choice=call.choice, values=call.values),
            Person(call.by or event.source),
            event.source,
            event.id,
            event.subject or "",
        )
        subject = f"{answered.job_order_id}/{answered.action}"
        return Reply(answered, change=CallEffect("Answer prompt", subject, by=call.by))

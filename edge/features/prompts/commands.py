"""`edge prompts`: what people at the station are asked, and their answers."""

import uuid
from collections.abc import Sequence
from typing import Any, Final

import click

from edge.cli.jobs.calls import visiting_runs
from edge.cli.terminal.command_group import CommandGroup
from edge.cli.terminal.operator import authorize_command, operator_languages, record_as
from edge.cli.terminal.output import printable
from edge.cli.terminal.store_access import SOURCE, CommandOutput, StoreAccess, one_scope_option, store_command
from edge.cli.terminal.table import local_time, plain_table, wide_option
from edge.features.prompts.answer import GivenAnswer
from edge.features.prompts.answering import Person, PromptContext, PromptRequest, answer_prompt, load_jobs, open_prompts
from edge.features.prompts.open_prompt import OpenPrompt, PublicPrompt, public_prompt
from edge.features.prompts.service import context_of
from edge.foundation.errors import Refused
from edge.foundation.text import Text
from edge.model.user import Role

_ACTION: Final = "prompts answer"


@click.group(cls=CommandGroup)
def prompts() -> None:
    """Show what people at the station are asked; answer."""


async def _context(at: StoreAccess) -> PromptContext:
    return context_of(await visiting_runs(at), at.settings)


@prompts.command("list", epilog="Example: edge prompts list")
@one_scope_option
@wide_option
@store_command
async def list_(at: StoreAccess, scope: str | None) -> CommandOutput:
    """List the open prompts, the oldest first."""
    context = await _context(at)
    found = open_prompts(context, await load_jobs(context.runs), await at.scopes(scope))
    languages = operator_languages()
    public = [public_prompt(prompt, languages) for prompt in found]
    rows = [
        (prompt.id, prompt.job_order_id, prompt.title, _how(prompt), local_time(open_prompt.since))
        for open_prompt, prompt in zip(found, public, strict=True)
    ]
    table = plain_table("id", "job", "title", "answer with", "since", rows=rows, empty="no prompt is open")
    return CommandOutput(public, table)


def _how(prompt: PublicPrompt) -> str:
    """Return the options that answer a prompt."""
    if prompt.choices:
        return "--choice " + " | ".join(choice.value for choice in prompt.choices)
    return " ".join(f"--value {field.name}=" for field in prompt.fields) or "-"


@prompts.command("answer", epilog="Example: edge prompts answer AXLE-0001 --choice ok")
@click.argument("prompt")
@click.option("--choice", default="", help="The value of the chosen button.")
@click.option("--value", "values", multiple=True, metavar="NAME=VALUE", help="The value of a field; once for each.")
@store_command
async def answer_(at: StoreAccess, prompt: str, choice: str, values: tuple[str, ...]) -> CommandOutput:
    """Answer a prompt.

    PROMPT is its id, or a job that has one prompt only. Without options it is confirmed. The name of the user who runs
    this command stays with the result and in the audit trail.
    """
    given = GivenAnswer(choice=choice, values=_parse(values))
    context = await _context(at)
    scopes = await at.scopes(None)
    found = {found.id: found for found in open_prompts(context, await load_jobs(context.runs), scopes)}
    id_ = _named(tuple(found.values()), prompt)
    # Where no login is required, the user of the system counts.
    role = found[id_].prompt.lowest_role if id_ in found else Role.OPERATOR
    by = await authorize_command(at, _ACTION, prompt, role)
    request = PromptRequest(
        prompt=id_,
        given=given,
        person=Person(by, role),
        source=SOURCE,
        event_id=str(uuid.uuid4()),
        scopes=scopes,
    )
    try:
        answered = await answer_prompt(context, request)
    except Refused as refusal:
        await record_as(at, by, _ACTION, prompt, refusal.message)
        raise
    subject = f"{answered.job_order_id}/{answered.action}"
    await record_as(at, by, _ACTION, subject, "another person must confirm" if answered.awaits_second else "Good")
    named = f"job {printable(answered.job_order_id)}: {printable(answered.action)}"
    text = f"{named} waits for a second person" if answered.awaits_second else f"{named} is answered"
    return CommandOutput(answered, text)


def _parse(values: Sequence[str]) -> dict[str, Any]:
    named = [value.partition("=") for value in values]
    if wrong := [name for name, equals, _ in named if not equals]:
        raise click.UsageError(f"--value {wrong[0]} is not NAME=VALUE.")
    return {name: text for name, _, text in named}


def _named(found: Sequence[OpenPrompt], name: str) -> str:
    """Return the id of a prompt by its id or its job. Raises Refused where a job has several."""
    of_job = [prompt.id for prompt in found if prompt.job_id == name]
    if len(of_job) > 1:
        raise Refused(
            "ambiguous",
            Text.of("job {job_id!r} has {count} open prompts", job_id=name, count=len(of_job)),
            "Name the id of one: edge prompts list",
        )
    return of_job[0] if of_job else name

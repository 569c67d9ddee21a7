"""The open prompts of runs: an open prompt is a command of the kind `operator` without an answer, and nothing else."""

import base64
import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence

from msgspec import Struct

from edge.features.prompts.prompt import Prompt, PromptKind, kind_of, parse_prompt
from edge.model.instant import Instant, rfc3339
from edge.model.localized_text import choose_text, title_of
from edge.sfc.identifiers import command_id
from edge.sfc.run import ActionState, Association, PastAttempt, Run
from edge.station.decision import LoadedJob

_ID_LENGTH = 16


class OpenPrompt(Struct, frozen=True):
    """A prompt that waits for its answer; instants are milliseconds since the epoch.

    `first` is the person whose answer another person must repeat until `first_until`.
    """

    command_id: str
    kind: PromptKind
    prompt: Prompt
    scope: str
    job_id: str
    step: str
    action: str
    since: int
    until: int | None = None
    first: str = ""
    first_until: int | None = None

    @property
    def id(self) -> str:
        """The id for people and programs: 16 characters (a-z, 2-7) that follow from the id of the command."""
        return prompt_id(self.command_id)


def prompt_id(command_id: str) -> str:
    """Return the id of the prompt of a command."""
    digest = hashlib.sha256(command_id.encode()).digest()
    return base64.b32encode(digest).decode().lower()[:_ID_LENGTH]


def prompts_of(loaded: LoadedJob, type_ids: Collection[str], now: int) -> Iterator[OpenPrompt]:
    """Yield the open prompts of a job among the actions of these types; `now` ends the time of a first answer."""
    run, actions = loaded.stored.run, loaded.net.actions
    for key in sorted(run.open):
        association, action = run.associations[key], actions[key.latest]
        if action.type_id not in type_ids or association.state is not ActionState.DISPATCHED or association.reset:
            continue
        kind = kind_of(action.type_id)
        prompt, _ = parse_prompt(kind, action.parameters) if kind else (None, ())
        if kind and prompt:
            yield _open_prompt(run, association, kind, prompt, now)


def _open_prompt(run: Run, association: Association, kind: PromptKind, prompt: Prompt, now: int) -> OpenPrompt:
    notes = (note for note in run.interventions.values() if note.until and note.mark == association.command_id)
    first = next((note for note in notes if note.until and note.until >= now), None)
    return OpenPrompt(
        association.command_id,
        kind,
        prompt,
        run.scope,
        run.job_id,
        association.step,
        association.action,
        association.armed_at or 0,
        association.deadline,
        first.by if first else "",
        first.until if first else None,
    )


def in_order(prompts: Iterable[OpenPrompt]) -> tuple[OpenPrompt, ...]:
    """Return prompts in the order in which they were asked."""
    return tuple(sorted(prompts, key=lambda prompt: (prompt.since, prompt.command_id)))


def ended_attempt(loaded: LoadedJob, id_: str) -> Association | PastAttempt | None:
    """Return the attempt of an action whose prompt had an id; None when the run does not have it."""
    run = loaded.stored.run
    attempts: tuple[Association | PastAttempt, ...] = (*run.associations.values(), *run.past.values())
    for attempt in attempts:
        command = command_id(run.job_id, run.run_id, attempt.action, attempt.attempt, reset=attempt.reset)
        if attempt.attempt and prompt_id(command) == id_:
            return attempt
    return None


class PublicChoice(Struct, frozen=True, kw_only=True):
    """One button of a prompt."""

    value: str
    title: str


class PublicField(Struct, frozen=True, kw_only=True):
    """One value to enter; `type` is `text`, `number`, `scan` or `photo`."""

    name: str
    title: str
    type: str
    unit: str
    min: float | None
    max: float | None
    optional: bool


class PublicPrompt(Struct, frozen=True, kw_only=True):
    """An open prompt as `--json`, the HTTP API and the MES have it, in the language of the reader.

    `kind` is `confirm`, `choose` or `enter`; `sign` is `pin`, `badge` or `any` where the answer is signed at a panel.
    `needs_login` says that the MES may not answer it. `first_by` has answered, and a second person must answer the same
    until `first_until`.
    """

    id: str
    scope: str
    job_order_id: str
    step: str
    action: str
    kind: str
    title: str
    text: str
    picture: str
    choices: tuple[PublicChoice, ...]
    fields: tuple[PublicField, ...]
    role: str
    second_person: bool
    sign: str
    needs_login: bool
    since: Instant
    until: Instant | None
    first_by: str
    first_until: Instant | None


class PromptList(Struct, frozen=True, kw_only=True):
    """The open prompts, the oldest first.

    Example: {"prompts": [{"id": "mgq3zjvgkpsfhx7u", "scope": "station-1", "job_order_id": "AXLE-0001",
     "step": "Inspect", "action": "inspect", "kind": "choose", "title": "Is it seated?", "text": "", "picture": "",
     "choices": [{"value": "ok", "title": "Yes"}, {"value": "defective", "title": "No"}], "fields": [], "role": "",
     "second_person": false, "sign": "", "needs_login": false, "since": "2026-11-27T06:00:00.000Z", "until": null,
     "first_by": "", "first_until": null}]}
    """

    prompts: tuple[PublicPrompt, ...]


def public_prompt(found: OpenPrompt, languages: Sequence[str] = ()) -> PublicPrompt:
    """Return the public form of a prompt for a reader who prefers these languages."""
    prompt = found.prompt
    return PublicPrompt(
        id=found.id,
        scope=found.scope,
        job_order_id=found.job_id,
        step=found.step,
        action=found.action,
        kind=found.kind.value,
        title=choose_text(prompt.title, languages),
        text=choose_text(prompt.text, languages) if prompt.text else "",
        picture=prompt.picture,
        choices=tuple(
            PublicChoice(value=choice.value, title=title_of(choice.value, choice.title, languages))
            for choice in prompt.choices
        ),
        fields=tuple(
            PublicField(
                name=field.name,
                title=title_of(field.name, field.title, languages),
                type=field.type.value,
                unit=field.unit,
                min=field.least,
                max=field.most,
                optional=field.optional,
            )
            for field in prompt.fields
        ),
        role=prompt.role,
        second_person=prompt.second_person,
        sign=prompt.sign,
        needs_login=prompt.needs_login,
        since=rfc3339(found.since),
        until=rfc3339(found.until),
        first_by=found.first,
        first_until=rfc3339(found.first_until),
    )

"""Lists the open prompts of a store and answers them; the commit that ends the command decides whose answer counts."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from msgspec import Struct

from edge.features.prompts.answer import GivenAnswer, result_of
from edge.features.prompts.open_prompt import OpenPrompt, ended_attempt, in_order, prompts_of
from edge.foundation.errors import Refused
from edge.foundation.text import Text
from edge.model.isa95 import ReturnStatus
from edge.model.user import Role
from edge.sfc.run import ActionState
from edge.sfc.signal import PersonAnswer, SecondPerson
from edge.station.decision import LoadedJob
from edge.station.intervene import InterventionRequest, intervene
from edge.station.job_call import CallAnswer
from edge.station.runs import Runs
from edge.store import dedupe
from edge.store.runs import active_jobs


class Person(Struct, frozen=True):
    """A person who answers: `role` is None where the gateway has not checked who it is, as for a button or the MES."""

    name: str
    role: Role | None = None


class PromptRequest(Struct, frozen=True, kw_only=True):
    """The answer of a person to the prompt with an id; `source` and `event_id` together name the request."""

    prompt: str
    given: GivenAnswer
    person: Person
    source: str
    event_id: str
    scopes: Collection[str]


class PromptAnswered(Struct, frozen=True, kw_only=True):
    """An answer that counts, or with `awaits_second` once another person has given it, too."""

    id: str
    job_order_id: str
    step: str
    action: str
    result: Any
    by: str
    awaits_second: bool


class PromptContext(Struct, frozen=True):
    """What prompts are read and answered with: runs, the types of the kind `operator`, and times in milliseconds."""

    runs: Runs
    type_ids: frozenset[str]
    second_within_ms: int
    dedupe_ms: int


async def load_jobs(runs: Runs) -> list[LoadedJob]:
    """Return the active jobs of the store. Raises Unavailable."""
    jobs = [await runs.load_readable(job_id) for job_id in await active_jobs(runs.store)]
    return [job for job in jobs if job is not None]


def open_prompts(context: PromptContext, jobs: Iterable[LoadedJob], scopes: Collection[str]) -> tuple[OpenPrompt, ...]:
    """Return the open prompts of jobs in these scopes, in the order in which they were asked."""
    now = context.runs.clock()
    return in_order(
        prompt for job in jobs if job.job.scope in scopes for prompt in prompts_of(job, context.type_ids, now)
    )


async def answer_prompt(context: PromptContext, request: PromptRequest) -> PromptAnswered:
    """Answer a prompt; the effect is in the store when this returns. The same request again gets the same answer.

    Raises Refused: `unknown_prompt`, `not_open` when its answer or its end came before, `invalid_answer` with every
    fault, `no_login` and `forbidden` where the prompt asks for a login or a higher role; Unavailable without the store.
    """
    store = context.runs.store
    jobs = await load_jobs(context.runs)
    found = next(
        (prompt for prompt in open_prompts(context, jobs, request.scopes) if prompt.id == request.prompt), None
    )
    if found is None:
        earlier = await dedupe.load_answer(store, request.source, request.event_id)
        if earlier is not None:
            return _repeated(jobs, request, dedupe.decode_answer(earlier, CallAnswer))
        raise _not_open(jobs, request)
    _require(found, request.person)
    result = result_of(found.kind, found.prompt, request.given)
    second = SecondPerson(context.second_within_ms, request.person.role is not None)
    signal = PersonAnswer(found.command_id, result, request.person.name, second if found.prompt.second_person else None)
    asked = InterventionRequest(
        scope=found.scope, job_id=found.job_id, signal=signal, source=request.source, event_id=request.event_id
    )
    answer = await intervene(context.runs, asked, context.dedupe_ms)
    if answer.status not in {ReturnStatus.NO_ERROR, ReturnStatus.AWAITS_SECOND_PERSON}:
        raise Refused("not_open", answer.reason, _LOOK)
    return _answered(found, result, request.person.name, answer)


_LOOK = "Look at what is asked now: edge prompts list"


def _require(found: OpenPrompt, person: Person) -> None:
    if not found.prompt.needs_login:
        return
    if person.role is None:
        raise Refused(
            "no_login",
            Text.of("the prompt asks for a person who has logged in"),
            "Answer it at the station page, at the command line or over OPC UA.",
        )
    if person.role < found.prompt.lowest_role:
        needed = found.prompt.lowest_role.name.lower()
        raise Refused(
            "forbidden",
            Text.of("the prompt needs the role {needed}", needed=needed),
            "Log in as a user with this role.",
        )


def _answered(found: OpenPrompt, result: Any, by: str, answer: CallAnswer) -> PromptAnswered:
    return PromptAnswered(
        id=found.id,
        job_order_id=found.job_id,
        step=found.step,
        action=found.action,
        result=result,
        by=by,
        awaits_second=answer.status is ReturnStatus.AWAITS_SECOND_PERSON,
    )


def _repeated(jobs: Sequence[LoadedJob], request: PromptRequest, answer: CallAnswer) -> PromptAnswered:
    """Return the answer to a request that was carried out before; its job may be gone."""
    found = ((job.job.job_id, attempt) for job in jobs if (attempt := ended_attempt(job, request.prompt)))
    job_id, ended = next(found, ("", None))
    return PromptAnswered(
        id=request.prompt,
        job_order_id=job_id,
        step=ended.step if ended else "",
        action=ended.action if ended else "",
        result=ended.result if ended else None,
        by=request.person.name,
        awaits_second=answer.status is ReturnStatus.AWAITS_SECOND_PERSON,
    )


def _not_open(jobs: Sequence[LoadedJob], request: PromptRequest) -> Refused:
    """Return why a prompt cannot be answered: the person who answered, or how else it ended."""
    for job in jobs:
        attempt = ended_attempt(job, request.prompt) if job.job.scope in request.scopes else None
        if attempt is None:
            continue
        if attempt.state is ActionState.COMPLETED:
            by = attempt.resolved_by or "-"
            return Refused("not_open", Text.of("the prompt was answered by {by} before", by=by), _LOOK)
        return Refused("not_open", Text.of("the prompt is over: {state}", state=attempt.state.text), _LOOK)
    return Refused("unknown_prompt", Text.of("no prompt {id!r} is open", id=request.prompt), _LOOK)


class Prompts:
    """The prompts of this gateway's scopes, for the page, OPC UA and other ways; `listeners` learn of each change."""

    def __init__(
        self, context: PromptContext, scopes: Collection[str], jobs: Callable[[], Iterable[LoadedJob]]
    ) -> None:
        """Read from `jobs`, the active runs of the gateway as it knows them."""
        self._context = context
        self.scopes = scopes
        self._jobs = jobs

    @property
    def open(self) -> tuple[OpenPrompt, ...]:
        """The open prompts in the order in which they were asked."""
        return open_prompts(self._context, self._jobs(), self.scopes)

    async def answer(
        self, prompt: str, given: GivenAnswer, person: Person, source: str, event_id: str
    ) -> PromptAnswered:
        """Answer a prompt of these scopes. Raises as `answer_prompt`."""
        request = PromptRequest(
            prompt=prompt, given=given, person=person, source=source, event_id=event_id, scopes=self.scopes
        )
        return await answer_prompt(self._context, request)

    def is_of_prompts(self, job: LoadedJob) -> bool:
        """Return whether a job has an open prompt."""
        return any(prompts_of(job, self._context.type_ids, self._context.runs.clock()))

"""Lists the open prompts of a store and answers them; the commit that ends the command decides whose answer counts."""

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Any, Final

import msgspec
import structlog
from msgspec import Struct

from edge.features.prompts.answer import GivenAnswer, result_of
from edge.features.prompts.open_prompt import OpenPrompt, ended_attempt, in_order, prompts_of
from edge.foundation.errors import Refused
from edge.foundation.text import Text
from edge.model.user import Role
from edge.sfc.intervention import awaits_second
from edge.sfc.run import ActionState
from edge.sfc.signal import Ignored, PersonAnswer, SecondPerson
from edge.station.decision import Decision, LoadedJob, NotAllowed
from edge.station.runs import NoRun, Runs
from edge.store import dedupe
from edge.store.commit import Commit, Stale
from edge.store.runs import active_jobs

logger = structlog.get_logger(__name__)


class Person(Struct, frozen=True):
    """A person who answers: `role` is None where the gateway has not checked who it is, as for the MES.

    `signed` is `PIN` or `badge` where the person has signed this answer.
    """

    name: str
    role: Role | None = None
    signed: str = ""


class PromptRequest(Struct, frozen=True, kw_only=True):
    """The answer of a person to the prompt with an id; `source` and `event_id` together name the request.

    `refusal` is raised in place of an answer that would count.
    """

    prompt: str
    given: GivenAnswer
    person: Person
    source: str
    event_id: str
    scopes: Collection[str]
    refusal: Refused | None = None


class PromptAnswered(Struct, frozen=True, kw_only=True):
    """An answer that counts, or with `awaits_second` once another person has answered the same.

    Example: {"id": "mgq3zjvgkpsfhx7u", "job_order_id": "AXLE-0001", "step": "Inspect", "action": "inspect",
     "result": {"choice": "ok"}, "by": "anna", "awaits_second": false}
    """

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
    fault, `no_login`, `forbidden` and `no_signature` where the prompt asks for a login, a higher role or a signature;
    the refusal of the request after all others; Unavailable without the store.
    """
    runs = context.runs
    while True:
        earlier = await dedupe.load_answer(runs.store, request.source, request.event_id)
        if earlier is not None:
            return dedupe.decode_answer(earlier, PromptAnswered)
        jobs = await load_jobs(runs)
        asked = (prompt for prompt in open_prompts(context, jobs, request.scopes) if prompt.id == request.prompt)
        if (found := next(asked, None)) is None:
            raise _not_open(jobs, request.prompt, request.scopes)
        _require(found, request.person)
        signal = _signal(context, found, request)
        mark = partial(_mark, context, request, found, signal)
        match await runs.signal(found.job_id, signal, also=mark):
            case Decision() as decision:
                logger.info("prompt answered", job=found.job_id, action=found.action, by=signal.by)
                return _answered(found, signal, decision)
            case Ignored(reason=reason):
                raise Refused("not_open", reason, _LOOK)
            case NoRun() | NotAllowed():
                raise Refused("not_open", Text.of("the job does not run"), _LOOK)
            case Stale():
                # The same request was committed elsewhere: its answer is read now.
                continue


def _signal(context: PromptContext, found: OpenPrompt, request: PromptRequest) -> PersonAnswer:
    result, person = result_of(found.kind, found.prompt, request.given), request.person
    second = SecondPerson(context.second_within_ms) if found.prompt.second_person else None
    return PersonAnswer(found.command_id, result, person.name[:_LONGEST_NAME], second)


def _mark(
    context: PromptContext, request: PromptRequest, found: OpenPrompt, signal: PersonAnswer, decision: Decision
) -> Commit:
    if request.refusal is not None:
        raise request.refusal
    answer = msgspec.json.encode(_answered(found, signal, decision)).decode()
    return dedupe.mark(context.runs.store.keys, request.source, request.event_id, answer, context.dedupe_ms)


def _answered(found: OpenPrompt, signal: PersonAnswer, decision: Decision) -> PromptAnswered:
    return PromptAnswered(
        id=found.id,
        job_order_id=found.job_id,
        step=found.step,
        action=found.action,
        result=signal.data,
        by=signal.by,
        awaits_second=awaits_second(decision.loaded.stored.run),
    )


_LONGEST_NAME: Final = 255
_LOOK = "Look at what is asked now: edge prompts list"


def _require(found: OpenPrompt, person: Person) -> None:
    if found.prompt.needs_login and (person.role is None or not person.name):
        raise Refused(
            "no_login",
            Text.of("the prompt asks for a person who has logged in"),
            "Answer it at the station page or at the command line.",
        )
    if person.role is not None and person.role < found.prompt.lowest_role:
        needed = found.prompt.lowest_role.name.lower()
        raise Refused(
            "forbidden",
            Text.of("the prompt needs the role {needed}", needed=needed),
            "Log in as a user with this role.",
        )
    if found.prompt.sign and person.signed.lower() not in _SIGNATURES[found.prompt.sign]:
        raise Refused(
            "no_signature",
            Text.of("the prompt asks for a signature by {wanted}", wanted=_WANTED[found.prompt.sign]),
            "Answer it at a panel of the station.",
        )


_WANTED: Final = {"pin": Text.of("PIN"), "badge": Text.of("badge"), "any": Text.of("PIN or badge")}
_SIGNATURES: Final = {"pin": ("pin",), "badge": ("badge",), "any": ("pin", "badge")}


def _not_open(jobs: Sequence[LoadedJob], prompt: str, scopes: Collection[str]) -> Refused:
    """Return why a prompt cannot be answered: the person who answered, or how else it ended."""
    for job in jobs:
        attempt = ended_attempt(job, prompt) if job.job.scope in scopes else None
        if attempt is None:
            continue
        if attempt.state is ActionState.COMPLETED:
            by = attempt.resolved_by or "-"
            return Refused("not_open", Text.of("the prompt was answered by {by} before", by=by), _LOOK)
        return Refused("not_open", Text.of("the prompt is over: {state}", state=attempt.state.text), _LOOK)
    return unknown_prompt(prompt)


def unknown_prompt(prompt: str) -> Refused:
    """Return the refusal of an id that no prompt has."""
    return Refused("unknown_prompt", Text.of("no prompt {id!r} is open", id=prompt), _LOOK)


class Prompts:
    """The prompts of this gateway's scopes, for the page, the MES and sidecars."""

    def __init__(
        self,
        context: PromptContext,
        scopes: Collection[str],
        jobs: Callable[[], Iterable[LoadedJob]],
        pictures: str = "",
    ) -> None:
        """Read from `jobs`, the active runs of the gateway as it knows them; `pictures` is the folder of pictures."""
        self._context = context
        self.scopes = scopes
        self.pictures = pictures
        self._jobs = jobs

    @property
    def open(self) -> tuple[OpenPrompt, ...]:
        """The open prompts in the order in which they were asked."""
        return open_prompts(self._context, self._jobs(), self.scopes)

    async def answer(
        self, prompt: str, given: GivenAnswer, person: Person, source: str, event_id: str, scope: str = ""
    ) -> PromptAnswered:
        """Answer a prompt of these scopes, or of one of them. Raises as `answer_prompt`."""
        return await self.carry_out(
            PromptRequest(
                prompt=prompt,
                given=given,
                person=person,
                source=source,
                event_id=event_id,
                scopes=(scope,) if scope else self.scopes,
            )
        )

    async def carry_out(self, request: PromptRequest) -> PromptAnswered:
        """Answer as a request says. Raises as `answer_prompt`."""
        return await answer_prompt(self._context, request)

    def of_job(self, loaded: LoadedJob) -> tuple[OpenPrompt, ...]:
        """Return the open prompts of a run."""
        return open_prompts(self._context, (loaded,), self.scopes)

    async def refusal_of(self, prompt: str) -> Refused:
        """Return why a prompt that is not open cannot be answered. Raises Unavailable."""
        return _not_open(await load_jobs(self._context.runs), prompt, self.scopes)

    def find(self, prompt: str) -> OpenPrompt:
        """Return the open prompt with an id. Raises Refused(`unknown_prompt`)."""
        for found in self.open:
            if found.id == prompt:
                return found
        raise unknown_prompt(prompt)

"""Applies what a person decides: about a run, and about stops and resets that equipment has not confirmed."""

import functools
from collections.abc import Collection, Mapping, Sequence

import msgspec
import structlog
from msgspec.structs import replace

from edge.foundation.errors import Refused
from edge.foundation.text import Text
from edge.model.acceptance import MAX_BYTES, MAX_TEXT_LENGTH
from edge.model.isa95 import ReleasedStop, ReturnStatus
from edge.sfc.intervention import awaits_second, person_of
from edge.sfc.signal import Ignored, Intervene, Resolve, SecondPerson, kind_text
from edge.station.decision import RESOLVE, Decision, NotAllowed
from edge.station.job_call import CallAnswer
from edge.station.runs import NoRun, Runs
from edge.store import dedupe, equipment_memory
from edge.store.client import Store
from edge.store.commit import Commit, Committed, Stale, join
from edge.store.equipment_memory import SafingCommand
from edge.store.keys import Keys

logger = structlog.get_logger(__name__)

_NAMELESS = frozenset({"", "anonymous"})


class InterventionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a person decides about a run; `signal.by` names the person, `signal.reason` says what was seen.

    `source` and `event_id` together name the request. `has_login` says that the gateway has checked who the person is.
    """

    scope: str
    job_id: str
    signal: Resolve | Intervene
    source: str
    event_id: str
    has_login: bool = False


async def intervene(active_runs: Runs, request: InterventionRequest, dedupe_ms: int) -> CallAnswer:
    """Apply a decision; its effect is in the store when this returns. The same request again gets the same answer.

    Raises Unavailable when the store is gone, Refused(`invalid_payload`) for a request without operator or reason, or
    with data that are too large, Refused(`no_login`) where two people must decide and this one has no name.
    """
    signal = _with_second(request, active_runs.context.second_person)
    _validate(signal)
    store = active_runs.store
    while True:
        given = await dedupe.load_answer(store, request.source, request.event_id)
        if given is not None:
            return dedupe.decode_answer(given, CallAnswer)
        loaded = await active_runs.get(request.job_id)
        if loaded is None or loaded.job.scope != request.scope:
            return CallAnswer(ReturnStatus.UNKNOWN_JOB_ORDER_ID, ("no such running job order in this scope",))
        mark = functools.partial(_mark, active_runs, request, dedupe_ms)
        match await active_runs.signal(request.job_id, signal, also=mark):
            case Decision() as decision:
                answer = _answer(decision)
                _log(request.job_id, signal, answer)
                return answer
            case Ignored(reason=reason):
                return CallAnswer(ReturnStatus.INVALID_JOB_ORDER_STATUS, (reason,))
            case NoRun() | NotAllowed():
                return CallAnswer(ReturnStatus.INVALID_JOB_ORDER_STATUS, ("the job does not run",))
            case Stale():
                # The same request was committed elsewhere: its answer is read now.
                continue


def _with_second(request: InterventionRequest, second: Mapping[str, int]) -> Resolve | Intervene:
    """Return the signal, with the need for a second person where the settings ask for one."""
    signal = request.signal
    kind = RESOLVE if isinstance(signal, Resolve) else signal.kind
    if kind not in second:
        return signal
    if person_of(signal.by) in _NAMELESS:
        raise Refused(
            "no_login",
            Text.of("{kind} needs two people, and this one has no name", kind=kind_text(signal.kind)),
            "Log in as a user.",
        )
    return replace(signal, second=SecondPerson(second[kind], request.has_login))


def _answer(decision: Decision) -> CallAnswer:
    if not awaits_second(decision.loaded.stored.run):
        return CallAnswer(ReturnStatus.NO_ERROR)
    return CallAnswer(ReturnStatus.AWAITS_SECOND_PERSON, ("another person must ask for the same to confirm it",))


def _mark(active_runs: Runs, request: InterventionRequest, dedupe_ms: int, decision: Decision) -> Commit:
    text = msgspec.json.encode(_answer(decision)).decode()
    return dedupe.mark(active_runs.store.keys, request.source, request.event_id, text, dedupe_ms)


def _log(job_id: str, signal: Resolve | Intervene, answer: CallAnswer) -> None:
    event = "intervention requested" if answer.reasons else "intervention applied"
    if isinstance(signal, Resolve) and not answer.reasons:
        event = "outcome resolved"
    logger.warning(event, job=job_id, intervention=str(signal.text), by=signal.by, reason=signal.reason)


def names_of(signal: Resolve | Intervene) -> tuple[str, ...]:
    """Return the parts of the chart that a decision names."""
    named = (signal.action,) if isinstance(signal, Resolve) else (signal.action, signal.step, signal.target)
    return tuple(text for text in named if text)


def _validate(signal: Resolve | Intervene) -> None:
    if not signal.by:
        raise Refused("invalid_payload", "the request names no operator", "Name the operator in `by`.")
    if not signal.reason.strip():
        raise Refused("invalid_payload", "the request has no reason", "Say in `reason` what you have seen.")
    if len(signal.by) + len(signal.reason) > MAX_TEXT_LENGTH:
        raise Refused(
            "invalid_payload",
            Text.of(
                "operator and reason are longer than {max_text_length} characters", max_text_length=MAX_TEXT_LENGTH
            ),
        )
    if sum(map(len, names_of(signal))) > MAX_TEXT_LENGTH:
        raise Refused(
            "invalid_payload",
            Text.of("the names are longer than {max_text_length} characters", max_text_length=MAX_TEXT_LENGTH),
        )
    if len(msgspec.json.encode(signal.data)) > MAX_BYTES:
        raise Refused(
            "invalid_payload", Text.of("the data are larger than {max_bytes} bytes of JSON", max_bytes=MAX_BYTES)
        )


class ReleaseRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The release of the open stops of a piece of equipment: all of these scopes, or those of one command.

    `by` names the operator, `reason` says how the tool was made safe; `source` and `event_id` together name the
    request.
    """

    equipment: str
    scopes: Collection[str]
    command_id: str | None = None
    by: str
    reason: str
    source: str
    event_id: str


async def release(
    store: Store, equipment: Mapping[str, Collection[str]], request: ReleaseRequest, dedupe_ms: int
) -> Sequence[ReleasedStop]:
    """Release open stops and resets and return them; they are not sent any more. The same request gets the same answer.

    `equipment` maps each name to its command types. The gateway of the scope records operator and reason at the job.
    Raises Refused(`nothing_open`) when there is none, Refused(`unknown_equipment`) for a name that is not in the
    settings, Refused(`invalid_payload`) without operator or reason, Unavailable when the store is gone.
    """
    type_ids = _validated(equipment, request)
    while True:
        given = await dedupe.load_answer(store, request.source, request.event_id)
        if given is not None:
            return dedupe.decode_answer(given, tuple[ReleasedStop, ...])
        safing_commands = [
            command
            for command in await equipment_memory.load_all_safing(store)
            if _is_asked_for(command, type_ids, request)
        ]
        if not safing_commands:
            what = Text.of("command {id!r}", id=request.command_id) if request.command_id else request.equipment
            advice = "List them: edge equipment list. The gateway repeats a disable until the controller confirms it."
            raise Refused("nothing_open", Text.of("no stop or reset of {what} is open", what=what), advice)
        answer = tuple(
            ReleasedStop(command=command.command_id, phase=command.phase.value, job_order_id=command.job_id)
            for command in safing_commands
        )
        text = msgspec.json.encode(answer).decode()
        marked = dedupe.mark(store.keys, request.source, request.event_id, text, dedupe_ms)
        parts = [_release(store.keys, command, request) for command in safing_commands]
        if isinstance(await store.commit(join((marked, *parts))), Committed):
            return answer


def _is_asked_for(command: SafingCommand, type_ids: Collection[str], request: ReleaseRequest) -> bool:
    if command.released_by or command.type_id not in type_ids or command.scope not in request.scopes:
        return False
    return request.command_id in {None, command.command_id}


def _release(keys: Keys, command: SafingCommand, request: ReleaseRequest) -> Commit:
    released = msgspec.structs.replace(command, released_by=request.by, release_reason=request.reason)
    return equipment_memory.save_safing(keys, released)


def _validated(equipment: Mapping[str, Collection[str]], request: ReleaseRequest) -> Collection[str]:
    """Return the command types of the equipment."""
    if not request.by or not request.reason.strip():
        raise Refused("invalid_payload", "a release needs an operator and a reason", "Say how the tool was made safe.")
    if len(request.by) + len(request.reason) > MAX_TEXT_LENGTH:
        raise Refused(
            "invalid_payload",
            Text.of(
                "operator and reason are longer than {max_text_length} characters", max_text_length=MAX_TEXT_LENGTH
            ),
        )
    if request.equipment not in equipment:
        known = ", ".join(sorted(equipment)) or Text.of("none")
        raise Refused(
            "unknown_equipment",
            Text.of("the settings have no equipment {equipment!r}", equipment=request.equipment),
            Text.of("They have {known}.", known=known),
        )
    return equipment[request.equipment]

"""Writes the response of a job from its run: ISA95JobResponseDataType of OPC 10031-4."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import Struct

from edge.model.acceptance import validate_id
from edge.model.action_attempt import ActionAttempt, result_parameter
from edge.model.instant import utc
from edge.model.isa95 import (
    Equipment,
    JobResponse,
    LocalizedText,
    Material,
    Parameter,
    Payload,
    Personnel,
    PhysicalAsset,
    ReturnStatus,
    State,
    StateQuery,
    opcua_name,
)
from edge.model.job_state import SUBSTATE_MACHINE, SUBSTATES, TEXT, JobState, state_entries
from edge.model.recipe_name import RecipeName
from edge.sfc.action import unsent_commands, unsent_text
from edge.sfc.intervention import held_failures
from edge.sfc.net import Net
from edge.sfc.run import ActionState, Association, InterventionNote, PastAttempt, Run, Sending
from edge.sfc.view import results
from edge.store import jobs, responses
from edge.store.client import Store
from edge.store.jobs import Job

ERROR_ID = "Error"
VERDICT_ID = "Verdict"
RECIPE_ID = "Recipe"
UNKNOWN_ID = "OutcomeUnknown"
HELD_ID = "AwaitsIntervention"
NEVER_SENT_ID = "NeverSent"
MAYBE_SENT_ID = "MayHaveBeenSent"
INTERVENTIONS_ID = "Interventions"


class _Actuals(Struct, frozen=True):
    """The field of the response for what was used, and its type; `by` is the field of a plain text."""

    field: str
    type: Any
    by: str


_KINDS = (
    _Actuals("personnel_actuals", tuple[Personnel, ...], "ID"),
    _Actuals("equipment_actuals", tuple[Equipment, ...], "ID"),
    _Actuals("physical_asset_actuals", tuple[PhysicalAsset, ...], "ID"),
    _Actuals("material_actuals", tuple[Material, ...], "MaterialLotID"),
)
_ACTUALS: Mapping[str, _Actuals] = MappingProxyType(
    {name: kind for kind in _KINDS for name in (kind.field, opcua_name(kind.field))}
)
"""By the member of a result or of action parameters that names used resources."""


def job_response(job: Job, ran: tuple[Net, Run] | None) -> JobResponse:
    """Return the present response: times, state, the result of each action, used resources, the verdict, the error.

    A result `{"value": 85.2, "unit": "Nm"}`, or a member of one, becomes a value with its engineering unit. The members
    `equipment_actuals` and their like, of results and of the parameters of actions that were carried out, name what was
    used. The attempts are returned by `attempts`.
    """
    found = results(*ran) if ran else {}
    data = [result_parameter(action, _without_actuals(result)) for action, result in found.items()]
    if ran:
        data += _not_as_planned(*ran)
        data += _interventions(ran[1])
    if job.recipe.revision:
        data.append(_recipe(job.recipe))
    if job.verdict:
        data.append(Parameter(id=VERDICT_ID, value=job.verdict))
    if job.error:
        data.append(Parameter(id=ERROR_ID, value=str(job.error)))
    return JobResponse(
        job_response_id=job.correlation_id,
        job_order_id=job.job_id,
        description=LocalizedText(text=str(job.error), locale="en") if job.error else None,
        start_time=_instant(job.started_at),
        end_time=_instant(job.ended_at),
        job_state=state_entries(job.status),
        job_response_data=tuple(data) or None,
        **_used([*(_carried_out(*ran) if ran else ()), *found.values()]),
    )


def _recipe(name: RecipeName) -> Parameter:
    """Return the entry that names the revision that ran, and the hash of its recipe."""
    parts = (Parameter(id="Revision", value=name.revision), Parameter(id="Hash", value=name.hash))
    return Parameter(id=RECIPE_ID, subparameters=parts)


def _not_as_planned(net: Net, run: Run) -> Iterator[Parameter]:
    """Yield the actions whose outcome is unknown, whose failure waits for a person, and that were not surely sent.

    Each has the reason.
    """
    unknown = [
        (association.action, association.error)
        for association in run.associations.values()
        if association.state is ActionState.UNKNOWN
    ]
    held = [(failure.action, failure.error) for failure in held_failures(net, run)]
    unsent = unsent_commands(run)
    never = [
        (association.action, unsent_text(association)) for association in unsent if association.sending is Sending.NEVER
    ]
    maybe = [
        (association.action, unsent_text(association)) for association in unsent if association.sending is Sending.MAYBE
    ]
    listed = ((UNKNOWN_ID, unknown), (HELD_ID, held), (NEVER_SENT_ID, never), (MAYBE_SENT_ID, maybe))
    for name, found in listed:
        if found:
            reasons = tuple(
                Parameter(id=action, value=None if error is None else str(error)) for action, error in found
            )
            yield Parameter(id=name, subparameters=reasons)


def _interventions(run: Run) -> Iterator[Parameter]:
    """Yield the interventions of people: who, when, why and what."""
    parameters = tuple(
        Parameter(id=str(number), subparameters=_facts(intervention))
        for number, intervention in run.interventions.items()
    )
    if parameters:
        yield Parameter(id=INTERVENTIONS_ID, subparameters=parameters)


def _facts(intervention_note: InterventionNote) -> tuple[Parameter, ...]:
    facts: dict[str, object] = {
        "kind": intervention_note.kind,
        "subject": str(intervention_note.subject),
        "by": intervention_note.by,
        "reason": intervention_note.reason,
        "at": _text_of(intervention_note.at),
        "second": intervention_note.second,
        "second_at": _text_of(intervention_note.second_at),
        "second_reason": intervention_note.second_reason,
        "waits_for_second_until": _text_of(intervention_note.until),
    }
    return tuple(Parameter(id=name, value=value) for name, value in facts.items() if value)


def _text_of(milliseconds: int | None) -> str:
    instant = _instant(milliseconds)
    return "" if instant is None else instant.isoformat(timespec="milliseconds")


def attempts(run: Run) -> tuple[ActionAttempt, ...]:
    """Return every attempt of every action with its times, and the late results; not the latest results."""
    latest = [association for association in run.associations.values() if association.armed_at is not None]
    latest.sort(key=lambda association: (association.armed_at or 0, association.action))
    return (
        *(_attempt(attempt, late=attempt.late, result=attempt.result) for attempt in run.past.values()),
        *(_attempt(association) for association in latest),
    )


def _attempt(attempt: Association | PastAttempt, *, late: bool = False, result: Any = None) -> ActionAttempt:
    name = f"{attempt.action}/{'r' if attempt.reset else ''}{attempt.attempt}"
    error = None if attempt.error is None else str(attempt.error)
    return ActionAttempt(
        name, attempt.state.value, attempt.sent_at, attempt.ended_at, error, attempt.resolved_by, late, result
    )


def _carried_out(net: Net, run: Run) -> Iterator[object]:
    """Return the parameters of the actions that were carried out, in the order of the recipe."""
    done = {
        association.action for association in run.associations.values() if association.state is ActionState.COMPLETED
    }
    for action in net.actions.values():
        if action.name in done:
            yield action.parameters


def _used(sources: Sequence[object]) -> dict[str, Any]:
    """Collect the used resources from results and parameters, each item once."""
    used: dict[str, dict[bytes, Payload]] = {}
    for source in sources:
        if not isinstance(source, dict):
            continue
        for name, value in source.items():
            if (kind := _ACTUALS.get(name)) and (items := _items(kind, value)):
                used.setdefault(kind.field, {}).update({msgspec.json.encode(item): item for item in items})
    return {field: tuple(items.values()) for field, items in used.items()}


def _without_actuals(result: object) -> object:
    """Return a result without its actuals; a member that is not one remains data."""
    if not isinstance(result, dict):
        return result
    return {name: value for name, value in result.items() if not ((kind := _ACTUALS.get(name)) and _items(kind, value))}


def _items(kind: _Actuals, named: object) -> tuple[Payload, ...]:
    """Read one item or a list of them, in OPC UA spelling, or only their ids; nothing when it is something else."""
    listed = named if isinstance(named, list) else [named]
    items = [{kind.by: value} if isinstance(value, str) else value for value in listed]
    try:
        read: tuple[Payload, ...] = msgspec.convert(items, kind.type)
    except msgspec.ValidationError:
        return ()
    # Material has no mandatory field: without an id it names nothing.
    return () if any(isinstance(payload, Material) and not _ids(payload) for payload in read) else read


def _ids(material: Material) -> str:
    ids = (
        material.material_class_id,
        material.material_definition_id,
        material.material_lot_id,
        material.material_sublot_id,
    )
    return "".join(identifier or "" for identifier in ids)


def _instant(milliseconds: int | None) -> datetime | None:
    return None if milliseconds is None else utc(milliseconds)


class PageLimit(Struct, frozen=True):
    """The size of one answer: a number of responses, and the bytes of JSON after which no further one is added."""

    responses: int
    size: int


PAGE = PageLimit(responses=500, size=1 << 20)
"""One answer."""
_BATCH = 50
_BEGINNING = (0, "")


class FoundResponses(Struct, frozen=True):
    """The responses found, with the ReturnStatus and the reason of a status other than success.

    `next` is the position of the next page; empty when there is none.
    """

    status: ReturnStatus
    responses: tuple[JobResponse, ...] = ()
    reason: str = ""
    next: str = ""


RecordRequest = Callable[[Sequence[JobResponse]], Awaitable[None]]
"""Records that these responses were requested."""


async def _record_nothing(_: Sequence[JobResponse]) -> None:
    pass


class ResponseProvider:
    """Finds job responses. Every call raises Unavailable when the store is gone."""

    def __init__(self, store: Store, record: RecordRequest = _record_nothing) -> None:
        """Find responses in a store; `record` is called with those that were found."""
        self._store = store
        self._record = record

    async def of_job(self, scope: str, job_order_id: str) -> FoundResponses:
        """Find the response of a job order; a job that has not started has none."""
        found = await self._of_job(scope, job_order_id)
        await self._record(found.responses)
        return found

    async def _of_job(self, scope: str, job_order_id: str) -> FoundResponses:
        possible = not any(validate_id("JobOrderID", job_order_id))
        job = await jobs.load(self._store, job_order_id) if possible else None
        if job is None or job.scope != scope:
            return FoundResponses(ReturnStatus.UNKNOWN_JOB_ORDER_ID, reason="no such job order in this scope")
        response = await responses.load(self._store, job)
        if response is None:
            return FoundResponses(ReturnStatus.INVALID_JOB_ORDER_STATUS, reason="the job order has not started")
        return FoundResponses(ReturnStatus.NO_ERROR, (response,))

    async def in_state(
        self, scope: str, query: Sequence[StateQuery | State], after: str = "", limit: PageLimit = PAGE
    ) -> FoundResponses:
        """Find the responses of jobs in a state (OPC 10031-4, 6.2.7.3) after a position, in the order of their start.

        The first entry of the query is the top level, the others are sub-states. An entry matches by its StateText,
        its StateNumber, or both.
        """
        position = _position(after)
        if position is None:
            return FoundResponses(ReturnStatus.INVALID_REQUEST, reason="After is not the Next of an answer")
        if not query or _has_path(query[0]):
            return FoundResponses(ReturnStatus.INVALID_REQUEST, reason="the first entry must be a top-level state")
        if not (_text(query[0]) or query[0].state_number):
            return FoundResponses(ReturnStatus.INVALID_REQUEST, reason="the state is empty")
        top = next((state for state in JobState if _matches(query[0], TEXT[state], state.value)), None)
        if top is None:
            return FoundResponses(ReturnStatus.NO_ERROR)
        wanted = frozenset(_substates(top, query[1:])) if len(query) > 1 else None
        found = await self._page(scope, top, wanted, position, limit)
        await self._record(found.responses)
        return found

    async def _page(
        self, scope: str, state: JobState, substates: frozenset[str] | None, position: tuple[int, str], limit: PageLimit
    ) -> FoundResponses:
        found: list[JobResponse] = []
        size = 0
        while batch := await responses.page_in_state(self._store, scope, state, position, _BATCH):
            for here, response in batch:
                if substates is None or not substates.isdisjoint(_substate_texts(response)):
                    size += len(msgspec.json.encode(response))
                    if found and (size > limit.size or len(found) >= limit.responses):
                        return FoundResponses(ReturnStatus.NO_ERROR, tuple(found), next=f"{position[0]}:{position[1]}")
                    found.append(response)
                position = here
        return FoundResponses(ReturnStatus.NO_ERROR, tuple(found))


def _position(after: str) -> tuple[int, str] | None:
    """Read a position; None for a text that is not one."""
    if not after:
        return _BEGINNING
    started_at, separator, response_id = after.partition(":")
    valid = separator and started_at.isascii() and started_at.isdecimal()
    return (int(started_at), response_id) if valid else None


def _text(entry: StateQuery | State) -> str:
    return entry.state_text.text if entry.state_text else ""


def _has_path(entry: StateQuery | State) -> bool:
    return entry.browse_path is not None and bool(entry.browse_path.elements)


def _matches(entry: StateQuery | State, text: str, number: int) -> bool:
    return _text(entry) in {"", text} and entry.state_number in {None, 0, number}


def _substates(top: JobState, entries: Sequence[StateQuery | State]) -> Iterator[str]:
    """Return the texts of the sub-states of a state that match every entry."""
    machine = SUBSTATE_MACHINE.get(top)
    for substate in SUBSTATES.get(top, ()):
        name, number = substate.value
        if all(_is_in(machine, entry) and _matches(entry, name, number) for entry in entries):
            yield name


def _is_in(machine: str | None, entry: StateQuery | State) -> bool:
    """Return whether an entry is of a sub-state machine; one without a path, as in `state-index`, is of any."""
    if entry.browse_path is None or not entry.browse_path.elements:
        return True
    return entry.browse_path.elements[-1].target_name.rpartition(";")[2].rpartition(":")[2] == machine


def _substate_texts(response: JobResponse) -> frozenset[str]:
    return frozenset(entry.state_text.text for entry in response.job_state if _has_path(entry))

"""Writes the response of a job from its run: ISA95JobResponseDataType of OPC 10031-4."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import Struct

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
    opcua_name,
)
from edge.model.job_state import state_entries
from edge.sfc.intervention import held_failures
from edge.sfc.intervention_note import InterventionNote
from edge.sfc.net import Net
from edge.sfc.run import ActionState, Association, PastAttempt, Run, Sending
from edge.sfc.view import results
from edge.sfc.withdrawal import unsent_commands, unsent_text
from edge.store.jobs import Job

ERROR_ID = "Error"
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
    """Return the present response: times, state, the result of each action, used resources, the error of a failure.

    A result `{"value": 85.2, "unit": "Nm"}`, or a member of one, becomes a value with its engineering unit. The members
    `equipment_actuals` and their like, of results and of the parameters of actions that were carried out, name what was
    used. The attempts are returned by `attempts`.
    """
    found = results(*ran) if ran else {}
    data = [result_parameter(action, _without_actuals(result)) for action, result in found.items()]
    if ran:
        data += _not_as_planned(*ran)
        data += _interventions(ran[1])
    if job.error:
        data.append(Parameter(id=ERROR_ID, value=job.error))
    return JobResponse(
        job_response_id=job.correlation_id,
        job_order_id=job.job_id,
        description=LocalizedText(text=job.error, locale="en") if job.error else None,
        start_time=_instant(job.started_at),
        end_time=_instant(job.ended_at),
        job_state=state_entries(job.status),
        job_response_data=tuple(data) or None,
        **_used([*(_carried_out(*ran) if ran else ()), *found.values()]),
    )


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
            yield Parameter(id=name, subparameters=tuple(Parameter(id=action, value=error) for action, error in found))


def _interventions(run: Run) -> Iterator[Parameter]:
    """Yield the interventions of people: who, when, why and what."""
    found = tuple(
        Parameter(id=str(number), subparameters=_facts(intervention))
        for number, intervention in run.interventions.items()
    )
    if found:
        yield Parameter(id=INTERVENTIONS_ID, subparameters=found)


def _facts(intervention_note: InterventionNote) -> tuple[Parameter, ...]:
    facts: dict[str, object] = {
        "kind": intervention_note.kind,
        "subject": intervention_note.subject,
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
        *(
            _attempt(past_attempt, late=past_attempt.late, result=past_attempt.result)
            for past_attempt in run.past.values()
        ),
        *(_attempt(association) for association in latest),
    )


def _attempt(attempt: Association | PastAttempt, *, late: bool = False, result: Any = None) -> ActionAttempt:
    name = f"{attempt.action}/{'r' if attempt.reset else ''}{attempt.attempt}"
    state = attempt.state.value
    return ActionAttempt(
        name, state, attempt.sent_at, attempt.ended_at, attempt.error, attempt.resolved_by, late, result
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
        for name, kind in _ACTUALS.items():
            if name in source and (items := _items(kind, source[name])):
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

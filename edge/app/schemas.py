"""Generate the JSON Schemas of all messages from the models."""

import pkgutil
from collections.abc import Iterator
from inspect import cleandoc
from typing import Any

import msgspec

from edge.app.features import features
from edge.model.acceptance import JobAcceptance
from edge.model.equipment_data import (
    AnswerAttributes,
    CommandAttributes,
    CommandData,
    EventAttributes,
    Permission,
    Presence,
    TaskData,
)
from edge.model.event_types import (
    ACKNOWLEDGE_TYPE,
    ALARM_METHOD_TYPE,
    ALARM_TYPE,
    AWAITS_PERSON_TYPE,
    CONFIG_TYPE,
    INTERVENE_TYPE,
    JOB_ORDER_TYPE,
    JOB_RESPONSE_TYPE,
    LATE_RESULT_TYPE,
    LOCKS_METHOD_TYPE,
    MAINTENANCE_METHOD_TYPE,
    METHOD_TYPE,
    PROGRESS_TYPE,
    RELEASE_TYPE,
    RESOLVE_TYPE,
    RESPONSE_UPDATE_TYPE,
    STATE_INDEX_TYPE,
    STATUS_EVENT_TYPE,
)
from edge.model.isa95 import (
    Equipment,
    IdCall,
    InterveneCall,
    JobOrderAndState,
    JobResponse,
    JobStatusEvent,
    Material,
    MethodAnswer,
    OrderCall,
    Personnel,
    PhysicalAsset,
    RefusalAnswer,
    ReleaseAnswer,
    ReleaseCall,
    ResolveCall,
    ResponseAnswer,
    ResponsesAnswer,
    StateCall,
    WorkMaster,
)
from edge.model.job_progress import JobProgress
from edge.model.job_state import METHODS, ORDER_METHODS, RESPONSE_METHODS
from edge.model.late_result import LateResultEvent
from edge.model.lock_message import LockCall, LocksAnswer
from edge.model.maintenance import MaintenanceAnswer, MaintenanceCall
from edge.model.recipe import recipe_schema
from edge.model.result_message import AcknowledgeAnswer, AcknowledgeCall, AwaitsPersonEvent
from edge.model.state_index import StateIndex
from edge.ports.alarm_message import AlarmCall, AlarmNotice
from edge.ports.tag import tags_schema

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_BY_ID, _BY_STATE = RESPONSE_METHODS

PAYLOADS: dict[str, tuple[Any, str]] = {
    **{
        f"{method}.call": (OrderCall if method in ORDER_METHODS else IdCall, METHOD_TYPE.format(method))
        for method in METHODS
    },
    "Method.answer": (MethodAnswer, "the answer of every job method"),
    "Refusal.answer": (RefusalAnswer, "the answer to a message that was not executed; it has `mdcserrorkind`"),
    f"{_BY_ID}.call": (IdCall, METHOD_TYPE.format(_BY_ID)),
    f"{_BY_ID}.answer": (ResponseAnswer, METHOD_TYPE.format(_BY_ID)),
    f"{_BY_STATE}.call": (StateCall, METHOD_TYPE.format(_BY_STATE)),
    f"{_BY_STATE}.answer": (ResponsesAnswer, METHOD_TYPE.format(_BY_STATE)),
    "resolve.call": (ResolveCall, RESOLVE_TYPE),
    "intervene.call": (InterveneCall, INTERVENE_TYPE),
    "ResponseUpdate": (JobStatusEvent, RESPONSE_UPDATE_TYPE),
    "AwaitsPerson": (AwaitsPersonEvent, AWAITS_PERSON_TYPE),
    "acknowledge.call": (AcknowledgeCall, ACKNOWLEDGE_TYPE),
    "acknowledge.answer": (AcknowledgeAnswer, ACKNOWLEDGE_TYPE),
    "release.call": (ReleaseCall, RELEASE_TYPE),
    "release.answer": (ReleaseAnswer, RELEASE_TYPE),
    "alarm": (AlarmNotice, ALARM_TYPE),
    "alarm.call": (AlarmCall, ALARM_METHOD_TYPE.format("METHOD")),
    "maintenance.call": (MaintenanceCall, MAINTENANCE_METHOD_TYPE.format("METHOD")),
    "maintenance.answer": (MaintenanceAnswer, MAINTENANCE_METHOD_TYPE.format("METHOD")),
    "locks.call": (LockCall, LOCKS_METHOD_TYPE.format("METHOD")),
    "locks.answer": (LocksAnswer, LOCKS_METHOD_TYPE.format("METHOD")),
    **{
        name: (pkgutil.resolve_name(model), event_type)
        for feature in features()
        for name, (model, event_type) in feature.payloads.items()
    },
    "config.equipment": (Equipment | tuple[Equipment, ...], CONFIG_TYPE.format("equipment")),
    "config.materialclass": (Material | tuple[Material, ...], CONFIG_TYPE.format("materialclass")),
    "config.materialdefinition": (Material | tuple[Material, ...], CONFIG_TYPE.format("materialdefinition")),
    "config.personnel": (Personnel | tuple[Personnel, ...], CONFIG_TYPE.format("personnel")),
    "config.physicalasset": (PhysicalAsset | tuple[PhysicalAsset, ...], CONFIG_TYPE.format("physicalasset")),
    "config.workmaster": (WorkMaster | tuple[WorkMaster, ...], CONFIG_TYPE.format("workmaster")),
    "config.jobacceptance": (JobAcceptance, CONFIG_TYPE.format("jobacceptance")),
    "ISA95JobOrderStatusEventType": (JobStatusEvent, STATUS_EVENT_TYPE),
    "ISA95JobOrderAndStateDataType": (JobOrderAndState, JOB_ORDER_TYPE),
    "ISA95JobResponseDataType": (JobResponse, JOB_RESPONSE_TYPE),
    "StateIndex": (StateIndex, STATE_INDEX_TYPE),
    "result_late": (LateResultEvent, LATE_RESULT_TYPE),
    "sfc_progress": (JobProgress, PROGRESS_TYPE),
    "equipment.command": (CommandData, "the type_id of the action"),
    "equipment.command.attributes": (CommandAttributes, "the MQTT user properties of a command"),
    "equipment.answer": (dict[str, Any], "the data of an answer or an event, at most 256 KiB"),
    "equipment.answer.attributes": (AnswerAttributes, "the MQTT user properties of an answer"),
    "equipment.event.attributes": (EventAttributes, "the MQTT user properties of an event"),
    "equipment.enabled": (Permission, "the payload of the retained topic enabled"),
    "equipment.presence": (Presence, "the payload of the retained topic presence, plain text"),
    "equipment.task": (TaskData, "the type of the event that asked for work"),
}
"""By file name: the model of a payload, and its CloudEvents type."""


def schemas() -> Iterator[tuple[str, str]]:
    """Yield each schema by its file name, as JSON text that ends with a newline."""
    for name, (payload, event_type) in PAYLOADS.items():
        head = {"$schema": _DIALECT, "title": name, "$comment": f"CloudEvents type: {event_type}"}
        yield f"{name}.schema.json", _text(head | msgspec.json.schema(payload))
    yield "sfc_recipe.schema.json", _text(recipe_schema())
    yield "tags.schema.json", _text(tags_schema())
    for name, function in ((name, function) for feature in features() for name, function in feature.schemas.items()):
        yield f"{name}.schema.json", _text(pkgutil.resolve_name(function)())


def _text(schema: dict[str, Any]) -> str:
    return msgspec.json.format(msgspec.json.encode(_clean(schema)), indent=2).decode() + "\n"


def _clean(schema: Any) -> Any:
    """Return a schema with its descriptions, docstrings of the models, unindented, as Python 3.13 has them."""
    match schema:
        case dict():
            return {
                key: cleandoc(value) if key == "description" and isinstance(value, str) else _clean(value)
                for key, value in schema.items()
            }
        case list():
            return [_clean(item) for item in schema]
        case _:
            return schema

"""Generates the JSON Schemas of all messages from the models, and an AsyncAPI 3.0 document over them."""

import pkgutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from edge import __version__
from edge.app.features import features
from edge.app.schema_examples import with_examples
from edge.model.acceptance import JobAcceptance
from edge.model.equipment_data import (
    AnswerAttributes,
    AnswerData,
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
    ALARM_TYPE_V1,
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
    PROGRESS_TYPE_V1,
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
from edge.model.job_message import (
    AcknowledgeAnswer,
    AcknowledgeCall,
    AwaitsPersonEvent,
    JobProgress,
    JobProgressV1,
    LateResultEvent,
    StateIndex,
)
from edge.model.job_state import METHODS, ORDER_METHODS, RESPONSE_METHODS
from edge.model.lock import LockCall, LocksAnswer
from edge.model.plant import MaintenanceAnswer, MaintenanceCall
from edge.model.recipe import recipe_schema
from edge.ports.alarm import AlarmCall, AlarmNotice, PublicAlarmChange
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
    "alarm": (PublicAlarmChange, ALARM_TYPE),
    "alarm.v1": (AlarmNotice, ALARM_TYPE_V1),
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
    "sfc_progress.v1": (JobProgressV1, PROGRESS_TYPE_V1),
    "equipment.command": (CommandData, "the type_id of the action"),
    "equipment.command.attributes": (CommandAttributes, "the MQTT user properties of a command"),
    "equipment.answer": (AnswerData, "the data of an answer or an event, at most 256 KiB"),
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
    return msgspec.json.format(msgspec.json.encode(with_examples(schema)), indent=2).decode() + "\n"


ASYNCAPI_FILE: Final = "asyncapi.json"

_CONFIG: Final = "config."
_SETTINGS_ANSWER: Final = "config.answer"
_EQUIPMENT_EVENT: Final = "equipment.event"


class _Channel(Struct, frozen=True):
    """A topic, which side sends there, and the messages on it, named as their schemas."""

    address: str
    action: Literal["receive", "send"]
    description: str
    messages: Sequence[str]
    retain: bool = False


def _calls() -> Iterator[str]:
    return (name for name in PAYLOADS if name.endswith(".call") or name.startswith(_CONFIG))


def _answers() -> Iterator[str]:
    yield _SETTINGS_ANSWER
    yield from (name for name in PAYLOADS if name.endswith(".answer") and not name.startswith("equipment."))


def _events_of_features() -> Iterator[str]:
    return (name for item in features() for name in item.payloads if not name.endswith((".call", ".answer")))


_SCOPE: Final = "{topicPrefix}/{scope}"
_EQUIPMENT: Final = "{equipmentPrefix}/{equipment}"
_CHANNELS: Final[Mapping[str, _Channel]] = {
    "commands": _Channel(f"{_SCOPE}/commands", "receive", "Job methods and station settings.", tuple(_calls())),
    "metadata": _Channel(
        f"{_SCOPE}/metadata",
        "receive",
        "Station settings, for a MES that keeps them apart.",
        tuple(name for name in _calls() if name.startswith(_CONFIG)),
    ),
    "events": _Channel(
        f"{_SCOPE}/events",
        "send",
        "One event for each transition of a job, change of its response, question to a person, and late result.",
        ("ISA95JobOrderStatusEventType", "ResponseUpdate", "AwaitsPerson", "result_late", *_events_of_features()),
    ),
    "data": _Channel(
        f"{_SCOPE}/data",
        "send",
        "Progress of running recipes; may be missed.",
        ("sfc_progress", "sfc_progress.v1"),
    ),
    "alarms": _Channel(f"{_SCOPE}/alarms", "send", "One event for each change of an alarm.", ("alarm", "alarm.v1")),
    "alarm": _Channel(
        f"{_SCOPE}/alarm/{{alarmId}}", "send", "An alarm as it is now.", ("alarm", "alarm.v1"), retain=True
    ),
    "order": _Channel(
        f"{_SCOPE}/order/{{jobOrderId}}",
        "send",
        "A job order with its state; empty once it is removed.",
        ("ISA95JobOrderAndStateDataType",),
        retain=True,
    ),
    "result": _Channel(
        f"{_SCOPE}/result/{{jobOrderId}}",
        "send",
        "The response of a job that has ended; empty once the job is removed.",
        ("ISA95JobResponseDataType",),
        retain=True,
    ),
    "state-index": _Channel(f"{_SCOPE}/state-index", "send", "The states of all jobs.", ("StateIndex",), retain=True),
    "equipment-commands": _Channel(
        f"{_EQUIPMENT}/commands", "send", "Commands to equipment of the kind `mqtt`.", ("equipment.command",)
    ),
    "equipment-answers": _Channel(
        f"{_EQUIPMENT}/answers", "receive", "Answers of equipment to commands.", ("equipment.answer",)
    ),
    "equipment-events": _Channel(
        f"{_EQUIPMENT}/events", "receive", "Events of equipment, and its requests for work.", (_EQUIPMENT_EVENT,)
    ),
    "equipment-data": _Channel(
        f"{_EQUIPMENT}/data",
        "receive",
        "Events of equipment, as on `events`, for devices that keep them apart.",
        (_EQUIPMENT_EVENT,),
    ),
    "equipment-enabled": _Channel(
        f"{_EQUIPMENT}/enabled",
        "send",
        'With `lock = "on"`: whether a command needs the tool. Other systems may publish below it: `enabled/NAME`.',
        ("equipment.enabled",),
        retain=True,
    ),
    "equipment-presence": _Channel(
        f"{_EQUIPMENT}/presence", "receive", "Whether equipment is online.", ("equipment.presence",), retain=True
    ),
}
_PARAMETERS: Final[Mapping[str, str]] = {
    "topicPrefix": "`[northbound] topic_prefix`, by default `app/jobs`; it may have several levels.",
    "scope": "One of `[gateway] scopes`.",
    "jobOrderId": "The JobOrderID, with `%`, `/`, `+` and `#` percent-encoded.",
    "alarmId": "The id of the alarm, percent-encoded likewise.",
    "equipmentPrefix": "`[southbound.NAME] topic_prefix`, by default `app/equipment`.",
    "equipment": "The name of the equipment: `NAME` of `[southbound.NAME]`.",
}


def asyncapi() -> str:
    """Return the document as JSON text that ends with a newline; payloads are references to the files of schemas."""
    document = {
        "asyncapi": "3.0.0",
        "info": {
            "title": "microdcs-edge",
            "version": __version__,
            "description": "MQTT 5, QoS 1, CloudEvents 1.0 in binary mode: attributes are user properties.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "channels": {
            **{name: _channel(channel) for name, channel in _CHANNELS.items()},
            "responses": {
                "address": None,
                "description": "The Response Topic of a call; the answer repeats its Correlation Data.",
                "messages": _references("#/components/messages", _answers()),
            },
            "equipment-replies": {
                "address": None,
                "description": "The Response Topic of an event of equipment that requests work.",
                "messages": _references("#/components/messages", ("equipment.task",)),
            },
        },
        "operations": dict(_operations()),
        "components": {
            "messages": {
                **{name: _message(name) for name in PAYLOADS if not name.endswith(".attributes")},
                _SETTINGS_ANSWER: {
                    "name": _SETTINGS_ANSWER,
                    "summary": "The answer to station settings: without payload; to a GET, what is stored.",
                },
                _EQUIPMENT_EVENT: {
                    "name": _EQUIPMENT_EVENT,
                    "summary": "the type_id of the action that waits for it",
                    "payload": {"$ref": "./equipment.answer.schema.json"},
                    "headers": {"$ref": "./equipment.event.attributes.schema.json"},
                },
            }
        },
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def _channel(channel: _Channel) -> dict[str, Any]:
    parameters = {name: {"description": text} for name, text in _PARAMETERS.items() if f"{{{name}}}" in channel.address}
    return {
        "address": channel.address,
        "description": channel.description,
        "parameters": parameters,
        "messages": _references("#/components/messages", channel.messages),
    }


def _operations() -> Iterator[tuple[str, Any]]:
    """Yield what the gateway does on each channel; one operation for each call, as each has its own answer."""
    for name, channel in _CHANNELS.items():
        operation = {
            "action": channel.action,
            "channel": {"$ref": f"#/channels/{name}"},
            "bindings": {"mqtt": {"qos": 1, "retain": channel.retain}},
        }
        if channel.messages == (_EQUIPMENT_EVENT,):
            operation["reply"] = _reply("equipment-replies", ("equipment.task",))
        if name not in {"commands", "metadata"}:
            yield f"{channel.action}.{name}", operation
            continue
        for message in channel.messages:
            yield (
                f"{name}.{message.removesuffix('.call')}",
                operation
                | {
                    "messages": [{"$ref": f"#/channels/{name}/messages/{message}"}],
                    "reply": _reply("responses", _answers_to(message)),
                },
            )


def _reply(channel: str, messages: Iterable[str]) -> dict[str, Any]:
    return {
        "address": {"location": "$message.header#/responseTopic"},
        "channel": {"$ref": f"#/channels/{channel}"},
        "messages": [{"$ref": f"#/channels/{channel}/messages/{message}"} for message in messages],
    }


def _answers_to(message: str) -> tuple[str, str]:
    """Return the answers to a call: its own or that of all methods, and the refusal of a message."""
    if message.startswith(_CONFIG):
        return _SETTINGS_ANSWER, "Refusal.answer"
    own = f"{message.removesuffix('.call')}.answer"
    return own if own in PAYLOADS else "Method.answer", "Refusal.answer"


def _message(name: str) -> dict[str, Any]:
    _, event_type = PAYLOADS[name]
    message = {"name": name, "payload": {"$ref": f"./{name}.schema.json"}, "summary": event_type}
    attributes = f"{name}.attributes"
    if attributes in PAYLOADS:
        return message | {"headers": {"$ref": f"./{attributes}.schema.json"}}
    if name.startswith("equipment."):
        return message
    return message | {"headers": _cloudevent(event_type)}


def _cloudevent(event_type: str) -> dict[str, Any]:
    """Return the schema of the attributes of a CloudEvent; several types share a message where one has a blank."""
    is_type = " " not in event_type and "METHOD" not in event_type
    text = {"type": "string"}
    return {
        "type": "object",
        "properties": {
            "specversion": text | {"const": "1.0"},
            "id": text,
            "source": text,
            "type": text | ({"const": event_type} if is_type else {"description": event_type}),
            "subject": text | {"description": "The scope."},
            "time": text | {"format": "date-time"},
            "correlationid": text,
            "causationid": text | {"description": "The id of the call that this message answers or follows from."},
            "responseTopic": text | {"description": "The MQTT property Response Topic."},
        },
        "required": ["specversion", "id", "source", "type"],
    }


def _references(base: str, names: Iterable[str]) -> dict[str, Any]:
    return {name: {"$ref": f"{base}/{name}"} for name in names}

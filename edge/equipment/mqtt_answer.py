"""Decodes what equipment sends over MQTT: answers, unsolicited results and events."""

import dataclasses
import uuid

import msgspec

from edge.foundation.errors import Refused
from edge.links.mqtt import Message, to_event
from edge.model.cloudevent import REQUIRED, CloudEvent, new_id
from edge.model.equipment_data import TaskData
from edge.model.event_types import REFUSED_TYPE
from edge.sfc.identifiers import parse_command_id
from edge.station.equipment import EquipmentAnswer, EquipmentEvent, Kept, LateResult, OutcomeUnknown, Task

UNKNOWN = "unknown"
"""The `mdcserrorkind` of equipment that lost its memory and cannot report whether it executed a command."""

REPEATED_ID = "repeated_id"
"""The `mdcserrorkind` of equipment that has another command with the id, which a gateway with another store sent.

Both gateways receive this answer, and neither knows which command the equipment carries out.
"""

NOT_STOPPED = "not_stopped"
"""The `mdcserrorkind` of equipment that declines to stop a command: the tool may still be active."""


_STRUCTURED = "application/cloudevents"
_REQUIRED = frozenset({"specversion", *REQUIRED})


def complete_answer(message: Message) -> Message:
    """Return an answer completed with the attributes that CloudEvents requires and its sender left out.

    The command id is enough to identify the answer: a bolt must not fail for a missing attribute.
    """
    given = message.user_properties
    if "causationid" not in given or ((message.content_type or not message.payload) and given.keys() >= _REQUIRED):
        return message
    completed = {"specversion": "1.0", "id": given["causationid"], "source": message.topic, "type": "answer"} | dict(
        given
    )
    content_type = message.content_type or ("application/json" if message.payload else None)
    return dataclasses.replace(message, user_properties=completed, content_type=content_type)


def command_of_answer(message: Message) -> str | None:
    """Return the command that a message answers, in binary or structured mode; None when it names none."""
    if (command := message.user_properties.get("causationid")) or not (message.content_type or "").startswith(
        _STRUCTURED
    ):
        return command or None
    try:
        return to_event(message).causationid
    except Refused:
        return None


def job_of_answer(message: Message) -> str:
    """Return the job whose command a message answers, as the command id has it; empty when it names no command."""
    return message.user_properties.get("causationid", "").partition("/")[0]


def read_answer(message: Message, scope: str) -> tuple[CloudEvent, LateResult | None]:
    """Return the event of an answer, and the result where no command of ours is answered. Raises Refused."""
    event = to_event(complete_answer(message))
    result = to_unsolicited(event, scope)
    if result:
        _refuse_retained(message)
    return event, result


def read_event(message: Message) -> CloudEvent:
    """Return an event or a request of equipment. Raises Refused."""
    _refuse_retained(message)
    return to_event(without_correlation_data(message) if message.response_topic else message)


def _refuse_retained(message: Message) -> None:
    """Raise Refused(`retained`) for a message that the broker had retained: what it reports may be of any age."""
    if message.retain:
        raise Refused("retained", "the message was retained and may be of any age", "Send it without RETAIN.")


def to_unsolicited(event: CloudEvent, scope: str) -> LateResult | None:
    """Return an event as an unsolicited result: it has data, no error, and no command id of ours; else return None."""
    command_id = event.causationid
    if not event.data or event.mdcserrorkind or (command_id and parse_command_id(command_id) is not None):
        return None
    return LateResult(source=event.source, key=event.id, scope=event.subject or scope, data=event.data)


def to_answer(event: CloudEvent) -> EquipmentAnswer | OutcomeUnknown:
    """Return the answer to a command. Raises Refused(`unreadable`) when the answer names no command."""
    if not event.causationid:
        raise Refused("unreadable", "an answer without causationid", "Name the id of the command in causationid.")
    error = (event.mdcserrormessage or event.mdcserrorkind) if event.mdcserrorkind else None
    if error and event.mdcserrorkind in {UNKNOWN, REPEATED_ID}:
        return OutcomeUnknown(event.causationid, error)
    return EquipmentAnswer(command_id=event.causationid, data=event.data, error=error)


def declined_stop(event: CloudEvent) -> str | None:
    """Return why equipment declines to stop a command; None for every other answer, also for that to a reset."""
    key = parse_command_id(event.causationid or "")
    if event.mdcserrorkind != NOT_STOPPED or (key is not None and key.reset):
        return None
    return event.mdcserrormessage or NOT_STOPPED


def without_correlation_data(question: Message) -> Message:
    """Return a request without Correlation Data, which belong to its reply and name no job."""
    return dataclasses.replace(question, correlation_data=None)


def to_equipment_event(event: CloudEvent) -> EquipmentEvent:
    """Return an event of equipment. Raises Refused(`unreadable`) for an event without scope."""
    if not event.subject:
        raise Refused("unreadable", "an event without subject", "Name the scope of the station in subject.")
    return EquipmentEvent(
        source=event.source,
        event_id=event.id,
        type_id=event.type,
        scope=event.subject,
        data=event.data,
        job_id=event.extensions.get("joborderid"),
        correlation_id=event.correlationid,
    )


def task_answer(request: CloudEvent, task: Task | Kept | None, source: str) -> CloudEvent:
    """Return the reply to a request for work."""
    answer = CloudEvent(
        # A repeated request gets the same answer with the same id.
        id=str(uuid.uuid5(uuid.NAMESPACE_URL, f"{request.source}#{request.id}")),
        source=source,
        type=request.type,
        subject=request.subject,
        correlationid=request.correlationid,
        causationid=request.id,
    )
    if task is None:
        message = f"no job in scope {request.subject!r} waits for {request.type}"
        return msgspec.structs.replace(answer, mdcserrorkind="nothing_waiting", mdcserrormessage=message)
    if isinstance(task, Kept):
        message = f"the event is kept for job {task.job_id!r}, which does not wait for it yet"
        return msgspec.structs.replace(answer, mdcserrorkind="kept", mdcserrormessage=message)
    data = TaskData(task.job_id, task.action, dict(task.parameters))
    return msgspec.structs.replace(answer, data=data)


def refusal_answer(message: Message, refusal: Refused, source: str) -> CloudEvent:
    """Return the reply to a message that is refused, with the reason."""
    request = message.user_properties
    return CloudEvent(
        id=new_id(),
        source=source,
        type=request.get("type") or REFUSED_TYPE,
        subject=request.get("subject"),
        correlationid=request.get("correlationid"),
        causationid=request.get("id"),
        mdcserrorkind=refusal.kind,
        mdcserrormessage=refusal.message,
    )

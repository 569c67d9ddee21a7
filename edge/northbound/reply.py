"""What the handler of a call returns: the content of the answer, what the call changed, and who sent it."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from edge.access.audit_trail import AuditTrail
from edge.access.localization import parse_languages
from edge.foundation.errors import Refused
from edge.foundation.text import Text
from edge.model.audit import AuditRecord
from edge.model.cloudevent import CloudEvent
from edge.model.isa95 import MethodAnswer, OrderCall, Payload, RefusalAnswer, read_payload
from edge.station.job_call import CallAnswer, JobCall
from edge.station.settings import SettingsMethod

_P = TypeVar("_P", bound=Payload)

THE_MES = Text.of("the MES")
"""The caller of calls over MQTT."""
LANGUAGES = "acceptlanguage"
"""The extension attribute with the languages of the caller, as the header Accept-Language has them."""


class CallEffect(Struct, frozen=True):
    """What a call changed, or tried to: for the audit trail."""

    action: str
    subject: str
    comment: str = ""
    by: str = ""
    """The person that the call names; empty where it names only its source."""


class Reply(Struct, frozen=True):
    """The content of an answer: its data; the kind of an error; the reason of an error or of a status other than 1."""

    data: object = None
    error_kind: str | None = None
    reason: str | None = None
    change: CallEffect | None = None
    """None for a call that only reads."""


def caller_of(source: str) -> Text:
    """Return the caller of a call by the topic or adapter that it came from."""
    return Text.of("a program over RPC") if source == "rpc" else THE_MES


def languages_of(event: CloudEvent) -> tuple[str, ...]:
    """Return the languages that the sender of an event prefers."""
    return parse_languages(event.extensions.get(LANGUAGES, ""))


def arguments_of(
    event: CloudEvent, kind: type[_P], advice: str = "Send its arguments in OPC UA spelling.", without: object = None
) -> _P:
    """Return the arguments of a call; `without` stands for a payload that is absent. Raises Refused for wrong ones."""
    try:
        return read_payload(without if event.data is None else event.data, kind)
    except msgspec.ValidationError as error:
        reason = Text.of("the payload does not have the arguments of {type}: {reason}.", type=event.type, reason=error)
        raise Refused("invalid_payload", reason, advice) from None


def call_record(
    trail: AuditTrail, event: CloudEvent, origin: str, change: CallEffect, status: str = "Good"
) -> AuditRecord:
    """Return the record of a call that came from `origin`, a topic or `rpc`, and of what it changed."""
    is_rpc = origin == "rpc"
    return AuditRecord(
        at=trail.clock(),
        kind="rpc.call" if is_rpc else "mes.call",
        instance=trail.instance,
        user=change.by or event.source,
        application=event.source if change.by else "",
        address="" if is_rpc else origin,
        action=change.action,
        subject=change.subject,
        comment=change.comment,
        status=status,
    )


def change_of(call: JobCall) -> CallEffect:
    """Return what the call of a job method changes."""
    arguments = call.arguments
    job_id = arguments.job_order.job_order_id if isinstance(arguments, OrderCall) else arguments.job_order_id
    comment = " / ".join(text.text for text in arguments.comment or () if text.text)
    return CallEffect(call.method.value, job_id, comment)


def method_reply(answer: CallAnswer, change: CallEffect) -> Reply:
    """Return the reply to the call of a method."""
    reason = str(answer.reason) or None
    return Reply(MethodAnswer(return_status=answer.status, reason=reason), reason=reason, change=change)


def refusal_reply(kind: str, reason: str) -> Reply:
    """Return the reply to a message that is refused."""
    return Reply(RefusalAnswer(error_kind=kind, reason=reason), kind, reason)


Handler: TypeAlias = Callable[[CloudEvent, str], Awaitable[Reply]]
"""Executes a call that came over a topic, or `rpc`, and returns its answer. Raises Refused."""


def replying(execute: Callable[[CloudEvent, str], Awaitable[object]]) -> Handler:
    """Return the handler of a function that returns the data of an answer, and records its change itself."""

    async def call(event: CloudEvent, origin: str) -> Reply:
        return Reply(await execute(event, origin))

    return call


def settings_method(event: CloudEvent) -> SettingsMethod:
    """Return the method of an event that sends or reads settings. Raises Refused for an unknown one."""
    method = event.extensions.get("method", SettingsMethod.PUT)
    if method not in {item.value for item in SettingsMethod}:
        raise Refused(
            "invalid_payload", Text.of("method {method!r} is not known.", method=method), "It is PUT, DELETE or GET."
        )
    return SettingsMethod(method)

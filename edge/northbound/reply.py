"""What the handler of a call returns: the content of the answer, what the call changed, and who sent it."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from msgspec import Struct

from edge.foundation.errors import Refused
from edge.model.cloudevent import CloudEvent
from edge.model.isa95 import MethodAnswer, OrderCall, RefusalAnswer
from edge.station.job_call import CallAnswer, JobCall
from edge.station.settings import SettingsMethod

THE_MES = "the MES"
"""The caller of calls over MQTT."""


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


def caller_of(source: str) -> str:
    """Return the caller of a call by the topic or adapter that it came from."""
    return "a program over RPC" if source == "rpc" else THE_MES


def change_of(call: JobCall) -> CallEffect:
    """Return what the call of a job method changes."""
    arguments = call.arguments
    job_id = arguments.job_order.job_order_id if isinstance(arguments, OrderCall) else arguments.job_order_id
    comment = " / ".join(localized_text.text for localized_text in arguments.comment or () if localized_text.text)
    return CallEffect(call.method.value, job_id, comment)


def method_reply(answer: CallAnswer, change: CallEffect) -> Reply:
    """Return the reply to the call of a method."""
    reason = "; ".join(answer.reasons) or None
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
        raise Refused("invalid_payload", f"method {method!r} is not known.", "It is PUT, DELETE or GET.")
    return SettingsMethod(method)

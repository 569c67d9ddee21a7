"""Takes calls and station settings from the MES, and answers them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import msgspec
import structlog

from edge.errors import Refused
from edge.links.mqtt import Message, Session, to_event
from edge.model.cloudevent import JSON, CloudEvent, new_id
from edge.model.event_types import CONFIG_TYPE, METHOD_TYPE, REFUSED_TYPE
from edge.model.isa95 import IdCall, MethodAnswer, OrderCall
from edge.model.job_state import METHODS, Cause
from edge.northbound.topics import Topics
from edge.station.jobs import JobCall, JobService
from edge.station.settings import KINDS, Operation, StationSettings

logger = structlog.get_logger(__name__)

_METHOD_OF_TYPE: Mapping[str, Cause] = {METHOD_TYPE.format(method): method for method in METHODS}
_KIND_OF_TYPE: Mapping[str, str] = {CONFIG_TYPE.format(kind): kind for kind in KINDS}
_TAKES_AN_ORDER = frozenset({Cause.STORE, Cause.STORE_AND_START, Cause.UPDATE})


@dataclass(frozen=True, slots=True)
class _Said:
    """What an answer says: its data; the kind of an error; the reason of an error or of a declining status."""

    data: MethodAnswer | None = None
    error_kind: str | None = None
    reason: str | None = None


class Inbox:
    """The MES's way in. A message is acknowledged once its effect is in the store and its answer is out."""

    def __init__(self, session: Session, source: str, jobs: JobService, settings: StationSettings) -> None:
        self._session = session
        self._source = source
        self._jobs = jobs
        self._settings = settings
        self._scopes: frozenset[str] = frozenset()

    async def open(self, topics: Mapping[str, Topics]) -> None:
        """Subscribe to the calls of each scope. Raises Unavailable when the broker does not confirm."""
        self._scopes = frozenset(topics)
        for scope, each in topics.items():
            for topic in (each.commands, each.metadata):
                await self._session.subscribe(topic, partial(self._take, scope), on_poison=self._answer_defect)

    async def _take(self, scope: str, message: Message) -> None:
        event = None
        try:
            event = to_event(message)
            said = await self._act(event.subject or scope, event)
        except Refused as refusal:
            kind, reason = refusal.kind, f"{refusal.message} {refusal.advice}".strip()
            logger.warning("message refused", topic=message.topic, kind=kind, reason=reason)
            said = _Said(error_kind=kind, reason=reason)
        await self._answer(message, event, said)

    async def _act(self, scope: str, event: CloudEvent) -> _Said:
        if scope not in self._scopes:
            known = ", ".join(sorted(self._scopes))
            raise Refused("unknown_scope", f"this gateway does not serve scope {scope!r}.", f"It serves {known}.")
        if method := _METHOD_OF_TYPE.get(event.type):
            answer = await self._jobs.call(JobCall(scope, method, _arguments(method, event), event.source, event.id))
            return _Said(MethodAnswer(return_status=answer.status), reason="; ".join(answer.reasons) or None)
        if kind := _KIND_OF_TYPE.get(event.type):
            await self._settings.apply(scope, kind, _operation(event), event.data)
            return _Said()
        raise Refused("unknown_type", f"type {event.type!r} is not known here.", "Call a job method or send settings.")

    async def _answer(self, message: Message, event: CloudEvent | None, said: _Said) -> None:
        # A call that could not be read may still tell who waits for its answer.
        told = message.user_properties
        answer = CloudEvent(
            id=new_id(),
            source=self._source,
            type=event.type if event else told.get("type") or REFUSED_TYPE,
            subject=event.subject if event else told.get("subject"),
            datacontenttype=event.datacontenttype if event else JSON,
            correlationid=event.correlationid if event else told.get("correlationid"),
            causationid=event.id if event else told.get("id"),
            mdcserrorkind=said.error_kind,
            mdcserrormessage=said.reason,
            data=said.data,
        )
        await self._session.answer(message, answer)

    async def _answer_defect(self, message: Message, error: Exception) -> None:
        try:
            event = to_event(message)
        except Refused:
            event = None
        reason = f"the call met a defect of this software: {type(error).__name__}"
        await self._answer(message, event, _Said(error_kind="internal", reason=reason))


def _arguments(method: Cause, event: CloudEvent) -> OrderCall | IdCall:
    try:
        if method in _TAKES_AN_ORDER:
            return msgspec.convert(event.data, OrderCall)
        return msgspec.convert(event.data, IdCall)
    except msgspec.ValidationError as error:
        reason = f"the payload is no argument of {method}: {error}."
        raise Refused("invalid_payload", reason, "Send its arguments in OPC UA spelling.") from None


def _operation(event: CloudEvent) -> Operation:
    asked = event.extensions.get("method", Operation.PUT)
    if asked not in {each.value for each in Operation}:
        raise Refused("invalid_payload", f"method {asked!r} is not known.", "It is PUT or DELETE.")
    return Operation(asked)

"""Acts on a call of the MES, whichever way it came, and gives the event that answers it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

import msgspec
import structlog

from edge.errors import Refused
from edge.instant import Clock
from edge.model.cloudevent import JSON, CloudEvent, new_id
from edge.model.event_types import CONFIG_TYPE, METHOD_TYPE, REFUSED_TYPE
from edge.model.isa95 import IdCall, MethodAnswer, OrderCall, Payload, ResponseAnswer, ResponsesAnswer, StateCall
from edge.model.job_state import METHODS, ORDER_METHODS, RESPONSE_METHODS, Cause
from edge.station.jobs import JobCall, JobService, refuse_expired
from edge.station.response_provider import ResponseProvider
from edge.station.settings import KINDS, SettingsMethod, StationSettings
from edge.store.client import Store
from edge.store.refused import RefusedMessage, record_refusal

logger = structlog.get_logger(__name__)

_P = TypeVar("_P", bound=Payload)

_METHOD_OF_TYPE: Mapping[str, Cause] = {METHOD_TYPE.format(method): method for method in METHODS}
_KIND_OF_TYPE: Mapping[str, str] = {CONFIG_TYPE.format(kind): kind for kind in KINDS}
_BY_ID, _BY_STATE = map(METHOD_TYPE.format, RESPONSE_METHODS)


@dataclass(frozen=True, slots=True)
class IncomingCall:
    """A call as it came: `read` gives its event or raises Refused."""

    read: Callable[[], CloudEvent]
    attributes: Mapping[str, str]
    """Its attributes as they stand: what cannot be read may still tell who waits for the answer."""
    scope: str
    """The scope of an event that names none."""
    source: str
    """Where it came in, for the log."""
    raw: Callable[[], bytes] = bytes
    """Gives what it holds, for those who look at what was refused."""
    expires_at: int | None = None
    """When it is worth nothing any more, as the line tells it, in milliseconds since the epoch."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What an answer says: its data; the kind of an error; the reason of an error or of a declining status."""

    data: MethodAnswer | ResponseAnswer | ResponsesAnswer | None = None
    error_kind: str | None = None
    reason: str | None = None


class CallHandler:
    """The job methods and station settings of the scopes that this gateway serves."""

    def __init__(
        self,
        source: str,
        scopes: Iterable[str],
        store: Store,
        jobs: JobService,
        settings: StationSettings,
        clock: Clock,
    ) -> None:
        self._source = source
        self._scopes = frozenset(scopes)
        self._store = store
        self._jobs = jobs
        self._responses = ResponseProvider(store)
        self._settings = settings
        self._clock = clock

    async def answer(self, incoming: IncomingCall) -> CloudEvent:
        """Act, and give the answer; its effect is in the store then. Raises Unavailable when the store is gone."""
        event = None
        try:
            event = incoming.read()
            expires_at = _expiry(event) if incoming.expires_at is None else incoming.expires_at
            reply = await self._execute(event.subject or incoming.scope, event, expires_at)
        except Refused as refusal:
            kind, reason = refusal.kind, _reason(refusal)
            logger.warning("message refused", source=incoming.source, kind=kind, reason=reason)
            await self._set_aside(incoming, kind, reason)
            reply = Reply(error_kind=kind, reason=reason)
        return self._reply_event(reply, event, incoming.attributes)

    async def answer_defect(self, incoming: IncomingCall, error: Exception) -> CloudEvent:
        """Give the answer to a call that met a defect. Raises Unavailable when the store is gone."""
        try:
            event = incoming.read()
        except Refused:
            event = None
        reason = f"the call met a defect of this software: {type(error).__name__}"
        await self._set_aside(incoming, "internal", reason)
        return self._reply_event(Reply(error_kind="internal", reason=reason), event, incoming.attributes)

    async def _set_aside(self, incoming: IncomingCall, kind: str, reason: str) -> None:
        attributes = incoming.attributes
        message = RefusedMessage(
            incoming.source, attributes.get("type", ""), attributes.get("id", ""), kind, reason, incoming.raw()
        )
        await self._store.commit(record_refusal(self._store.keys, message))

    async def _execute(self, scope: str, event: CloudEvent, expires_at: int | None) -> Reply:
        if scope not in self._scopes:
            known = ", ".join(sorted(self._scopes))
            raise Refused("unknown_scope", f"this gateway does not serve scope {scope!r}.", f"It serves {known}.")
        if method := _METHOD_OF_TYPE.get(event.type):
            taken: type[OrderCall | IdCall] = OrderCall if method in ORDER_METHODS else IdCall
            arguments = _arguments(method, event, taken)
            transaction = event.extensions.get("transactionid", "")
            call = JobCall(scope, method, arguments, event.source, event.id, transaction, expires_at)
            answer = await self._jobs.call(call)
            return Reply(MethodAnswer(return_status=answer.status), reason="; ".join(answer.reasons) or None)
        refuse_expired(expires_at, self._clock())
        if kind := _KIND_OF_TYPE.get(event.type):
            await self._settings.apply(scope, kind, _operation(event), event.data)
            return Reply()
        if event.type == _BY_ID:
            found = await self._responses.of_job(scope, _arguments(event.type, event, IdCall).job_order_id)
            response = found.responses[0] if found.responses else None
            return Reply(ResponseAnswer(job_response=response, return_status=found.status), reason=found.reason or None)
        if event.type == _BY_STATE:
            found = await self._responses.in_state(scope, _arguments(event.type, event, StateCall).job_order_state)
            every = ResponsesAnswer(job_responses=found.responses, return_status=found.status)
            return Reply(every, reason=found.reason or None)
        raise Refused("unknown_type", f"type {event.type!r} is not known here.", "Call a job method or send settings.")

    def _reply_event(self, reply: Reply, event: CloudEvent | None, attributes: Mapping[str, str]) -> CloudEvent:
        return CloudEvent(
            id=new_id(),
            source=self._source,
            type=event.type if event else attributes.get("type") or REFUSED_TYPE,
            subject=event.subject if event else attributes.get("subject"),
            datacontenttype=event.datacontenttype if event else JSON,
            correlationid=event.correlationid if event else attributes.get("correlationid"),
            causationid=event.id if event else attributes.get("id"),
            mdcserrorkind=reply.error_kind,
            mdcserrormessage=reply.reason,
            data=reply.data,
        )


def _reason(refusal: Refused) -> str:
    sentences = (refusal.message, refusal.advice)
    return ". ".join(each.removesuffix(".") for each in sentences if each) + "."


def _arguments(method: str, event: CloudEvent, kind: type[_P]) -> _P:
    try:
        return msgspec.convert(event.data, kind)
    except msgspec.ValidationError as error:
        reason = f"the payload is no argument of {method}: {error}."
        raise Refused("invalid_payload", reason, "Send its arguments in OPC UA spelling.") from None


def _expiry(event: CloudEvent) -> int | None:
    """Give when an event expires by its own attributes: `expiryinterval` seconds after its `time`."""
    if event.time is None or event.expiryinterval is None:
        return None
    try:
        sent_at = datetime.fromisoformat(event.time)
    except ValueError:
        return None
    zoned = sent_at if sent_at.tzinfo else sent_at.replace(tzinfo=UTC)
    return round((zoned.timestamp() + event.expiryinterval) * 1000)


def _operation(event: CloudEvent) -> SettingsMethod:
    asked = event.extensions.get("method", SettingsMethod.PUT)
    if asked not in {each.value for each in SettingsMethod}:
        raise Refused("invalid_payload", f"method {asked!r} is not known.", "It is PUT or DELETE.")
    return SettingsMethod(asked)

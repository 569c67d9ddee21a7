"""Execute a call of the MES, from whichever adapter it came, and return the event that answers it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType

import structlog
from msgspec import Struct, field

from edge.access.audit_trail import AuditTrail
from edge.foundation.errors import Refused
from edge.foundation.instant import Clock
from edge.foundation.rate_limit import LogThrottle
from edge.foundation.text import Text
from edge.model.cloudevent import JSON, CloudEvent, new_id
from edge.model.event_types import (
    ACKNOWLEDGE_TYPE,
    CONFIG_TYPE,
    INTERVENE_TYPE,
    METHOD_TYPE,
    REFUSED_TYPE,
    RELEASE_TYPE,
    RESOLVE_TYPE,
    answer_type,
    canonical_type,
)
from edge.model.instant import milliseconds, parse_instant
from edge.model.isa95 import (
    IdCall,
    InterveneCall,
    JobResponse,
    OrderCall,
    ReleaseAnswer,
    ReleaseCall,
    ResolveCall,
    ResponseAnswer,
    ResponsesAnswer,
    ReturnStatus,
    StateCall,
)
from edge.model.job_message import AcknowledgeAnswer, AcknowledgeCall
from edge.model.job_state import METHODS, ORDER_METHODS, RESPONSE_METHODS, Cause
from edge.model.recipe import Intervention
from edge.northbound.reply import (
    CallEffect,
    Handler,
    Reply,
    arguments_of,
    call_record,
    caller_of,
    change_of,
    languages_of,
    method_reply,
    refusal_reply,
    settings_method,
)
from edge.sfc.signal import Intervene, Resolution, Resolve
from edge.station.intervene import InterventionRequest, ReleaseRequest, intervene, names_of, release
from edge.station.job_call import UNKNOWN_AGE, JobCall, RefusalRecorder, refuse_expired
from edge.station.jobs import JobService
from edge.station.response import ResponseProvider
from edge.station.retention import Deliveries
from edge.station.settings import EventOrigin, SettingsMethod, StationSettings
from edge.store import audit
from edge.store.client import Store
from edge.store.dead_letters import RefusedMessage
from edge.store.version import DocumentTooNew


def sent_at_of(event: CloudEvent) -> int | None:
    """Return the `time` of an event in milliseconds since the epoch; None without one that can be read."""
    return _milliseconds(event.time)


def expiry_of(event: CloudEvent) -> int | None:
    """Return the earlier of `expirytime` and `time` plus `expiryinterval`; None when the event has neither."""
    instants = [_milliseconds(event.extensions.get("expirytime"))]
    sent_at = sent_at_of(event)
    if sent_at is not None and event.expiryinterval is not None:
        instants.append(sent_at + event.expiryinterval * 1000)
    return min((instant for instant in instants if instant is not None), default=None)


def sent_at_by_broker(received_at: int | None, remaining_s: int | None, interval: str) -> int | None:
    """Return when a message was sent by the clock of the broker, which counts its expiry down while it waits.

    `interval` is the attribute `expiryinterval`: the expiry that the sender set. None when one of the three is unknown.
    """
    if received_at is None or remaining_s is None or not (interval.isascii() and interval.isdecimal()):
        return None
    return received_at - max(0, int(interval) - remaining_s) * 1000


def _milliseconds(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return milliseconds(parse_instant(text))
    except ValueError:
        return None


def resolve_signal(call: ResolveCall) -> Resolve:
    """Return the decision about an unknown outcome."""
    return Resolve(call.action, Resolution(call.resolution), call.data, call.reason, call.by)


def intervene_signal(call: InterveneCall) -> Intervene:
    """Return the intervention."""
    kind = Intervention(call.kind)
    return Intervene(kind, call.action, call.step, call.target, call.data, call.reason, call.by)


async def acknowledge(deliveries: Deliveries | None, scope: str, call: AcknowledgeCall) -> AcknowledgeAnswer:
    """Record that the MES has results. Raises Refused where no results are kept, Unavailable without the store."""
    if deliveries is None:
        raise Refused("unknown_type", "this gateway keeps no results.", "Call a job method or send settings.")
    acknowledged = tuple(await deliveries.acknowledge(scope, call.job_order_ids))
    return AcknowledgeAnswer(return_status=ReturnStatus.NO_ERROR, acknowledged=acknowledged)


def responses_in(data: object) -> Sequence[JobResponse]:
    """Return the job responses in the data of an answer: the MES that receives it has their results."""
    match data:
        case ResponseAnswer(job_response=JobResponse() as response):
            return (response,)
        case ResponsesAnswer(job_responses=responses):
            return responses or ()
        case _:
            return ()


logger = structlog.get_logger(__name__)

_METHOD_OF_TYPE: Mapping[str, Cause] = {METHOD_TYPE.format(method): method for method in METHODS}
_BY_ID, _BY_STATE = map(METHOD_TYPE.format, RESPONSE_METHODS)
_TRACE_CONTEXT = ("traceparent", "tracestate")


class IncomingCall(Struct, frozen=True):
    """A call as its adapter parsed it."""

    event: CloudEvent | Refused
    """The event of the call, or the reason why it cannot be read."""
    attributes: Mapping[str, str] = field(default_factory=dict)
    """The attributes as received: they address the answer when the event cannot be read."""
    scope: str = ""
    """The scope of an event that names none."""
    source: str = ""
    """The topic or adapter it came from, for the log."""
    raw: bytes = b""
    """The payload, for the record of refused messages."""
    expires_at: int | None = None
    """When it expires by the transport, in milliseconds since the epoch; None: its own attributes decide."""
    sent_at: int | None = None
    """When it was sent by the transport's clock, in milliseconds since the epoch; None: its `time` decides."""
    is_retained: bool = False
    """Whether the broker had retained it: it is not necessarily new, and marks may not recognize it any more."""


class CallServices(Struct, frozen=True):
    """The services that execute the calls of a gateway."""

    jobs: JobService
    settings: StationSettings
    equipment: Mapping[str, Collection[str]] = MappingProxyType({})
    """The command types of each piece of equipment, by its name."""
    deliveries: Deliveries | None = None
    """None refuses acknowledgements, and requests of results confirm nothing."""
    further: Mapping[str, Handler] = MappingProxyType({})
    """The functions that execute other calls, by the type of the call."""
    switched_off: Mapping[str, str] = MappingProxyType({})
    """How to switch on what would execute a call, by the type of the call."""


class CallHandler:
    """Executes job methods and station settings of the scopes that this gateway serves."""

    def __init__(
        self,
        source: str,
        scopes: Iterable[str],
        store: Store,
        services: CallServices,
        clock: Clock,
        max_age_s: int = 0,
        trail: AuditTrail | None = None,
    ) -> None:
        """Refuse calls older than `max_age_s` as expired; 0 accepts any age. `trail` gets a record of each change."""
        self._refusals = LogThrottle(logger)
        self._recorder = RefusalRecorder(store)
        self._source = source
        self._scopes = frozenset(scopes)
        self._store = store
        self._services = services
        self._responses = ResponseProvider(store)
        self._clock = clock
        self._max_age_s = max_age_s
        self._trail = trail
        self._kind_of_type = {CONFIG_TYPE.format(kind): kind for kind in services.settings.kinds}

    async def answer(self, call: IncomingCall) -> CloudEvent:
        """Execute a call and return its answer; the effect is in the store then.

        Raises Unavailable when the store is unavailable.
        """
        try:
            if isinstance(call.event, Refused):
                raise call.event
            reply = await self._execute(call, call.event)
            self._record_change(call, call.event, reply)
        except Refused as refusal:
            kind, reason = refusal.kind, refusal.sentences
            key = f"{call.source} {kind} {reason}"
            self._refusals.warning("message refused", key, source=call.source, kind=kind, reason=reason)
            await self._record_refusal(call, kind, refusal.sentences_text)
            reply = refusal_reply(kind, reason)
        await self._store.settle()
        return self._reply_event(reply, call)

    async def answer_defect(self, call: IncomingCall, error: Exception) -> CloudEvent:
        """Return the answer to a call that met a defect. Raises Unavailable when the store is unavailable."""
        reason = Text.of("the call met a defect of this software: {name}", name=type(error).__name__)
        if isinstance(error, DocumentTooNew):
            reason = error.sentences_text
        await self._record_refusal(call, "internal", reason)
        return self._reply_event(refusal_reply("internal", str(reason)), call)

    def _record_change(self, call: IncomingCall, event: CloudEvent, reply: Reply) -> None:
        if self._trail is None or (change := reply.change) is None:
            return
        record = call_record(self._trail, event, call.source, change, reply.reason or "Good")
        # Each gateway of the store receives the call, and a broker may deliver it again.
        name = f"{event.id}\n{record.kind}\n{record.action}\n{record.status}"
        self._trail.record(record, audit.call_claim(event.source, name, record.at))

    async def _record_refusal(self, call: IncomingCall, kind: str, reason: Text) -> None:
        identity = call.attributes.get("type", ""), call.attributes.get("id", "")
        await self._recorder.record(RefusedMessage(call.source, *identity, kind, reason, call.raw))

    async def _execute(self, call: IncomingCall, event: CloudEvent) -> Reply:
        scope = event.subject or call.scope
        if scope not in self._scopes:
            known = ", ".join(sorted(self._scopes))
            raise Refused(
                "unknown_scope",
                Text.of("this gateway does not serve scope {scope!r}.", scope=scope),
                Text.of("It serves {known}.", known=known),
            )
        sent_at = sent_at_of(event) if call.sent_at is None else call.sent_at
        expires_at = self._expiry(call, event, sent_at)
        event_type = canonical_type(event.type)
        if method := _METHOD_OF_TYPE.get(event_type):
            return await self._call_method(scope, method, event, expires_at, sent_at, caller_of(call.source))
        if kind := self._kind_of_type.get(event_type):
            return await self._apply_settings(scope, kind, event, expires_at)
        refuse_expired(expires_at, self._clock())
        if further := self._services.further.get(event_type):
            return await further(event, call.source)
        if (advice := self._services.switched_off.get(event_type)) is not None:
            raise Refused(
                "unknown_type", Text.of("this gateway does not serve type {type!r}.", type=event.type), advice
            )
        if event_type == RESOLVE_TYPE:
            decided = arguments_of(event, ResolveCall)
            return await self._intervene(scope, event, decided.job_order_id, resolve_signal(decided))
        if event_type == INTERVENE_TYPE:
            intervention = arguments_of(event, InterveneCall)
            return await self._intervene(scope, event, intervention.job_order_id, intervene_signal(intervention))
        if event_type == ACKNOWLEDGE_TYPE:
            acknowledged = await acknowledge(self._services.deliveries, scope, arguments_of(event, AcknowledgeCall))
            return Reply(acknowledged, change=CallEffect("Acknowledge", ", ".join(acknowledged.acknowledged)))
        if event_type == RELEASE_TYPE:
            return await self._release(scope, event)
        if event_type == _BY_ID:
            return await self._response_by_id(scope, arguments_of(event, IdCall))
        if event_type == _BY_STATE:
            return await self._responses_by_state(scope, arguments_of(event, StateCall))
        raise Refused(
            "unknown_type",
            Text.of("type {type!r} is not known here.", type=event.type),
            "Call a job method or send settings.",
        )

    def _expiry(self, call: IncomingCall, event: CloudEvent, sent_at: int | None) -> int | None:
        instants = [expiry_of(event) if call.expires_at is None else call.expires_at]
        if call.is_retained:
            instants.append(UNKNOWN_AGE if sent_at is None else sent_at + self._services.jobs.dedupe_ms)
        if self._max_age_s and sent_at is not None:
            instants.append(sent_at + self._max_age_s * 1000)
        return min((instant for instant in instants if instant is not None), default=None)

    async def _call_method(
        self, scope: str, method: Cause, event: CloudEvent, expires_at: int | None, sent_at: int | None, by: Text
    ) -> Reply:
        taken: type[OrderCall | IdCall] = OrderCall if method in ORDER_METHODS else IdCall
        call = JobCall(
            scope,
            method,
            arguments_of(event, taken),
            event.source,
            event.id,
            transaction=event.extensions.get("transactionid", ""),
            expires_at=expires_at,
            sent_at=sent_at,
            time=event.time or "",
            trace={name: event.extensions[name] for name in _TRACE_CONTEXT if name in event.extensions},
            languages=languages_of(event),
            by=by,
        )
        answer = await self._services.jobs.call(call)
        return method_reply(answer, change_of(call))

    async def _apply_settings(self, scope: str, kind: str, event: CloudEvent, expires_at: int | None) -> Reply:
        method, origin = settings_method(event), EventOrigin(event.source, event.id)
        if method is SettingsMethod.GET:
            refuse_expired(expires_at, self._clock())
            return Reply(await self._services.settings.read(scope, kind, event.data))
        if (known := await self._services.settings.applied(origin)) is not None:
            return Reply(reason="; ".join(known) or None)
        refuse_expired(expires_at, self._clock())
        warnings = await self._services.settings.apply(scope, kind, method, event.data, origin)
        return Reply(reason="; ".join(warnings) or None, change=CallEffect(f"{method.value} {kind}", scope))

    async def _intervene(self, scope: str, event: CloudEvent, job_id: str, signal: Resolve | Intervene) -> Reply:
        request = InterventionRequest(scope=scope, job_id=job_id, signal=signal, source=event.source, event_id=event.id)
        answer = await intervene(self._services.jobs.runs, request, self._services.jobs.dedupe_ms)
        subject = "/".join((job_id, *names_of(signal)))
        action = "Resolve" if isinstance(signal, Resolve) else signal.kind.capitalize()
        return method_reply(answer, CallEffect(action, subject, signal.reason, signal.by))

    async def record_received(self, answer: CloudEvent) -> None:
        """Record that the MES has received an answer: it has the results in it. Raises Unavailable."""
        if self._services.deliveries:
            await self._services.deliveries.record_request(responses_in(answer.data))

    async def _release(self, scope: str, event: CloudEvent) -> Reply:
        arguments = arguments_of(event, ReleaseCall)
        request = ReleaseRequest(
            equipment=arguments.equipment,
            scopes=(scope,),
            command_id=arguments.command,
            by=arguments.by,
            reason=arguments.reason,
            source=event.source,
            event_id=event.id,
        )
        released = await release(self._store, self._services.equipment, request, self._services.jobs.dedupe_ms)
        subject = arguments.command or arguments.equipment
        change = CallEffect("Release", subject, arguments.reason, arguments.by)
        return Reply(ReleaseAnswer(return_status=ReturnStatus.NO_ERROR, released=tuple(released)), change=change)

    async def _response_by_id(self, scope: str, arguments: IdCall) -> Reply:
        found = await self._responses.of_job(scope, arguments.job_order_id)
        response = found.responses[0] if found.responses else None
        reason = found.reason or None
        return Reply(ResponseAnswer(job_response=response, return_status=found.status, reason=reason), reason=reason)

    async def _responses_by_state(self, scope: str, arguments: StateCall) -> Reply:
        found = await self._responses.in_state(scope, arguments.job_order_state, arguments.after or "")
        reason = found.reason or None
        answer = ResponsesAnswer(
            job_responses=found.responses, return_status=found.status, next=found.next or None, reason=reason
        )
        return Reply(answer, reason=reason)

    def _reply_event(self, reply: Reply, call: IncomingCall) -> CloudEvent:
        event = None if isinstance(call.event, Refused) else call.event
        attributes = call.attributes
        extensions: Mapping[str, str] = event.extensions if event else attributes
        return CloudEvent(
            id=new_id(),
            source=self._source,
            type=answer_type(event.type) if event else attributes.get("type") or REFUSED_TYPE,
            subject=event.subject if event else attributes.get("subject"),
            datacontenttype=event.datacontenttype if event else JSON,
            correlationid=event.correlationid if event else attributes.get("correlationid"),
            causationid=event.id if event else attributes.get("id"),
            mdcserrorkind=reply.error_kind,
            mdcserrormessage=reply.reason,
            extensions=MappingProxyType({name: extensions[name] for name in _TRACE_CONTEXT if name in extensions}),
            data=reply.data,
        )

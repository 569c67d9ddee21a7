"""The job methods of the server: OPC 10031-4, 6.2.2 and 6.2.7, with annex B.

An invalid call returns a Bad status (B.1). A refused request returns the status Uncertain with a ReturnStatus (B.2), as
a Bad status carries no output arguments.
"""

import uuid
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Final, Protocol

import structlog
from asyncua import ua
from asyncua.server.address_space import AddressSpace
from msgspec import Struct

from edge.access.mode import ModeRequest, SwitchOff, SwitchOn
from edge.foundation.errors import Refused, Unavailable
from edge.foundation.text import Text, language_for
from edge.model.isa95 import IdCall, JobOrder, LocalizedText, OrderCall, ReturnStatus, State, StateQuery
from edge.model.job_state import Cause
from edge.model.plant import MaintenanceKind
from edge.opcua.access import CALLER, LOCALES, Caller
from edge.opcua.binary import DecodeError, NestingError
from edge.opcua.call_diagnostics import ExplainedResult
from edge.opcua.time_slices import ACCOUNT, Pacer, WorkThread
from edge.station.intervene import InterventionRequest, ReleaseRequest
from edge.station.job_call import CallAnswer, JobCall
from edge.station.response import PAGE, FoundResponses, PageLimit
from edge.uaserver import method_roles
from edge.uaserver.encoding import decode_structure, extension_object
from edge.uaserver.intervention_methods import (
    INTERVENTION_ARGUMENTS,
    intervention_signal,
    read_reason,
    read_text,
)
from edge.uaserver.own_types import read_flag, read_instant

logger = structlog.get_logger(__name__)

_SOURCE = "urn:microdcs-edge:opcua"

MORE_RESPONSES = 1 << 33
"""Bit of ReturnStatus, free for implementations: more responses match than the answer contains."""

ReadArgument = Callable[[ua.Variant], Any]
"""Reads one input argument. Raises DecodeError."""


class JobMethods(Protocol):
    """The service that executes calls of job methods (edge.station.jobs)."""

    async def call(self, call: JobCall) -> CallAnswer:
        """Execute a call. Raises Unavailable when the store is unavailable."""


class ResponseService(Protocol):
    """The service that finds job responses (edge.station.response)."""

    async def of_job(self, scope: str, job_order_id: str) -> FoundResponses:
        """Find the response of a job order."""

    async def in_state(
        self, scope: str, query: Sequence[StateQuery | State], after: str, limit: PageLimit
    ) -> FoundResponses:
        """Find the responses of jobs in a state, starting after a position."""


class PartMethod(Struct, frozen=True):
    """A method of an object that another part has added: how its arguments are read, and what performs it.

    `perform` takes the arguments; it raises Refused, and Unavailable when the store is unavailable.
    """

    arguments: Sequence[ReadArgument]
    perform: Callable[..., Awaitable[None]]


class Target(Struct, frozen=True):
    """An object with methods: their names by NodeId, own and of the type. A chart has one job order.

    A machine and a chart have a scope, a piece of equipment its name in the settings. The object of another part has
    that part's methods.
    """

    scope: str
    methods: Mapping[ua.NodeId, str]
    job_order_id: str | None = None
    equipment: str = ""
    part_methods: Mapping[str, PartMethod] = {}


class Services(Struct, frozen=True):
    """The services behind the methods of all machines."""

    jobs: JobMethods
    responses: ResponseService
    intervene: Callable[[InterventionRequest], Awaitable[CallAnswer]]
    """Applies the decision of a person about a run (edge.station.intervene)."""
    release: Callable[[ReleaseRequest], Awaitable[object]]
    """Releases unconfirmed stops; raises Refused where none is open (edge.station.intervene)."""
    switch_mode: Callable[[ModeRequest, Caller], Awaitable[object]]
    """Switches the maintenance mode of this gateway; raises Refused for arguments that make no sense."""
    scopes: Collection[str] = ()
    """The scopes of this gateway."""


_DECODED_AT_ONCE: Final = 1024
"""Longer arguments are decoded in a thread: a parameter of eight bytes takes 60 microseconds."""


class JobMethodService:
    """The Call service for the job methods."""

    def __init__(
        self,
        aspace: AddressSpace,
        target_of: Callable[[ua.NodeId], Target | None],
        services: Services,
        decoder: WorkThread,
    ) -> None:
        self._aspace = aspace
        self._decoder = decoder
        self.refresh: Callable[[str, str], Awaitable[None]] | None = None
        """Updates the lists with a job before a Good answer: the client then reads the new state."""
        self._target_of = target_of
        self._services = services

    async def call(self, method: ua.CallMethodRequest) -> ua.CallMethodResult:
        """Perform a method for the caller of the session."""
        target = self._target_of(method.ObjectId)
        if target is None:
            known = method.ObjectId in self._aspace
            return _bad(ua.StatusCodes.BadMethodInvalid if known else ua.StatusCodes.BadNodeIdUnknown)
        name = target.methods.get(method.MethodId)
        if name is None:
            return _bad(ua.StatusCodes.BadMethodInvalid)
        caller = CALLER.get(None)
        if caller is None or not method_roles.may_call(caller.role, name):
            return _bad(ua.StatusCodes.BadUserAccessDenied)
        arguments = await self._read_arguments(_signature(target, name), method.InputArguments)
        if isinstance(arguments, ua.CallMethodResult):
            return arguments
        try:
            return await self._perform(target, name, arguments)
        except Unavailable as error:
            logger.warning("OPC UA method unavailable", method=name, reason=error.message)
            return ExplainedResult(_bad(ua.StatusCodes.BadResourceUnavailable), _stated(error.text))

    async def _read_arguments(
        self, signature: Sequence[ReadArgument], given: Sequence[ua.Variant]
    ) -> list[Any] | ua.CallMethodResult:
        """Read the arguments; decode long ones in the decoder's thread, as they would block the event loop."""
        if sum(map(_size, given)) <= _DECODED_AT_ONCE:
            return _read_arguments(signature, given)
        read = partial(_read_arguments, signature, given)
        return await self._decoder.run(ACCOUNT.get(), read)

    async def _perform(self, target: Target, name: str, arguments: Sequence[Any]) -> ua.CallMethodResult:
        scope = target.scope
        if target.job_order_id is not None:
            return await self._change(scope, name, target.job_order_id, *arguments)
        if method := target.part_methods.get(name):
            return await self._perform_part(method, arguments)
        if name in INTERVENTION_ARGUMENTS:
            return await self._intervene(scope, name, arguments[0], arguments[1:])
        match name:
            case "RequestJobResponseByJobOrderID":
                found = await self._services.responses.of_job(scope, arguments[0])
                # Without a response, the output argument is the null structure.
                response = extension_object(found.responses[0]) if found.responses else ua.ExtensionObject()
                return _answer(found.status, ua.Variant(response, ua.VariantType.ExtensionObject))
            case "RequestJobResponseByJobOrderState":
                return await self._responses_in_state(scope, arguments[0])
            case method_roles.RELEASE_METHOD:
                return await self._release(target.equipment, *arguments)
            case method_roles.SWITCH_ON_METHOD:
                now, message, until = arguments
                kind = MaintenanceKind.NOW if now else MaintenanceKind.DRAIN
                return await self._switch(SwitchOn(CALLER.get().name or "anonymous", kind, message, until))
            case method_roles.SWITCH_OFF_METHOD:
                return await self._switch(SwitchOff())
            case "Store" | "StoreAndStart" | "Update":
                order, comment = arguments
                return await self._ask(scope, name, OrderCall(job_order=order, comment=comment))
            case _:
                return await self._change(scope, name, *arguments)

    async def _responses_in_state(self, scope: str, query: Sequence[State]) -> ua.CallMethodResult:
        """Return the first page of responses; the method has no argument for further pages."""
        found = await self._services.responses.in_state(scope, query, "", PAGE)
        pacer = Pacer()
        encoded = []
        for response in found.responses:
            encoded.append(extension_object(response))
            await pacer.step()
        status = found.status | (MORE_RESPONSES if found.next else 0)
        return _answer(status, ua.Variant(encoded, ua.VariantType.ExtensionObject, is_array=True))

    async def _intervene(self, scope: str, name: str, job_order_id: str, given: Sequence[Any]) -> ua.CallMethodResult:
        by = CALLER.get().name
        request = InterventionRequest(
            scope=scope,
            job_id=job_order_id,
            signal=intervention_signal(name, given, by or "anonymous"),
            source=_SOURCE,
            event_id=str(uuid.uuid4()),
            has_login=bool(by),
        )
        try:
            answer = await self._services.intervene(request)
        except Refused as error:
            return _refused(error)
        if self.refresh is not None and answer.status is ReturnStatus.NO_ERROR:
            await self.refresh(scope, job_order_id)
        return _explained(answer)

    async def _release(self, equipment: str, command_id: str, reason: str) -> ua.CallMethodResult:
        request = ReleaseRequest(
            equipment=equipment,
            scopes=self._services.scopes,
            command_id=command_id or None,
            by=CALLER.get().name or "anonymous",
            reason=reason,
            source=_SOURCE,
            event_id=str(uuid.uuid4()),
        )
        try:
            await self._services.release(request)
        except Refused as error:
            return _refused(error)
        return _answer(ReturnStatus.NO_ERROR)

    async def _switch(self, request: ModeRequest) -> ua.CallMethodResult:
        try:
            await self._services.switch_mode(request, CALLER.get())
        except Refused as error:
            return _refused(error)
        return _answer(ReturnStatus.NO_ERROR)

    async def _perform_part(self, method: PartMethod, arguments: Sequence[Any]) -> ua.CallMethodResult:
        try:
            await method.perform(*arguments)
        except Refused as error:
            return _refused(error)
        return _answer(ReturnStatus.NO_ERROR)

    async def _change(
        self, scope: str, name: str, job_order_id: str, comment: tuple[LocalizedText, ...] | None
    ) -> ua.CallMethodResult:
        return await self._ask(scope, name, IdCall(job_order_id=job_order_id, comment=comment))

    async def _ask(self, scope: str, name: str, call: OrderCall | IdCall) -> ua.CallMethodResult:
        # An OPC UA call carries no identifier, so a repeated call counts as a new one.
        job_call = JobCall(
            scope,
            Cause(name),
            call,
            source=_SOURCE,
            event_id=str(uuid.uuid4()),
            languages=LOCALES.get(),
            by=Text.of("{user} over OPC UA", user=CALLER.get().name or Text.of("anonymous")),
        )
        answer = await self._services.jobs.call(job_call)
        if self.refresh is not None and answer.status is ReturnStatus.NO_ERROR:
            job_order_id = call.job_order.job_order_id if isinstance(call, OrderCall) else call.job_order_id
            await self.refresh(scope, job_order_id)
        return _explained(answer)


def _signature(target: Target, name: str) -> Sequence[ReadArgument]:
    if target.job_order_id is not None:
        return _CHART_ARGUMENTS
    method = target.part_methods.get(name)
    return method.arguments if method else _ARGUMENTS[name]


def _bad(code: int) -> ua.CallMethodResult:
    return ua.CallMethodResult(StatusCode=ua.StatusCode(code))


def _answer(status: int, *outputs: ua.Variant) -> ua.CallMethodResult:
    good = status == ReturnStatus.NO_ERROR
    return ua.CallMethodResult(
        StatusCode=ua.StatusCode(ua.StatusCodes.Good if good else ua.StatusCodes.Uncertain),
        OutputArguments=[*outputs, ua.Variant(int(status), ua.VariantType.UInt64)],
    )


def _explained(answer: CallAnswer) -> ua.CallMethodResult:
    """Return the result of an answer, with its reasons for a client that asks for diagnostics."""
    result = _answer(answer.status)
    return ExplainedResult(result, _stated(answer.reason)) if answer.reasons else result


def _stated(reason: Text) -> str:
    """Return a reason in the first language of the session that has a catalogue."""
    return reason.in_language(language_for(LOCALES.get()))


def _refused(error: Refused) -> ua.CallMethodResult:
    return ExplainedResult(_answer(ReturnStatus.INVALID_REQUEST), _stated(error.text))


def _read_arguments(signature: Sequence[ReadArgument], given: Sequence[ua.Variant]) -> list[Any] | ua.CallMethodResult:
    """Read the arguments; return the Bad result for invalid ones (B.1)."""
    if len(given) != len(signature):
        few = len(given) < len(signature)
        return _bad(ua.StatusCodes.BadArgumentsMissing if few else ua.StatusCodes.BadTooManyArguments)
    read = []
    verdicts = []
    for take, argument in zip(signature, given, strict=True):
        try:
            read.append(take(argument))
            verdicts.append(ua.StatusCode())
        except NestingError:
            # The station answers the same for an order that can be decoded but exceeds its nesting limit.
            return _answer(ReturnStatus.INVALID_REQUEST)
        except DecodeError:
            verdicts.append(ua.StatusCode(ua.StatusCodes.BadTypeMismatch))
    if len(read) == len(signature):
        return read
    invalid = ua.StatusCode(ua.StatusCodes.BadInvalidArgument)
    return ua.CallMethodResult(StatusCode=invalid, InputArgumentResults=verdicts)


def _size(argument: ua.Variant) -> int:
    """Return the approximate number of bytes of an argument that are still to decode or to check."""
    values = argument.Value if isinstance(argument.Value, list) else [argument.Value]
    if argument.VariantType is not ua.VariantType.ExtensionObject:
        return len(values)
    return sum(len(value.Body or b"") for value in values if isinstance(value, ua.ExtensionObject))


def _job_order(argument: ua.Variant) -> JobOrder:
    return decode_structure(JobOrder, argument.Value)


def _states(argument: ua.Variant) -> tuple[State, ...]:
    if argument.VariantType is not ua.VariantType.ExtensionObject or not argument.is_array:
        raise DecodeError("it is not an array of states")
    return tuple(decode_structure(State, value) for value in argument.Value)


def _comment(argument: ua.Variant) -> tuple[LocalizedText, ...] | None:
    if argument.VariantType is ua.VariantType.Null:
        return None
    if argument.VariantType is not ua.VariantType.LocalizedText or not argument.is_array:
        raise DecodeError("it is not an array of texts")
    return tuple(LocalizedText(text=value.Text or "", locale=value.Locale or "") for value in argument.Value) or None


_ORDER_ARGUMENTS = (_job_order, _comment)
_ID_ARGUMENTS = (read_text, _comment)
_CHART_ARGUMENTS = (_comment,)

# The argument readers of each method, by its browse name.
_ARGUMENTS: Mapping[str, Sequence[ReadArgument]] = MappingProxyType(
    {
        **dict.fromkeys(("Store", "StoreAndStart", "Update"), _ORDER_ARGUMENTS),
        **dict.fromkeys(("Start", "RevokeStart", "Pause", "Resume", "Stop", "Abort", "Cancel", "Clear"), _ID_ARGUMENTS),
        "RequestJobResponseByJobOrderID": (read_text,),
        "RequestJobResponseByJobOrderState": (_states,),
        **INTERVENTION_ARGUMENTS,
        method_roles.RELEASE_METHOD: (read_text, read_reason),
        method_roles.SWITCH_ON_METHOD: (read_flag, read_text, read_instant),
        method_roles.SWITCH_OFF_METHOD: (),
    }
)

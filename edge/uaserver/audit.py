"""The audit log of the OPC UA server: method calls, logins and refusals, each with its result.

The records go to the log at every log level, and to the audit trail of the store. Under systemd the log is the
journal, which signs, rotates and forwards it. The field names are stable: `journalctl AUDIT=opcua.call USER=alice`.
"""

import contextlib
import time
from collections.abc import Callable, Mapping

from asyncua import ua

from edge.access.audit_trail import AuditTrail, audit_logger
from edge.foundation.rate_limit import RateLimit
from edge.model.audit import MAX_TEXT, AuditKind, AuditRecord
from edge.model.isa95 import ReturnStatus
from edge.model.user import Role
from edge.opcua.access import Caller
from edge.opcua.binary import DecodeError
from edge.uaserver.encoding import job_order_id_of
from edge.uaserver.method_roles import SWITCH_OFF_METHOD, SWITCH_ON_METHOD
from edge.uaserver.namespaces import Namespace

_MOST_TEXTS = 20
_WRITTEN_WITH_THEIR_EFFECT = frozenset({SWITCH_ON_METHOD, SWITCH_OFF_METHOD})
"""The methods whose record is in the commit of their effect."""


def record_call(
    caller: Caller,
    method: str,
    request: ua.CallMethodRequest,
    result: ua.CallMethodResult,
    trail: AuditTrail | None = None,
) -> None:
    """Record a method call."""
    job_order_id, comment, return_status = _subject(request), _comment(request), _return_status(result)
    status = result.StatusCode.name
    audit_logger.info(
        "OPC UA call",
        audit="opcua.call",
        **_who(caller),
        method=method,
        object=str(request.ObjectId.Identifier),
        **_bounded({"job_order_id": job_order_id, "comment": comment}),
        status=status,
        return_status=return_status,
    )
    if method in _WRITTEN_WITH_THEIR_EFFECT and return_status is ReturnStatus.NO_ERROR:
        return
    shown = status
    if return_status is not None and return_status is not ReturnStatus.NO_ERROR:
        shown = f"{status}, ReturnStatus {return_status.words}"
    _queue(trail, "opcua.call", caller, method, subject=job_order_id, status=shown, comment=comment)


def record_login(caller: Caller, trail: AuditTrail | None = None) -> None:
    """Record the login of a caller."""
    audit_logger.info("OPC UA login", audit="opcua.login", **_who(caller))
    _queue(trail, "opcua.login", caller, "login", status="Good")


def _queue(
    trail: AuditTrail | None,
    kind: AuditKind,
    caller: Caller,
    action: str,
    *,
    subject: str = "",
    status: str,
    comment: str = "",
) -> None:
    if trail is None:
        return
    record = AuditRecord(
        at=trail.clock(),
        kind=kind,
        instance=trail.instance,
        user=caller.name or "anonymous",
        role=caller.role.name.lower(),
        application=caller.application,
        address=caller.address,
        action=action,
        subject=subject,
        status=status,
        comment=comment,
    )
    trail.queue(record)


def is_without_effect(result: ua.CallMethodResult) -> bool:
    """Return whether a call was refused."""
    return not result.StatusCode.is_good() or _return_status(result) not in {None, ReturnStatus.NO_ERROR}


class RefusalLog:
    """The log of refused clients: `MOST` records in `WITHIN_S` seconds; further refusals are counted only."""

    MOST = 20
    WITHIN_S = 60.0

    def __init__(self, clock: Callable[[], float] = time.monotonic, trail: AuditTrail | None = None) -> None:
        self._trail = trail
        self._limit = RateLimit(self.MOST, self.WITHIN_S, clock, _report_dropped)

    def record(self, what: str, address: str, **fields: object) -> None:
        """Record a refusal; count it only when the limit of this period is reached."""
        if self._limit.try_acquire():
            audit_logger.warning(what, audit="opcua.refused", address=address, **_bounded(fields))
            user, application = str(fields.get("user", "")), str(fields.get("application", ""))
            caller = Caller(user, Role.OBSERVER, application, address)
            _queue(self._trail, "opcua.refused", caller, what, status=str(fields.get("reason", "")))


def _report_dropped(dropped: int) -> None:
    audit_logger.warning("more OPC UA refusals", audit="opcua.refused", dropped=dropped)


def _who(caller: Caller) -> dict[str, str]:
    return {
        "user": caller.name or "anonymous",
        "role": caller.role.name.lower(),
        "application": caller.application,
        "address": caller.address,
    }


def _subject(request: ua.CallMethodRequest) -> str:
    """Return what a call is about: an alarm, equipment, a flow, or the JobOrderID in its first argument."""
    if _is_part_of_gateway(request):
        # The method of equipment or a flow: its object names it.
        return str(request.ObjectId.Identifier)
    if request.ObjectId.NamespaceIndex == Namespace.ALARMS:
        # The method of an alarm, or of its shelving.
        return str(request.ObjectId.Identifier).partition("/")[0]
    match request.InputArguments:
        case [ua.Variant(Value=str(job_order_id)), *_]:
            return job_order_id
        case [ua.Variant(Value=ua.ExtensionObject() as order), *_]:
            with contextlib.suppress(DecodeError):
                return job_order_id_of(order)
        case _:
            pass
    return ""


def _is_part_of_gateway(request: ua.CallMethodRequest) -> bool:
    own = request.ObjectId.NamespaceIndex == Namespace.APPLICATION
    return own and str(request.ObjectId.Identifier).startswith("Gateway/")


def _comment(request: ua.CallMethodRequest) -> str:
    """Return the comment of a call: texts after the first argument (OPC 10031-4, 6.2.2), or a text in a language."""
    texts: list[str] = []
    is_of_flow = str(request.ObjectId.Identifier).startswith("Gateway/Flows/")
    is_of_alarm = request.ObjectId.NamespaceIndex == Namespace.ALARMS
    for argument in (request.InputArguments or ())[0 if is_of_flow or is_of_alarm else 1 :]:
        match argument:
            case ua.Variant(Value=ua.LocalizedText(Text=str(text))) if is_of_alarm:
                texts.append(text)
            case ua.Variant(VariantType=ua.VariantType.LocalizedText, Value=list(array)):
                texts += [text.Text or "" for text in array[:_MOST_TEXTS]]
            case ua.Variant(VariantType=ua.VariantType.String, Value=str(text)):
                texts.append(text)
            case _:
                pass
    return " / ".join(texts)


def _return_status(result: ua.CallMethodResult) -> ReturnStatus | None:
    """Return the ReturnStatus of a result: its last output argument."""
    match result.OutputArguments:
        case [*_, ua.Variant(Value=int(status), VariantType=ua.VariantType.UInt64)]:
            return ReturnStatus(status)
        case _:
            return None


def _bounded(fields: Mapping[str, object]) -> dict[str, object]:
    return {name: value[:MAX_TEXT] if isinstance(value, str) else value for name, value in fields.items()}

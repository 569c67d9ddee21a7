"""The operations of the HTTP API about the gateway, and how their data are read.

They are about maintenance, operations, locks, sessions, trust, the log and what doctor finds.
"""

from collections.abc import Sequence
from typing import Any, Final

from edge.access.audit_trail import plan_append
from edge.access.components import public_component
from edge.access.locks import delete_locks, find_locks
from edge.access.mode import ModeRequest, SwitchOff, SwitchOn, switch_mode
from edge.access.operations import Cancel, change_operation, listed, schedule_operation
from edge.access.sessions import request_end
from edge.app.page_part import ApiCall, ApiOperation, Execute
from edge.features.page import gateway_models as models
from edge.features.page.gateway_models import (
    Fleet,
    LockList,
    OperationList,
    SessionOverview,
)
from edge.features.page.models import EquipmentList, Status
from edge.features.page.services import WebServices
from edge.foundation.errors import Refused
from edge.foundation.text import Text
from edge.model.audit import AuditRecord
from edge.model.equipment_health import public_equipment
from edge.model.finding import public_form
from edge.model.lock import LockKind, lock_info, public_lock
from edge.model.plant import MaintenanceKind, OperationType, public_operation
from edge.model.user import Role, public_session
from edge.store import components, logins, operations
from edge.store.client import Store
from edge.store.commit import Commit
from edge.store.locks import StoredLock
from edge.store.server_time import server_time


async def list_operations(store: Store, language: str) -> OperationList:
    """Return every operation, the newest first, with errors in a language."""
    now = await server_time(store)
    return OperationList(
        operations=tuple(
            public_operation(listed(stored_operation, now), stored_operation.progress, language)
            for stored_operation in await operations.load_all(store)
        )
    )


async def list_locks(store: Store, language: str) -> LockList:
    """Return every lock, with owners and reasons in a language."""
    now = await server_time(store)
    stored_locks = await find_locks(store, tuple(LockKind), ())
    infos = (lock_info(item.kind, item.object_id, item.lock, now, language) for item in stored_locks if item.lock)
    return LockList(locks=tuple(map(public_lock, infos)))


async def list_sessions(store: Store) -> SessionOverview:
    """Return every session, the one active last first."""
    found = await logins.load_all_sessions(store)
    return SessionOverview(sessions=tuple(public_session(id, session, at) for id, (session, at) in found.items()))


def list_equipment(services: WebServices, language: str) -> EquipmentList:
    """Return the equipment of this gateway, with reasons in a language."""
    gateway, at = services.gateway, services.clock()
    return EquipmentList(
        equipment=tuple(
            public_equipment(health, gateway, at, at_work=True, language=language) for health in services.equipment()
        )
    )


async def list_components(store: Store, language: str) -> Fleet:
    """Return the components on the store by their ids, with problems in a language."""
    now = await server_time(store)
    found = (await components.load_all(store)).values()
    return Fleet(components=tuple(public_component(known_component, now, language) for known_component in found))


LEVELS: Final = ("debug", "info", "warning", "error", "critical")


async def _operations(services: WebServices, call: ApiCall) -> models.OperationList:
    return await list_operations(services.store, call.caller.language)


async def _locks(services: WebServices, call: ApiCall) -> models.LockList:
    return await list_locks(services.store, call.caller.language)


async def _sessions(services: WebServices, _: ApiCall) -> models.SessionOverview:
    return await list_sessions(services.store)


async def _fleet(services: WebServices, call: ApiCall) -> models.Fleet:
    return await list_components(services.store, call.caller.language)


async def _users(services: WebServices, _: ApiCall) -> models.PersonList:
    return models.PersonList(users=await services.tools.people())


async def _certificates(services: WebServices, _: ApiCall) -> models.CertificateOverview:
    return models.CertificateOverview(certificates=await services.tools.certificates())


async def list_findings(services: WebServices, language: str) -> models.FindingList:
    """Return what `edge doctor` finds, in a language. Raises Unavailable."""
    return models.FindingList(
        findings=tuple(public_form(finding, language) for finding in await services.tools.examine())
    )


async def _doctor(services: WebServices, call: ApiCall) -> models.FindingList:
    return await list_findings(services, call.caller.language)


async def _log(services: WebServices, call: ApiCall) -> models.LogPage:
    return log_page(services, call.query.get("level", ""), call.query.get("text", ""))


def log_page(services: WebServices, level: str, text: str) -> models.LogPage:
    """Return the records at least as severe as a level that contain a text. Raises Refused for an unknown level."""
    if level and level not in LEVELS:
        raise Refused(
            "invalid_query",
            Text.of("{level!r} is not a level.", level=level),
            Text.of("Levels are {levels}.", levels=", ".join(LEVELS)),
        )
    least, needle = LEVELS.index(level or "debug"), text.casefold()
    log_lines = [
        entry
        for entry in services.tools.log()
        if entry.level in LEVELS and LEVELS.index(entry.level) >= least and needle in entry.text.casefold()
    ]
    return models.LogPage(lines=tuple(reversed(log_lines)))


async def _switch_on(services: WebServices, call: ApiCall) -> Status:
    maintenance_body: models.MaintenanceBody = call.body
    until = None if maintenance_body.minutes is None else services.clock() + round(maintenance_body.minutes * 60_000)
    kind = MaintenanceKind.NOW if maintenance_body.now else MaintenanceKind.DRAIN
    request = SwitchOn(by=call.caller.user, kind=kind, message=maintenance_body.message, until=until)
    return await _switch(services, call, request, "maintenance on", maintenance_body.message)


async def _switch_off(services: WebServices, call: ApiCall) -> Status:
    return await _switch(services, call, SwitchOff(), "maintenance off", call.body.comment)


async def _switch(services: WebServices, call: ApiCall, request: ModeRequest, action: str, comment: str) -> Status:
    record = services.audit.record_of(call.caller, action, services.gateway, comment)
    trail = services.audit.trail
    await switch_mode(services.store, services.gateway, request, record, services.clock, trail.keep)
    trail.copy(record)
    await services.tools.refresh_mode()
    return services.status(call.caller.languages)


async def _schedule(services: WebServices, call: ApiCall) -> models.OperationList:
    operation_body: models.OperationBody = call.body
    record = services.audit.record_of(call.caller, "operations schedule", operation_body.type, "")

    async def audit() -> Commit:
        return await _plan(services, record)

    await schedule_operation(services.store, OperationType(operation_body.type), call.caller.user, 0, {}, also=audit)
    services.audit.trail.copy(record)
    return await _operations(services, call)


async def _cancel(services: WebServices, call: ApiCall) -> models.OperationList:
    record = services.audit.record_of(call.caller, "operations cancel", call.path["operation"], call.body.comment)

    async def audit() -> Commit:
        return await _plan(services, record)

    await change_operation(services.store, call.path["operation"], Cancel(call.caller.user), also=audit)
    services.audit.trail.copy(record)
    return await _operations(services, call)


async def _delete_lock(services: WebServices, call: ApiCall) -> models.LockList:
    lock_deletion: models.LockDeletion = call.body
    stored_locks = await find_locks(services.store, (LockKind(lock_deletion.kind),), (lock_deletion.id,))
    if not stored_locks:
        raise Refused(
            "unknown_lock",
            Text.of("there is no lock of {kind} {asked!r}.", kind=lock_deletion.kind, asked=lock_deletion.id),
            "Look at the list of locks.",
        )
    action = "locks delete --force" if lock_deletion.force else "locks delete"
    record = services.audit.record_of(call.caller, action, f"{lock_deletion.kind} {lock_deletion.id}", "")

    async def audit(_: Sequence[StoredLock]) -> Commit:
        return await _plan(services, record)

    await delete_locks(services.store, stored_locks, audit, force=lock_deletion.force)
    services.audit.trail.copy(record)
    return await _locks(services, call)


async def _end_session(services: WebServices, call: ApiCall) -> models.SessionOverview:
    session_end: models.SessionEnd = call.body
    if not await request_end(services.store, [session_end.id]):
        raise Refused(
            "unknown_session",
            Text.of("there is no session {asked!r}.", asked=session_end.id),
            "Look at the list of sessions.",
        )
    services.audit.called(call.caller, "sessions end", session_end.id, "")
    return await _sessions(services, call)


async def _trust(services: WebServices, call: ApiCall) -> models.CertificateOverview:
    thumbprint = call.body.thumbprint.upper()
    subject = await services.tools.trust(thumbprint)
    services.audit.called(call.caller, "opcua trust", thumbprint, subject)
    return await _certificates(services, call)


async def _plan(services: WebServices, record: AuditRecord) -> Commit:
    return await plan_append(services.store, [record], services.audit.trail.keep)


def _read(path: str, summary: str, role: Role, answer: type[Any], execute: Execute) -> ApiOperation:
    return ApiOperation("GET", path, summary, role, answer, execute)


def _change(path: str, summary: str, answer: type[Any], execute: Execute, body: type[Any]) -> ApiOperation:
    return ApiOperation("POST", path, summary, Role.ENGINEER, answer, execute, body)


GATEWAY_OPERATIONS: Final = (
    _read("/operations", "List the operations.", Role.OBSERVER, models.OperationList, _operations),
    _read("/locks", "List the locks.", Role.OBSERVER, models.LockList, _locks),
    _read("/fleet", "List gateways, workers and sidecars on the store.", Role.OBSERVER, models.Fleet, _fleet),
    _read("/sessions", "List the sessions.", Role.ENGINEER, models.SessionOverview, _sessions),
    _read("/users", "List the users.", Role.ENGINEER, models.PersonList, _users),
    _read("/certificates", "List certificates.", Role.ENGINEER, models.CertificateOverview, _certificates),
    _read("/doctor", "Examine the gateway, in ten seconds at most.", Role.ENGINEER, models.FindingList, _doctor),
    ApiOperation(
        "GET",
        "/log",
        "Return the newest records of the log.",
        Role.ENGINEER,
        models.LogPage,
        _log,
        query={"level": f"The lowest level: {', '.join(LEVELS)}.", "text": "A part of the record."},
    ),
    _change("/maintenance/on", "Switch the maintenance mode on.", Status, _switch_on, models.MaintenanceBody),
    _change("/maintenance/off", "Switch the maintenance mode off.", Status, _switch_off, models.OperationChange),
    _change("/operations", "Schedule an operation, now.", models.OperationList, _schedule, models.OperationBody),
    _change(
        "/operations/{operation}/cancel",
        "Cancel an operation.",
        models.OperationList,
        _cancel,
        models.OperationChange,
    ),
    _change("/locks/delete", "Delete a lock.", models.LockList, _delete_lock, models.LockDeletion),
    _change("/sessions/end", "End a session.", models.SessionOverview, _end_session, models.SessionEnd),
    _change(
        "/certificates/trust", "Trust a rejected certificate.", models.CertificateOverview, _trust, models.TrustBody
    ),
)
"""The operations about the gateway; changes are for engineers."""

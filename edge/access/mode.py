"""Switches the maintenance mode: one commit writes the mode and its audit record."""

from typing import TypeAlias

from msgspec import Struct

from edge.access.audit_trail import plan_append
from edge.foundation.errors import Refused
from edge.foundation.instant import Clock
from edge.model.audit import AuditRecord
from edge.model.maintenance import DEFAULT_MESSAGE, Maintenance, MaintenanceKind
from edge.store import mode
from edge.store.client import Store
from edge.store.commit import NOTHING, Commit, Committed, join
from edge.store.mode import StoredMode

MAX_MESSAGE = 1000
"""The longest message in characters."""


class SwitchOn(Struct, frozen=True):
    """Switch the mode on, or change what it says; an empty message is that of the product."""

    by: str
    kind: MaintenanceKind = MaintenanceKind.DRAIN
    message: str = ""
    until: int | None = None


class SwitchOff(Struct, frozen=True):
    """Switch the mode off."""


ModeRequest: TypeAlias = SwitchOn | SwitchOff


def decide_mode(before: Maintenance | None, request: ModeRequest, now: int) -> Maintenance | None:
    """Return the mode after a request at `now`; None is off. Raises Refused for arguments that make no sense."""
    match request:
        case SwitchOff():
            return None
        case SwitchOn(message=message) if len(message) > MAX_MESSAGE:
            raise Refused("invalid_payload", f"the message has more than {MAX_MESSAGE} characters.", "Shorten it.")
        case SwitchOn(until=until) if until is not None and until <= now:
            raise Refused("invalid_payload", "the end of the maintenance has passed.", "Name an instant ahead.")
        case SwitchOn(by=by, kind=kind, message=message, until=until):
            since = before.since if before and before.since else now
            return Maintenance(kind=kind, message=message or DEFAULT_MESSAGE, since=since, until=until, by=by)


def mode_in_force(found: StoredMode) -> Maintenance | None:
    """Return the mode that a gateway obeys: of its own and that of the store the one that pauses jobs; None: off."""
    modes = [each for each in (found.store, found.gateway) if each]
    return next((each for each in modes if each.kind is MaintenanceKind.NOW), modes[0] if modes else None)


async def switch_mode(
    store: Store,
    gateway: str,
    request: ModeRequest,
    record: AuditRecord,
    clock: Clock,
    keep: int,
    also: Commit = NOTHING,
) -> Maintenance | None:
    """Switch the mode of a gateway, of all gateways where it names none, and return it.

    Mode, audit record and the addition `also` are one commit; when a guard of the addition fails, another process has
    executed the same request. The caller copies the record to the log. Raises Refused, and Unavailable without the
    store.
    """
    while True:
        before = await mode.load(store, gateway)
        after = decide_mode(before.gateway if gateway else before.store, request, clock())
        audited = await plan_append(store, [record], keep)
        result = await store.commit(join((mode.save(store.keys, before, gateway, after), audited, also)))
        if isinstance(result, Committed):
            return after
        if not before.depends_on(result.key) and result.key != store.keys.audit_head():
            return after

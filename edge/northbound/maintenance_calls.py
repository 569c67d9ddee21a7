"""Execute the maintenance methods of the MES and of sidecars: switch the mode on and off, and show it."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial

import msgspec

from edge.access.audit_trail import AuditTrail
from edge.access.localization import localize, parse_languages
from edge.access.mode import ModeRequest, SwitchOff, SwitchOn, mode_in_force, switch_mode
from edge.foundation.errors import Refused
from edge.model.audit import AuditRecord
from edge.model.cloudevent import CloudEvent
from edge.model.event_types import MAINTENANCE_METHOD_TYPE
from edge.model.instant import milliseconds, utc
from edge.model.isa95 import ReturnStatus, read_payload
from edge.model.maintenance import MAINTENANCE_METHODS, Maintenance, MaintenanceAnswer, MaintenanceCall, MaintenanceKind
from edge.northbound.further_calls import FurtherCall, replying
from edge.store import dedupe, mode
from edge.store.client import Store

LANGUAGES = "acceptlanguage"
"""The extension attribute with the languages of the caller, as the header Accept-Language has them."""


def languages_of(event: CloudEvent) -> tuple[str, ...]:
    """Return the languages that the sender of an event prefers."""
    return parse_languages(event.extensions.get(LANGUAGES, ""))


class MaintenanceCalls:
    """The maintenance mode as the MES switches it."""

    def __init__(
        self,
        store: Store,
        trail: AuditTrail,
        switched: Callable[[], Awaitable[object]],
        running: Callable[[], int],
        dedupe_ms: int,
    ) -> None:
        """Record each switch in `trail`; `running` counts the jobs that have not ended.

        `switched` is called after each switch.
        """
        self._store = store
        self._trail = trail
        self._switched = switched
        self._running = running
        self._dedupe_ms = dedupe_ms

    @property
    def table(self) -> Mapping[str, FurtherCall]:
        """Return the calls by their CloudEvents type."""
        return {
            MAINTENANCE_METHOD_TYPE.format(method): replying(partial(self.call, method))
            for method in MAINTENANCE_METHODS
        }

    async def call(self, method: str, event: CloudEvent, origin: str) -> MaintenanceAnswer:
        """Execute a method of MAINTENANCE_METHODS; the same event again has no second effect. Raises Refused."""
        try:
            call = read_payload(event.data if event.data is not None else {}, MaintenanceCall)
        except msgspec.ValidationError as error:
            reason = f"the payload does not have the arguments of {event.type}: {error}."
            raise Refused("invalid_payload", reason, "Send Message, Until, Now, Gateway and By, or none.") from None
        if method == "Show" or await dedupe.load_answer(self._store, event.source, event.id) is not None:
            return await self._answer(event)
        request = _request(method, call, event.source)
        record = self._record(method, call, event, origin)
        mark = dedupe.mark(self._store.keys, event.source, event.id, method, self._dedupe_ms)
        clock, keep = self._trail.clock, self._trail.keep
        await switch_mode(self._store, call.gateway, request, record, clock, keep, mark)
        self._trail.copy(record)
        await self._switched()
        return await self._answer(event)

    def _record(self, method: str, call: MaintenanceCall, event: CloudEvent, origin: str) -> AuditRecord:
        is_rpc = origin == "rpc"
        return AuditRecord(
            at=self._trail.clock(),
            kind="rpc.call" if is_rpc else "mes.call",
            instance=self._trail.instance,
            user=call.by or event.source,
            application=event.source if call.by else "",
            address="" if is_rpc else origin,
            action=f"maintenance {method.lower()}",
            subject=call.gateway or "*",
            comment=call.message,
            status="Good",
        )

    async def _answer(self, event: CloudEvent) -> MaintenanceAnswer:
        found = mode_in_force(await mode.load(self._store, self._trail.instance))
        if found is None:
            return MaintenanceAnswer(return_status=ReturnStatus.NO_ERROR, on=False, running_jobs=self._running())
        message = localize(found.message, await mode.load_texts(self._store), languages_of(event))
        return maintenance_answer(found, message, self._running())


def maintenance_answer(found: Maintenance, message: str, running_jobs: int) -> MaintenanceAnswer:
    """Return a mode that is on as it is sent."""
    return MaintenanceAnswer(
        return_status=ReturnStatus.NO_ERROR,
        on=True,
        kind=found.kind,
        message=message,
        since=utc(found.since) if found.since else None,
        until=None if found.until is None else utc(found.until),
        by=found.by,
        running_jobs=running_jobs,
    )


def _request(method: str, call: MaintenanceCall, source: str) -> ModeRequest:
    if method == "Off":
        return SwitchOff()
    kind = MaintenanceKind.NOW if call.now else MaintenanceKind.DRAIN
    return SwitchOn(call.by or source, kind, call.message, None if call.until is None else milliseconds(call.until))

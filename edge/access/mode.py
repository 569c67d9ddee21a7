"""Switches the maintenance mode in one commit with its audit record, and follows what it is now."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import structlog
from msgspec import Struct

from edge.access.audit_trail import plan_append
from edge.access.localization import localize
from edge.foundation.errors import Refused
from edge.foundation.instant import Clock
from edge.foundation.listeners import notify
from edge.foundation.text import Text
from edge.model.audit import AuditRecord
from edge.model.plant import DEFAULT_MESSAGE, Maintenance, MaintenanceKind
from edge.store import mode
from edge.store.background import poll_store
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
            raise Refused(
                "invalid_payload",
                Text.of("the message has more than {max_message} characters.", max_message=MAX_MESSAGE),
                "Shorten it.",
            )
        case SwitchOn(until=until) if until is not None and until <= now:
            raise Refused("invalid_payload", "the end of the maintenance has passed.", "Name an instant ahead.")
        case SwitchOn(by=by, kind=kind, message=message, until=until):
            since = before.since if before and before.since else now
            return Maintenance(kind=kind, message=message or DEFAULT_MESSAGE, since=since, until=until, by=by)


def mode_in_force(found: StoredMode) -> Maintenance | None:
    """Return the mode that a gateway obeys: of its own and that of the store the one that pauses jobs; None: off."""
    modes = [maintenance for maintenance in (found.store, found.gateway) if maintenance]
    return next(
        (maintenance for maintenance in modes if maintenance.kind is MaintenanceKind.NOW), modes[0] if modes else None
    )


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


logger = structlog.get_logger(__name__)

POLL_INTERVAL_S = 1.0


class ModeWatch:
    """The mode of one gateway as it was read last; the guard of a commit detects that it was switched since."""

    def __init__(self, store: Store, gateway: str, poll_interval_s: float = POLL_INTERVAL_S) -> None:
        self.listeners: list[Callable[[Maintenance | None], None]] = []
        """Called with the mode in force when it has changed."""
        self._store = store
        self._gateway = gateway
        self._poll_interval_s = poll_interval_s
        self._found: StoredMode | None = None
        self._texts: Mapping[str, str] = {}
        self._in_force: Maintenance | None = None

    @property
    def in_force(self) -> Maintenance | None:
        """The maintenance mode that this gateway obeys; None: it works."""
        return self._in_force

    @property
    def guard(self) -> Commit:
        """Return the guard that the mode was not switched since it was read."""
        return self._found.guard if self._found else Commit()

    @property
    def texts(self) -> Mapping[str, str]:
        """The localised texts of the site, as of the last look while the mode was on."""
        return self._texts

    def message(self, languages: Sequence[str]) -> str:
        """Return the message of the mode in force in a language of the reader; empty while it is off."""
        return localize(self._in_force.message, self._texts, languages) if self._in_force else ""

    async def refresh(self) -> None:
        """Read the mode. Raises Unavailable when the store is gone."""
        stored_mode = await mode.load(self._store, self._gateway)
        before, now = self._in_force, mode_in_force(stored_mode)
        if now is not None:
            self._texts = await mode.load_texts(self._store)
        self._found, self._in_force = stored_mode, now
        if before != now:
            logger.info(
                "maintenance mode switched",
                mode=now.kind.value if now else "off",
                until=now.until if now else None,
                by=now.by if now else None,
            )
            notify(self.listeners, now)

    async def refresh_after(self, stale_key: str) -> None:
        """Read the mode again when the key of a stale commit is that of a mode."""
        if self._found and self._found.depends_on(stale_key):
            await self.refresh()

    async def run(self) -> None:
        """Read the mode at each interval until cancelled; retry while the store is unavailable."""
        await poll_store(self._store.defects, "mode", self.refresh, self._poll_interval_s)

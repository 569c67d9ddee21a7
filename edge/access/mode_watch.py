"""Follows the maintenance mode: what it is now, for decisions that depend on it."""

from collections.abc import Callable, Mapping, Sequence

import structlog

from edge.access.localization import localize
from edge.access.mode import mode_in_force
from edge.foundation.listeners import notify
from edge.model.maintenance import Maintenance
from edge.store import mode
from edge.store.client import Store
from edge.store.commit import Commit
from edge.store.mode import StoredMode
from edge.store.retry import poll_store

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
        found = await mode.load(self._store, self._gateway)
        before, now = self._in_force, mode_in_force(found)
        if now is not None:
            self._texts = await mode.load_texts(self._store)
        self._found, self._in_force = found, now
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

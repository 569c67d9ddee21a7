"""Reads signed commands from the shared store, for components without a broker."""

import structlog

from edge.features.fleet import store as fleet
from edge.features.fleet.command_service import FleetService
from edge.features.fleet.signature import read_expiry
from edge.foundation.errors import Defect
from edge.store.background import poll_store
from edge.store.client import Store

logger = structlog.get_logger(__name__)

LOOK_EVERY_S = 2.0


class FleetWatch:
    """Looks for commands in the store; the results are there, too."""

    def __init__(self, store: Store, service: FleetService) -> None:
        self._store = store
        self._service = service
        self._seen: frozenset[str] = frozenset()

    async def run(self) -> None:
        """Handle commands until cancelled; retry while the store is unavailable."""
        await poll_store(self._store.defects, "fleet commands", self.look, LOOK_EVERY_S)

    async def look(self) -> None:
        """Handle the commands that have arrived since the last look."""
        found = await fleet.load_commands(self._store)
        for id in sorted(found.keys() - self._seen):
            try:
                await self._service.handle(found[id], "store")
            except Defect as error:
                # A foreign value at a key of one command must not stop the gateway.
                logger.error("fleet command not handled", id=id[:80], reason=error.message)
        self._seen = frozenset(found)


async def remove_expired(store: Store, now_s: int) -> None:
    """Remove the commands that have expired, and what is not a command."""
    found = await fleet.load_commands(store)
    if gone := [id for id, text in found.items() if read_expiry(text) < now_s]:
        await store.commit(fleet.remove_commands(store.keys, gone))

"""Caches who holds each lock that an active run waits for: views of runs do not ask the store."""

from collections.abc import Mapping

from edge.foundation.ticks import next_tick
from edge.station.active_runs import ActiveRuns
from edge.station.job_locks import lock_holders
from edge.store.client import Store
from edge.store.retry import restart_on_outage

EVERY_S = 1.0


class LockHolders:
    """`named` says who holds each lock for which an active run waits; without such a run the store is not asked."""

    def __init__(self, store: Store, active_runs: ActiveRuns, every_s: float = EVERY_S) -> None:
        self.named: Mapping[str, str] = {}
        self._store = store
        self._active_runs = active_runs
        self._every_s = every_s

    async def follow(self) -> None:
        """Read them at each interval until cancelled; retry while the store is unavailable."""
        await restart_on_outage("lock holders", self._follow)

    async def _follow(self) -> None:
        while True:
            missing = {name for each in self._active_runs.loaded.values() for name in each.stored.run.locks.missing}
            self.named = await lock_holders(self._store, sorted(missing)) if missing else {}
            await next_tick(self._every_s)

"""Reads the state of the store at an interval, for the status line, metrics, alarms and the page."""

import contextlib
from collections import Counter
from collections.abc import Iterator
from typing import Final

from edge.foundation.ticks import next_tick
from edge.store.client import Store
from edge.store.observer import observer_of
from edge.store.store_state import ProblemKind, StoreProblem, StoreState, find_problems

INTERVAL_S: Final = 5.0
_REPORTED_BY_HEALTH: Final = frozenset(
    {ProblemKind.NO_MAJORITY, ProblemKind.PRIMARY_AWAY, ProblemKind.QUORUM, ProblemKind.PRIORITIES}
)
_TAGS: Final = {
    "gateway.sentinels_away": ProblemKind.SENTINEL_AWAY,
    "gateway.store_replicas_away": ProblemKind.REPLICA_AWAY,
    "gateway.store_replicas_lagging": ProblemKind.REPLICA_LAGS,
    "gateway.store_without_file": ProblemKind.NO_AOF,
    "gateway.clocks_differing": ProblemKind.CLOCK_DIFFERS,
}
"""The tags of the built-in alarms: how many servers have the problem."""


class StoreWatch:
    """Holds the last state of the store; None before the first reading."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.state: StoreState | None = None
        self.problems: tuple[StoreProblem, ...] = ()

    async def run(self, interval_s: float = INTERVAL_S) -> None:
        """Read the state until cancelled."""
        with contextlib.closing(observer_of(self._store)) as observer:
            while True:
                self.state = await observer.read()
                self.problems = find_problems(self.state)
                await next_tick(interval_s)

    def notes(self) -> Iterator[str]:
        """Yield what the status line adds: work continues, with less protection."""
        if self._store.ha is not None:
            of_primary = [problem for problem in self.problems if problem.subject.startswith("primary")]
            for store_problem in self.problems:
                if store_problem.kind not in _REPORTED_BY_HEALTH and store_problem not in of_primary:
                    yield (
                        store_problem.found
                        if store_problem.found.startswith("the ")
                        else f"{store_problem.subject}: {store_problem.found}"
                    )

    def tags(self) -> Iterator[tuple[str, float]]:
        """Yield the values of the tags of the built-in alarms; without Sentinel none."""
        if self._store.ha is None or self.state is None:
            return
        yield "gateway.primary_unconfirmed", int(bool(self._store.unconfirmed))
        counts = Counter(problem.kind for problem in self.problems)
        yield from ((tag, counts[kind]) for tag, kind in _TAGS.items())

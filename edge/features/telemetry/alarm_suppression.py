"""Suppresses the alarms of configured rules during maintenance (ISA-18.2: suppressed by design)."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from edge.access.mode import ModeWatch
from edge.features.telemetry.rules.alarm import AlarmChanged, Suppress, Unsuppress, transition
from edge.foundation.instant import Clock
from edge.ports.alarm import Alarm
from edge.store import kept_alarms as alarms
from edge.store.background import poll_store
from edge.store.client import Store
from edge.store.kept_alarms import AlarmChange

_LOOK_EVERY_S = 1.0


class AlarmSuppression:
    """Suppresses alarms within a second of the mode, and of each alarm that is raised while it is on."""

    def __init__(
        self, store: Store, mode: ModeWatch, rules: Sequence[str], clock: Clock, look_every_s: float = _LOOK_EVERY_S
    ) -> None:
        """Create the suppression of the rules whose ids match one of some patterns."""
        self._store = store
        self._mode = mode
        self._rules = rules
        self._clock = clock
        self._look_every_s = look_every_s
        self._may_be_suppressed = True
        """Whether alarms may be suppressed in the store: a killed gateway leaves them so."""

    async def run(self) -> None:
        """Follow the mode until cancelled; retry while the store is unavailable."""
        await poll_store(self._store.defects, "alarm suppression", self.look, self._look_every_s)

    async def look(self) -> None:
        """Decide which alarms are suppressed now, and commit what changes. Raises Unavailable without the store."""
        is_on = self._mode.in_force is not None and bool(self._rules)
        if not is_on and not self._may_be_suppressed:
            return
        stored = await alarms.load(self._store)
        changes = plan_suppression(stored.alarms, self._rules if is_on else (), self._clock())
        if changes:
            # Stale: an alarm was changed; the next look decides again.
            await self._store.commit(alarms.save(self._store.keys, stored, changes))
        self._may_be_suppressed = is_on or bool(changes)


def plan_suppression(found: Mapping[str, Alarm], rules: Sequence[str], now: int) -> list[AlarmChange]:
    """Return the changes after which exactly the alarms of these rules are suppressed."""
    changes = []
    for alarm in found.values():
        is_wanted = any(fnmatchcase(alarm.rule, pattern) for pattern in rules)
        result = transition(alarm, Suppress() if is_wanted else Unsuppress(), now)
        if isinstance(result, AlarmChanged):
            changes.append(AlarmChange(result.alarm, result.kind))
    return changes

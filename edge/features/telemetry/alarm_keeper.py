"""Keeps the alarms of the store: commits what findings make of them, and ends shelvings and floods in time."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final

from edge.access.mode import ModeWatch
from edge.features.telemetry.alarm_decision import (
    FLOOD_ALARMS,
    NO_FLOOD,
    Flood,
    FoundAlarm,
    clear_orphans,
    decide_alarms,
    end_flood,
    expire_shelvings,
    is_flooded,
    next_expiry,
    remove_alarms,
    rename_subjects,
)
from edge.features.telemetry.built_in_rules import JOB_ABORTED_RULE
from edge.features.telemetry.model.rule import OccursRule
from edge.features.telemetry.rules.alarm import AlarmChanged, Suppress, Unsuppress, transition
from edge.features.telemetry.rules.evaluator import Renamed
from edge.features.telemetry.rules.subject_state import Finding, FindingEvent
from edge.foundation.fault_points import FaultPoint, fault_point
from edge.foundation.instant import Clock
from edge.ports.alarm import Alarm, AlarmCause, AlarmChangeKind, alarm_id
from edge.store import jobs
from edge.store import kept_alarms as alarms
from edge.store.background import poll_store
from edge.store.client import Store
from edge.store.commit import NOTHING, Commit, Committed, join, operation, written_size
from edge.store.kept_alarms import AlarmChange, StoredAlarms

FLOOD_CHECK_MS: Final = 2_000
"""Interval at which the end of a flood is looked for: persons acknowledge, and time passes."""
JOBS_CHECK_MS: Final = 60_000
"""Interval at which alarms of jobs that the store no longer has are looked for."""
LOOK_MS: Final = 1_000
"""Interval at which the answers of persons are looked for: a shelving may be among them."""
_RATE_WINDOW_MS: Final = 600_000
_MOST_COUNTED: Final = 10_000


class AlarmKeeper:
    """The alarms as they are stored, with the revision that guards their changes."""

    def __init__(self, store: Store, clock: Clock, flood_limit: int = FLOOD_ALARMS) -> None:
        """Limit the alarms that are shown one by one to `flood_limit` different ones in a minute."""
        self.written_bytes = 0
        """Bytes that this wrote to the append-only file, about."""
        self._store = store
        self._clock = clock
        self._flood_limit = flood_limit
        self._stored = StoredAlarms(0, {})
        self._flood: Flood = NO_FLOOD
        self._checked_at = 0
        self._looked_at = 0
        self._jobs_checked_at = 0
        self._raised: deque[int] = deque(maxlen=_MOST_COUNTED)

    @property
    def standing(self) -> int:
        """Return the number of alarms that are kept."""
        return len(self._stored.alarms)

    @property
    def shelved(self) -> int:
        """Return the number of shelved alarms."""
        return sum(alarm.shelving is not None for alarm in self._stored.alarms.values())

    @property
    def rate(self) -> int:
        """Return the number of alarms that were raised in the last ten minutes (ISA-18.2)."""
        since = self._clock() - _RATE_WINDOW_MS
        return sum(at > since for at in self._raised)

    @property
    def next_instant(self) -> int | None:
        """Return the next instant at which time alone may change an alarm; None when there is none."""
        check = self._checked_at + FLOOD_CHECK_MS if is_flooded(self._stored.alarms) else None
        ends = (next_expiry(self._stored.alarms), check)
        return min((end for end in ends if end is not None), default=None)

    async def load(self, standing: Sequence[FoundAlarm], guard: Commit) -> None:
        """Read the alarms; clear those whose finding is gone, and raise findings that have none.

        `standing` are the active findings as raises, while `guard` holds. In a flood they stay withheld until it ends.
        """
        self._stored = await alarms.load(self._store)
        now = self._clock()
        active = {alarm_id(found_alarm.finding.rule, found_alarm.finding.subject) for found_alarm in standing}
        await self._save(clear_orphans(self._stored.alarms, active, now), guard)
        if is_flooded(self._stored.alarms):
            # How fast they came is forgotten: the flood lasts as if they came now.
            self._flood = Flood(dict.fromkeys(active - self._stored.alarms.keys(), now))
        else:
            ended = end_flood(self._stored.alarms, standing, NO_FLOOD, now, self._flood_limit)
            await self._save(ended.changes, guard)

    def look_soon(self) -> None:
        """Read the alarms at the next `tend` again: a person may have changed them."""
        self._looked_at = 0

    async def commit(
        self, written: Commit, found: Sequence[FoundAlarm], stats: dict[str, int], renamed: Sequence[Renamed] = ()
    ) -> bool:
        """Commit a decision with the alarms and counters that follow from it; alarms of `renamed` subjects are moved.

        Return False when another part of it than the alarms was changed meanwhile.
        """
        keys = self._store.keys
        while True:
            moved = rename_subjects(self._stored.alarms, renamed, self._clock())
            known = alarms.applied(self._stored, moved).alarms
            decision = decide_alarms(known, found, self._flood, self._flood_limit)
            changes = [*moved, *decision.changes]
            fault_point(FaultPoint.DECIDED)
            counts = stats | ({"withheld": decision.withheld} if decision.withheld else {})
            commit = join((written, alarms.save(keys, self._stored, changes), self.count(counts)))
            result = await self._store.commit(commit)
            if isinstance(result, Committed):
                self.written_bytes += written_size(commit)
                self._note(changes)
                self._flood = decision.flood
                return True
            if result.key != keys.alarms():
                return False
            # A person has answered an alarm meanwhile.
            self._stored = await alarms.load(self._store)

    async def tend(self, standing: Callable[[], Iterable[FoundAlarm]]) -> None:
        """End shelvings, also those that persons have begun, and a flood that is over. Raises Unavailable."""
        now = self._clock()
        await self._look(now)
        await self._expire_with_jobs(now)
        due = self.next_instant
        if due is None or due > now:
            return
        if is_flooded(self._stored.alarms):
            self._checked_at = now
            self._stored = await alarms.load(self._store)
            decision = end_flood(self._stored.alarms, standing(), self._flood, now, self._flood_limit)
            if await self._save(decision.changes):
                self._flood = decision.flood
        await self._save(expire_shelvings(self._stored.alarms, now))

    def count(self, stats: dict[str, int]) -> Commit:
        """Return the commit of counters."""
        key = self._store.keys.telemetry_counters()
        return join(operation("HINCRBY", key, name, count) for name, count in stats.items())

    async def _expire_with_jobs(self, now: int) -> None:
        """Remove the alarms of aborted jobs that were cleared or have expired: nothing is left to look at."""
        if abs(now - self._jobs_checked_at) < JOBS_CHECK_MS:
            return
        self._jobs_checked_at = now
        of_jobs = [alarm for alarm in self._stored.alarms.values() if alarm.rule == JOB_ABORTED_RULE]
        if of_jobs:
            gone = set(await jobs.missing(self._store, [alarm.subject for alarm in of_jobs]))
            await self._save(remove_alarms((alarm for alarm in of_jobs if alarm.subject in gone), now))

    async def _look(self, now: int) -> None:
        """Read the alarms when a person or the maintenance mode has changed them."""
        if abs(now - self._looked_at) < LOOK_MS:
            return
        self._looked_at = now
        if await alarms.revision(self._store) != self._stored.revision:
            self._stored = await alarms.load(self._store)

    async def _save(self, changes: Sequence[AlarmChange], guard: Commit = NOTHING) -> bool:
        """Commit changes; return False when the alarms were changed meanwhile, and read them again."""
        if not changes:
            return True
        result = await self._store.commit(join((guard, alarms.save(self._store.keys, self._stored, changes))))
        if isinstance(result, Committed):
            self._note(changes)
            return True
        self._stored = await alarms.load(self._store)
        return False

    def _note(self, changes: Sequence[AlarmChange]) -> None:
        self._stored = alarms.applied(self._stored, changes)
        self._raised.extend(change.alarm.changed_at for change in changes if change.kind is AlarmChangeKind.RAISED)


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
        stored_alarms = await alarms.load(self._store)
        changes = plan_suppression(stored_alarms.alarms, self._rules if is_on else (), self._clock())
        if changes:
            # Stale: an alarm was changed; the next look decides again.
            await self._store.commit(alarms.save(self._store.keys, stored_alarms, changes))
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


async def raise_alarm(store: Store, cause: AlarmCause, at: int) -> Alarm | None:
    """Raise an alarm that has no rule and return it; None when a flood of alarms withheld it.

    Raised again, it counts and has to be acknowledged again. Raises Unavailable.
    """
    finding = Finding(at, cause.rule, cause.subject, FindingEvent.RAISED, cause.severity)
    rule = OccursRule(id=cause.rule, pattern=cause.rule, severity=cause.severity, message=cause.message or None)
    found_alarm = FoundAlarm(finding, rule, cause.value)
    while True:
        stored_alarms = await alarms.load(store)
        changes = decide_alarms(stored_alarms.alarms, [found_alarm]).changes
        # A flood of alarms may change none: they are counted in one then.
        if not changes or isinstance(await store.commit(alarms.save(store.keys, stored_alarms, changes)), Committed):
            break
    name = alarm_id(cause.rule, cause.subject)
    return next((change.alarm for change in reversed(changes) if change.alarm.id == name), None)

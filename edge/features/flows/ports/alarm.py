"""Raises alarms for flows: like an occurrence, each is over at once and waits for a person."""

from typing import Any, Final

import msgspec

from edge.features.flows.attempt import OutcomeUnknownError
from edge.features.flows.nodes.act import RaiseAlarm
from edge.features.telemetry.alarm_decision import FoundAlarm, decide_alarms
from edge.features.telemetry.model.rule import OccursRule
from edge.features.telemetry.rules.subject_state import Finding, FindingEvent
from edge.foundation.errors import Unavailable
from edge.foundation.instant import Clock
from edge.ports.alarm import Alarm, alarm_id
from edge.store import kept_alarms as alarms
from edge.store.client import Store
from edge.store.commit import Committed

LARGEST_VALUE: Final = 4_096
"""In bytes of JSON; a larger value is left out of the alarm."""


class AlarmRaiser:
    """Raises the alarm of an id for a flow; raised again, it counts and has to be acknowledged again."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def raise_alarm(self, action: RaiseAlarm, _action_id: str) -> dict[str, Any]:
        """Raise an alarm and return its id and count; raises OutcomeUnknownError when the commit was not confirmed."""
        finding = Finding(self._clock(), action.alarm, action.flow, FindingEvent.RAISED, action.severity)
        rule = OccursRule(
            id=action.alarm, pattern=action.alarm, severity=action.severity, message=action.message or None
        )
        value = action.value if len(msgspec.json.encode(action.value)) <= LARGEST_VALUE else None
        found = FoundAlarm(finding, rule, value)
        name = alarm_id(action.alarm, action.flow)
        try:
            while True:
                stored = await alarms.load(self._store)
                changes = decide_alarms(stored.alarms, [found]).changes
                # A flood of alarms may change none: they are counted in one then.
                if not changes or isinstance(
                    await self._store.commit(alarms.save(self._store.keys, stored, changes)), Committed
                ):
                    break
        except Unavailable as error:
            raise OutcomeUnknownError(error.message) from None
        raised: Alarm | None = next((change.alarm for change in reversed(changes) if change.alarm.id == name), None)
        return {"alarm": name, "count": raised.count if raised else 0}

"""Requests of people and of the MES about alarms: decided by the state machine, committed under the revision."""

from edge.errors import Refused
from edge.instant import Clock
from edge.model.alarm import Alarm
from edge.rules.alarm import AlarmChanged, AlarmEvent, AlarmRefusal, transition
from edge.store import alarms
from edge.store.alarms import AlarmChange
from edge.store.client import Store
from edge.store.commit import Commit, Committed, join


async def request_change(
    store: Store, alarm_id: str, event: AlarmEvent, clock: Clock, also: Commit | None = None
) -> Alarm:
    """Apply the request of a person to an alarm and return it; `also` is written in the same commit.

    Raises Refused (`unknown_alarm`, `invalid_state`), and Unavailable when the store is gone.
    """
    while True:
        stored = await alarms.load(store)
        alarm = stored.alarms.get(alarm_id)
        if alarm is None:
            raise Refused("unknown_alarm", f"there is no alarm {alarm_id!r}.", "List the alarms: edge alarms list.")
        result = transition(alarm, event, clock())
        if isinstance(result, AlarmRefusal):
            raise Refused("invalid_state", f"{result.reason}.", f"The alarm is {alarm.state.value}.")
        if not isinstance(result, AlarmChanged):
            return alarm
        saved = alarms.save(store.keys, stored, [AlarmChange(result.alarm, result.kind)])
        if isinstance(await store.commit(join((saved, also or Commit()))), Committed):
            return result.alarm

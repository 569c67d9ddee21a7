"""Requests of operators and the MES about alarms: the state machine decides, the revision guards the commit."""

from collections.abc import Callable
from typing import Final

from edge.features.telemetry.rules.alarm import (
    Acknowledge,
    AddComment,
    AlarmChanged,
    AlarmEvent,
    AlarmRefusal,
    Confirm,
    Disable,
    Enable,
    Reset,
    Shelve,
    Unshelve,
    transition,
)
from edge.foundation.errors import Refused
from edge.foundation.instant import Clock
from edge.foundation.text import Text
from edge.ports.alarm import Alarm, AlarmCall, AlarmNotice
from edge.ports.batch import Batch, encode_batch
from edge.store import kept_alarms as alarms
from edge.store import stream_of_samples as telemetry
from edge.store.client import Store
from edge.store.commit import Commit, Committed, join
from edge.store.kept_alarms import AlarmChange
from edge.store.keys import Keys

_STREAM_LENGTH: Final = 100_000
"""The longest that `[telemetry] stream_length` allows: sources, which know it, keep the stream shorter."""


def _nothing(_: AlarmNotice) -> Commit:
    return Commit()


async def request_change(
    store: Store,
    alarm_id: str,
    event: AlarmEvent,
    clock: Clock,
    also: Callable[[AlarmNotice], Commit] = _nothing,
    normal: Alarm | None = None,
) -> AlarmNotice:
    """Apply the request of a person to an alarm and return the alarm after it; `also` adds to the same commit.

    `normal` is the alarm when the store does not keep it, because it is normal.
    Raises Refused (`unknown_alarm`, `invalid_state`), and Unavailable when the store is gone.
    """
    while True:
        stored_alarms = await alarms.load_one(store, alarm_id)
        alarm = stored_alarms.alarms.get(alarm_id, normal)
        if alarm is None:
            raise Refused(
                "unknown_alarm",
                Text.of("there is no alarm {alarm_id!r}.", alarm_id=alarm_id),
                "List the alarms: edge alarms list.",
            )
        result = transition(alarm, event, clock())
        if not isinstance(result, AlarmChanged):
            reason = result.reason if isinstance(result, AlarmRefusal) else Text.of("the request changes nothing")
            raise Refused(
                "invalid_state",
                Text.of("{reason}.", reason=reason),
                Text.of("The alarm is {state}.", state=alarm.state.value),
            )
        notice = AlarmNotice.of(result.alarm, result.kind)
        saved = alarms.save(store.keys, stored_alarms, [AlarmChange(result.alarm, result.kind)])
        committed = await store.commit(join((saved, also(notice), _wake(store.keys, event, result.alarm.changed_at))))
        if isinstance(committed, Committed):
            return notice
        if committed.key != store.keys.alarms():
            raise Refused("duplicate", "the same request is being executed.", "Repeat it to read its answer.")


def _wake(keys: Keys, event: AlarmEvent, now: int) -> Commit:
    """Append an empty batch for a shelving with an end: the processor may wait for samples until after that end."""
    if not (isinstance(event, Shelve) and event.until):
        return Commit()
    return telemetry.append(keys, encode_batch(Batch("", 0, now, ())), _STREAM_LENGTH)


def alarm_event_of(method: str, call: AlarmCall, now: int) -> AlarmEvent:
    """Return the event of a method of ALARM_METHODS."""
    match method:
        case "Acknowledge":
            return Acknowledge(call.by, call.comment)
        case "Confirm":
            return Confirm(call.by, call.comment)
        case "AddComment":
            return AddComment(call.by, call.comment)
        case "Reset":
            return Reset(call.by, call.comment)
        case "Shelve":
            return Shelve(call.by, call.comment, None if call.seconds is None else now + round(call.seconds * 1000))
        case "Unshelve":
            return Unshelve(call.by, call.comment)
        case "Disable":
            return Disable(call.by, call.comment)
        case _:
            return Enable(call.by, call.comment)

"""Alarms in the store: those that must be kept by id, and the stream of their changes."""

from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from typing import Final

import msgspec
import structlog
from msgspec import Struct

from edge.ports.alarm import Alarm, AlarmChangeKind, PublicAlarm, public_alarm
from edge.store.client import Store, block_ms
from edge.store.commit import Commit, RedisCommand, at_revision, fields, operation
from edge.store.generation import GENERATION, generation_fields
from edge.store.keys import Keys
from edge.store.reads import BEGINNING, Entry, StreamPage, entries, page_of, reachable

logger = structlog.get_logger(__name__)

STREAM_LENGTH: Final = 10_000
_REVISION: Final = "rev"
_BATCH: Final = 100


class AlarmChange(Struct, frozen=True):
    """One change of an alarm; `alarm` is as it was right after it, `position` orders the changes.

    `generation` is that of the store behind Sentinel in which it was written. `action` is the method that the station
    must call for the job of the alarm; empty for none.
    """

    alarm: Alarm
    kind: AlarmChangeKind
    action: str = ""
    position: str = ""
    generation: str = ""

    @property
    def event_id(self) -> str:
        """Return the id under which the change is published, the same each time."""
        return "/".join(filter(None, ("alarm", self.generation, self.position)))


class StoredAlarms(Struct, frozen=True):
    """The alarms that are kept, and the revision that guards them."""

    revision: int
    alarms: Mapping[str, Alarm]


async def load(store: Store) -> StoredAlarms:
    """Read all alarms; one that cannot be read is logged and left out."""
    return _read(await store.execute("HGETALL", store.keys.alarms()))


async def load_one(store: Store, alarm_id: str) -> StoredAlarms:
    """Read one alarm, with the revision that guards all: 10,000 alarms would hold the event loop for 20 ms."""
    names = (alarm_id, _REVISION)
    values = await store.execute("HMGET", store.keys.alarms(), *names)
    return _read({name: text for name, text in zip(names, values, strict=True) if text is not None})


async def load_public(store: Store, languages: Sequence[str]) -> tuple[PublicAlarm, ...]:
    """Read the public forms of all alarms, the most severe first, with their messages in one of these languages."""
    ranked = sorted(
        (await load(store)).alarms.values(), key=lambda alarm: (-alarm.severity, alarm.raised_at or 0, alarm.id)
    )
    return tuple(public_alarm(alarm, languages) for alarm in ranked)


async def revision(store: Store) -> int:
    """Return the revision that guards all alarms."""
    return int(await store.execute("HGET", store.keys.alarms(), _REVISION) or 0)


def _read(stored: Mapping[str, str]) -> StoredAlarms:
    alarms: dict[str, Alarm] = {}
    for alarm_id, text in stored.items():
        if alarm_id == _REVISION:
            continue
        try:
            alarms[alarm_id] = msgspec.json.decode(text, type=Alarm)
        except msgspec.DecodeError as error:
            logger.error("alarm cannot be read", alarm=alarm_id, reason=str(error))
    return StoredAlarms(int(stored.get(_REVISION, 0)), alarms)


async def count(store: Store) -> int:
    """Return how many alarms are kept."""
    return max(0, int(await store.execute("HLEN", store.keys.alarms())) - 1)  # without the revision


def save(keys: Keys, before: StoredAlarms, changes: Iterable[AlarmChange]) -> Commit:
    """Write changed alarms and append their changes; an alarm that need not be kept is removed."""
    key = keys.alarms()
    operations: list[RedisCommand] = []
    for change in changes:
        alarm, text = change.alarm, msgspec.json.encode(change.alarm).decode()
        entry = (*fields({"kind": change.kind.value, "action": change.action, "alarm": text}), *generation_fields(keys))
        operations.append(("HSET", key, alarm.id, text) if alarm.is_retained else ("HDEL", key, alarm.id))
        operations.append(("XADD", keys.alarm_changes(), "MAXLEN", "~", STREAM_LENGTH, "*", *entry))
    if not operations:
        return Commit()
    operations.append(("HSET", key, _REVISION, str(before.revision + 1)))
    return Commit((at_revision(key, before.revision),), tuple(operations))


def applied(before: StoredAlarms, changes: Iterable[AlarmChange]) -> StoredAlarms:
    """Return the alarms as `save` leaves them."""
    alarms = dict(before.alarms)
    changed = False
    for alarm_change in changes:
        changed = True
        if alarm_change.alarm.is_retained:
            alarms[alarm_change.alarm.id] = alarm_change.alarm
        else:
            alarms.pop(alarm_change.alarm.id, None)
    return StoredAlarms(before.revision + changed, alarms)


async def follow(store: Store, after: str) -> AsyncIterator[AlarmChange]:
    """Yield every change after a position, as it happens. Raises Unavailable when the store is unavailable."""
    key = store.keys.alarm_changes()
    while True:
        reply = await store.wait("XREAD", "COUNT", _BATCH, "BLOCK", block_ms(), "STREAMS", key, after)
        if reply:
            await store.settle()
        for raw in (reply or {}).get(key, ()):
            for entry in entries(raw):
                after = entry.entry_id
                if change := _change(entry):
                    yield change


async def follow_kept(store: Store) -> AsyncIterator[Collection[Alarm]]:
    """Yield all kept alarms now, and again after changes. Raises Unavailable when the store is unavailable."""
    key = store.keys.alarm_changes()
    while True:
        # The position is read before the alarms, so that no change during the reading is lost.
        newest_entry = list(entries(await store.execute("XREVRANGE", key, "+", "-", "COUNT", 1)))
        position = newest_entry[0].entry_id if newest_entry else BEGINNING
        yield (await load(store)).alarms.values()
        while not await store.wait("XREAD", "COUNT", 1, "BLOCK", block_ms(), "STREAMS", key, position):
            pass


async def page(
    store: Store, first: str, last: str, count: int, *, is_backward: bool = False
) -> StreamPage[AlarmChange]:
    """Return a page of changes between two positions; backwards `first` is the newest. `(` excludes a position."""
    command = "XREVRANGE" if is_backward else "XRANGE"
    reply = await store.execute(command, store.keys.alarm_changes(), first, last, "COUNT", count)
    return page_of(reply, count, _change)


async def newest(store: Store, count: int) -> list[AlarmChange]:
    """Return the newest changes, at most `count`, the oldest of them first."""
    reply = await store.execute("XREVRANGE", store.keys.alarm_changes(), "+", "-", "COUNT", count)
    return [change for entry in reversed(list(entries(reply))) if (change := _change(entry))]


async def cursor(store: Store, reader: str) -> str:
    """Return the last change that a reader has handled; never one that would skip a change."""
    position: str | None = await store.execute("HGET", store.keys.telemetry_cursors(), reader)
    return await reachable(store, store.keys.alarm_changes(), position or BEGINNING)


def save_cursor(keys: Keys, reader: str, position: str) -> Commit:
    """Write the last change that a reader has handled."""
    return operation("HSET", keys.telemetry_cursors(), reader, position)


def _change(entry: Entry) -> AlarmChange | None:
    found = entry.fields
    try:
        alarm = msgspec.json.decode(found["alarm"], type=Alarm)
        kind, generation = AlarmChangeKind(found["kind"]), found.get(GENERATION, "")
        return AlarmChange(alarm, kind, found.get("action", ""), entry.entry_id, generation)
    except (KeyError, ValueError, msgspec.DecodeError) as error:
        logger.error("alarm change cannot be read", position=entry.entry_id, reason=repr(error))
        return None

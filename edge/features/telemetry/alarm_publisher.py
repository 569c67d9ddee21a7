"""What follows each change of an alarm: it is published in order, and its job actions are executed, each once.

Alarms that are not normal are kept as retained messages.
"""

import asyncio
import functools
import time
from collections import deque
from collections.abc import Callable

import msgspec
import structlog

from edge.foundation.errors import Refused, Unavailable
from edge.foundation.instant import Clock, Latency
from edge.foundation.task_group import background_task
from edge.foundation.text import Text
from edge.links.mqtt import Message, MqttSession, PublishRefused, to_message
from edge.model.cloudevent import CloudEvent
from edge.model.event_types import ALARM_TYPE, ALARM_TYPE_V1
from edge.model.isa95 import IdCall, LocalizedText, ReturnStatus
from edge.model.job_state import Cause
from edge.northbound.topics import Topics
from edge.ports.alarm import Alarm, AlarmChangeKind, AlarmNotice, public_alarm_change
from edge.station.job_call import JobCall
from edge.station.jobs import JobService
from edge.store import jobs
from edge.store import kept_alarms as alarms
from edge.store.background import restart_on_outage
from edge.store.client import Store
from edge.store.commit import join
from edge.store.kept_alarms import AlarmChange
from edge.store.stream_of_samples import SendAttempt, record_attempt

logger = structlog.get_logger(__name__)

READER = "mes"
ALARM_CALLER = "alarm {rule}"
"""The caller of a method that an alarm calls, as an interlock does."""
BUCKETS_S = (0.05, 0.1, 0.2, 0.5, 1.0, 5.0, 60.0, 3600.0)
LATE_MS = 5_000
"""Age from which a change is marked as late."""
_RETRY_S = 0.5
"""Characters of a payload that its attempt keeps."""
_RESTORED = 1_000
"""Newest changes whose alarms are published again on a new connection, removed ones included."""


class RestoreTimes(msgspec.Struct, frozen=True):
    """Times in seconds that count after a broker was gone, which may have lost messages and sessions.

    Changes that it confirmed less than `confirmed` before its connection ended are published again on the next one.
    `mes` is the longest wait for the MES to subscribe again after a connection.
    """

    confirmed: float = 5.0
    mes: float = 10.0


_TIMES = RestoreTimes()


class AlarmPublisher:
    """Publishes the changes after its cursor; while the broker is away they wait in the stream."""

    def __init__(
        self,
        store: Store,
        session: MqttSession,
        source: str,
        topics: Topics,
        clock: Clock,
        times: RestoreTimes = _TIMES,
        monotonic: Callable[[], float] = time.monotonic,
        version: int = 2,
    ) -> None:
        """Publish events of this `version`, 1 or 2."""
        self.sent = 0
        self.failed = 0
        self.latency = Latency(BUCKETS_S)
        """Time from the sample of a change to its confirmation by the broker."""
        self._store = store
        self._session = session
        self._source = source
        self._topics = topics
        self._clock = clock
        self._version = version
        self._sending = asyncio.Lock()
        self._connected = asyncio.Event()
        self._confirmed: deque[tuple[float, AlarmChange]] = deque(maxlen=_RESTORED)
        self._again: tuple[AlarmChange, ...] = ()
        """The changes to publish again on the next connection."""
        self._times = times
        self._monotonic = monotonic
        self._connected_at = monotonic()
        self._expects_mes = True
        """Whether the MES subscribes to the events, as far as is known."""

    async def run(self) -> None:
        """Publish until cancelled; retry while broker or store are unavailable."""
        self._connected.set()
        self._session.listeners.append(self._note_connection)
        try:
            async with background_task(restart_on_outage("retained alarms", self._keep_retained), "retained alarms"):
                await restart_on_outage("alarms", self._follow)
        finally:
            self._session.listeners.remove(self._note_connection)

    def _note_connection(self, is_connected: bool) -> None:  # noqa: FBT001 - as the session calls it
        now = self._monotonic()
        if is_connected:
            self._connected_at = now
            self._connected.set()
        else:
            lost = [change for at, change in self._confirmed if at >= now - self._times.confirmed]
            # Those of an earlier connection may wait for the MES still.
            self._again = tuple(
                {alarm_change.position: alarm_change for alarm_change in (*self._again, *lost)}.values()
            )

    async def _keep_retained(self) -> None:
        """Publish on each connection what the broker has to retain: it may have lost it, or restored an older state."""
        while True:
            await self._connected.wait()
            self._connected.clear()
            try:
                await self._publish_retained()
            except Unavailable:
                self._connected.set()
                raise

    async def _publish_retained(self) -> None:
        """Publish the retained message of each alarm, and remove those of alarms that are over. Raises Unavailable."""
        async with self._sending:
            changes = {
                alarm_change.alarm.id: alarm_change for alarm_change in await alarms.newest(self._store, _RESTORED)
            }
            current = (await alarms.load(self._store)).alarms
            for alarm in current.values():
                position = f"{alarm.id}/{alarm.changed_at}"
                changes.setdefault(alarm.id, AlarmChange(alarm, AlarmChangeKind.RAISED, position=position))
            for change in changes.values():
                try:
                    await self._session.send(retained_alarm(self._topics, self._event_of(change), change.alarm))
                except (PublishRefused, Refused):
                    # The broker does not take this one; it may take the others.
                    continue
                except Unavailable:
                    # A connection that ends meanwhile is followed by another one.
                    return
            await self._publish_again()

    async def _publish_again(self) -> None:
        """Publish the events that the broker may have lost: it confirmed them shortly before it was gone."""
        while self._again:
            change, *rest = self._again
            try:
                await self._send_event(to_message(self._event_of(change), self._topics.alarms))
            except (PublishRefused, Refused):
                # The broker does not take this one; it may take the others.
                pass
            except Unavailable:
                return
            self._again = tuple(rest)

    async def _follow(self) -> None:
        cursor = await alarms.cursor(self._store, READER)
        async for change in alarms.follow(self._store, cursor):
            attempt = await self._publish(change)
            self.failed += bool(attempt.error)
            self.sent += not attempt.error
            if not attempt.error:
                self.latency.record(max(0, self._clock() - change.alarm.changed_at) / 1000)
            await self._store.commit(
                join(
                    (
                        alarms.save_cursor(self._store.keys, READER, change.position),
                        record_attempt(self._store.keys, attempt, self._clock()),
                    )
                )
            )

    async def _publish(self, change: AlarmChange) -> SendAttempt:
        """Publish a change; return what was sent after its confirmation, or its refusal by the broker."""
        while True:
            # Built for each attempt: a change that waited for the broker is late.
            event = self._event_of(change)
            message = to_message(event, self._topics.alarms)
            retained = retained_alarm(self._topics, event, change.alarm)
            try:
                await self._send(message, retained)
            except Unavailable:
                await asyncio.sleep(_RETRY_S)
            except (PublishRefused, Refused) as refused:
                logger.warning("alarm not published", alarm=change.alarm.id, reason=refused.message)
                return self._attempt(change, message, refused.message)
            else:
                self._confirmed.append((self._monotonic(), change))
                return self._attempt(change, message, "")

    def _attempt(self, change: AlarmChange, message: Message, error: str) -> SendAttempt:
        payload = message.payload.decode(errors="replace")
        return SendAttempt(change.alarm.id, "mqtt", payload, error)

    def _event_of(self, change: AlarmChange) -> CloudEvent:
        return alarm_event(self._source, self._topics.scope, change, self._clock(), self._version)

    async def _send(self, event: Message, retained: Message) -> None:
        async with self._sending:
            await self._session.send(retained)
            await self._send_event(event)

    async def _send_event(self, event: Message) -> None:
        """Publish an event; shortly after a connection wait for a subscriber, if there was one before."""
        while not await self._session.send(event):
            if not self._expects_mes or self._monotonic() >= self._connected_at + self._times.mes:
                self._expects_mes = False
                return
            await asyncio.sleep(_RETRY_S)
        self._expects_mes = True


def alarm_event(source: str, scope: str, change: AlarmChange, now: int, version: int = 2) -> CloudEvent:
    """Return the event of a change in its form of a version, 1 or 2; its id is the same each time."""
    alarm = change.alarm
    is_late = now - alarm.changed_at > LATE_MS
    return CloudEvent(
        id=change.event_id,
        source=source,
        type=ALARM_TYPE_V1 if version == 1 else ALARM_TYPE,
        subject=scope,
        extensions={"late": "true"} if is_late else {},
        data=(AlarmNotice.of if version == 1 else public_alarm_change)(alarm, change.kind),
    )


def retained_alarm(topics: Topics, event: CloudEvent, alarm: Alarm) -> Message:
    """Return the retained message of an alarm; it is empty when the alarm need not be kept."""
    topic = topics.alarm(alarm.id)
    if not alarm.is_retained:
        return Message(topic, retain=True)
    return to_message(msgspec.structs.replace(event, extensions={}), topic, retain=True)


CURSOR = "actions"
_METHODS = {"pause": Cause.HOLD, "abort": Cause.ABORT}


async def follow_actions(store: Store, service: JobService, source: str) -> None:
    """Call the method that each alarm asks for, until cancelled; a call is known by the position of its change."""
    await restart_on_outage("alarm actions", functools.partial(_follow, store, service, source))


async def _follow(store: Store, service: JobService, source: str) -> None:
    async for change in alarms.follow(store, await alarms.cursor(store, CURSOR)):
        if change.action:
            await _call(store, service, source, change)
            await store.commit(alarms.save_cursor(store.keys, CURSOR, change.position))


async def _call(store: Store, service: JobService, source: str, change: AlarmChange) -> None:
    alarm, method = change.alarm, _METHODS.get(change.action)
    job = await jobs.load(store, alarm.job) if alarm.job else None
    if job is None or method is None:
        return
    text = next(iter(alarm.message.values()), alarm.rule)
    arguments = IdCall(job_order_id=job.job_id, comment=(LocalizedText(text=text),))
    call = JobCall(
        job.scope, method, arguments, f"{source}:alarms", change.position, by=Text.of(ALARM_CALLER, rule=alarm.rule)
    )
    answer = await service.call(call)
    taken = answer.status is ReturnStatus.NO_ERROR
    log = logger.info if taken else logger.warning
    log("alarm action called", job=job.job_id, method=method.value, alarm=alarm.id, reasons=answer.reasons)

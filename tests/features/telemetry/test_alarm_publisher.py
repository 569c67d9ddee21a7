"""Alarm changes are published in order, each with a stable id; kept alarms are retained."""

import json
from collections.abc import Callable
from typing import Any, ClassVar, cast

from msgspec.structs import replace

from edge.config import MqttSettings
from edge.features.telemetry.alarm_publisher import (
    CURSOR,
    LATE_MS,
    READER,
    AlarmPublisher,
    RestoreTimes,
    alarm_event,
    follow_actions,
    retained_alarm,
)
from edge.foundation.errors import Refused, Unavailable
from edge.foundation.task_group import background_task
from edge.links.mqtt import Message, MqttSession, open_session, to_event
from edge.model.isa95 import ReturnStatus
from edge.model.job_state import Cause
from edge.northbound.topics import Topics
from edge.ports.alarm import AckState, ActiveState, Alarm, AlarmChangeKind, AlarmNotice
from edge.station.job_call import CallAnswer, JobCall
from edge.store import kept_alarms as alarms
from edge.store.client import Store
from edge.store.kept_alarms import AlarmChange, StoredAlarms
from edge.store.stream_of_samples import read_counters
from tests.conftest import WaitUntil
from tests.local_broker import open_broker
from tests.station.plant import LINEAR, Clock, Plant, order

ACTIVE = Alarm(
    id="a", rule="r", subject="s", active=ActiveState.ACTIVE, acknowledgement=AckState.UNACKNOWLEDGED, changed_at=100
)
NORMAL = replace(ACTIVE, active=ActiveState.INACTIVE, acknowledgement=AckState.CONFIRMED)
RAISED, OVER = AlarmChange(ACTIVE, AlarmChangeKind.RAISED, "", "1-0"), AlarmChange(NORMAL, AlarmChangeKind.CLEARED)


async def test_changes_are_published_once_and_recorded(
    store: Store, mqtt: MqttSettings, unique: str, wait_until: WaitUntil
) -> None:
    topics = Topics(unique, "s1")
    received: list[Message] = []

    async def take(message: Message) -> None:
        received.append(message)

    async with open_session(mqtt, f"{unique}-mes") as mes, open_session(mqtt, f"{unique}-edge") as session:
        await mes.subscribe(f"{unique}/#", take)
        for _ in range(2):
            publisher = AlarmPublisher(store, session, "urn:x", topics, lambda: 100)
            async with background_task(publisher.run(), "alarms"):
                stored_alarms = await alarms.load(store)
                change = OVER if stored_alarms.alarms else RAISED
                await store.commit(alarms.save(store.keys, stored_alarms, [change]))
                await wait_until(lambda publisher=publisher: publisher.sent == 1)
        await wait_until(lambda: sum(item.topic == topics.alarms for item in received) == 2)
    events = [to_event(item) for item in received if item.topic == topics.alarms]
    assert [event.data["kind"] for event in events] == ["raised", "cleared"]
    assert len({event.id for event in events}) == 2
    kept = [bool(item.payload) for item in received if item.topic == topics.alarm("a")]
    assert [value for number, value in enumerate(kept) if value != kept[number - 1]] == [True, False]
    assert (await read_counters(store))["sent"] == 2
    assert await store.execute("XLEN", store.keys.telemetry_attempts()) == 2
    ((_, attempt),) = await store.execute("XREVRANGE", store.keys.telemetry_attempts(), "+", "-", "COUNT", 1)
    assert json.loads(attempt.pop("payload"))["kind"] == "cleared"
    assert attempt == {"alarm": "a", "channel": "mqtt", "status": "sent", "at": "100"}
    assert await alarms.cursor(store, READER) == (await alarms.newest(store, 1))[0].position
    assert await alarms.load(store) == StoredAlarms(2, {})


def test_old_change_is_marked_as_late() -> None:
    assert alarm_event("urn:x", "s1", RAISED, 100 + LATE_MS).extensions == {}
    assert alarm_event("urn:x", "s1", RAISED, 101 + LATE_MS).extensions == {"late": "true"}


def test_normal_alarm_leaves_no_retained_message() -> None:
    topics = Topics("p", "s1")
    event = alarm_event("urn:x", "s1", RAISED, 100)
    assert retained_alarm(topics, event, ACTIVE).payload
    assert retained_alarm(topics, event, NORMAL) == Message("p/s1/alarm/a", retain=True)


async def test_refused_alarm_does_not_block_other_alarms(store: Store, wait_until: WaitUntil) -> None:
    sent: list[str] = []

    class Refusing:
        connected = True
        listeners: ClassVar[list[Callable[[bool], None]]] = []

        async def send(self, message: Message) -> bool:
            if message.topic.endswith("/b"):
                raise Refused("too_large", "the broker takes less")
            sent.append(message.topic.rpartition("/")[2])
            return True

    stored_alarms = await alarms.load(store)
    changes = [AlarmChange(replace(ACTIVE, id=text), AlarmChangeKind.RAISED) for text in "abc"]
    await store.commit(alarms.save(store.keys, stored_alarms, changes))
    session = cast("MqttSession", Refusing())
    async with background_task(AlarmPublisher(store, session, "urn:x", Topics("p", "s1"), lambda: 100).run(), "alarms"):
        await wait_until(lambda: {"a", "c"} <= set(sent))


async def test_broker_that_lost_its_state_gets_the_retained_alarms_again(
    store: Store, unique: str, wait_until: WaitUntil
) -> None:
    topics = Topics(unique, "s1")
    other = replace(ACTIVE, id="b")
    retained: dict[str, bytes] = {}

    async def take(message: Message) -> None:
        retained[message.topic.rpartition("/")[2]] = message.payload

    async with open_broker() as own:
        settings = MqttSettings(url=own.url)
        async with open_session(settings, f"{unique}-edge") as session:
            publisher = AlarmPublisher(store, session, "urn:x", topics, lambda: 100, RestoreTimes(mes=0))
            async with background_task(publisher.run(), "alarms"):
                for alarm in (ACTIVE, other):
                    stored_alarms = await alarms.load(store)
                    await store.commit(
                        alarms.save(store.keys, stored_alarms, [AlarmChange(alarm, AlarmChangeKind.RAISED)])
                    )
                await wait_until(lambda: publisher.sent == 2)
                # The broker restores a state in which both alarms are active.
                await own.save()
                stored_alarms = await alarms.load(store)
                await store.commit(
                    alarms.save(
                        store.keys, stored_alarms, [AlarmChange(replace(NORMAL, id="b"), AlarmChangeKind.CLEARED)]
                    )
                )
                await wait_until(lambda: publisher.sent == 3)
                for forgets in (False, True):
                    await own.kill()
                    if forgets:
                        own.forget()
                    await own.start()
                    connections = session.connection_count
                    await wait_until(lambda before=connections: session.connected or session.connection_count > before)
                    async with open_session(settings, f"{unique}-mes-{forgets}") as mes:
                        retained.clear()
                        await mes.subscribe(f"{unique}/s1/alarm/+", take)
                        await wait_until(lambda: bool(retained.get("a")) and not retained.get("b"))


async def test_events_lost_by_a_killed_broker_are_republished(store: Store, unique: str, wait_until: WaitUntil) -> None:
    topics = Topics(unique, "s1")
    received: list[str] = []

    async def take(message: Message) -> None:
        received.append(to_event(message).id)

    async with open_broker() as own:
        settings = MqttSettings(url=own.url)
        async with open_session(settings, f"{unique}-edge") as session:
            publisher = AlarmPublisher(store, session, "urn:x", topics, lambda: 100, RestoreTimes(120, 120))
            async with background_task(publisher.run(), "alarms"):
                async with open_session(settings, f"{unique}-mes-1") as mes:
                    await mes.subscribe(topics.alarms, take)
                    await store.commit(alarms.save(store.keys, await alarms.load(store), [RAISED]))
                    await wait_until(lambda: publisher.sent == 1)
                connections = session.connection_count
                # It forgets the session of the MES, too: what is published before the MES is back is lost.
                await own.kill()
                own.forget()
                await own.start()
                await store.commit(alarms.save(store.keys, await alarms.load(store), [OVER]))
                await wait_until(lambda: session.connection_count > connections)
                received.clear()
                async with open_session(settings, f"{unique}-mes-2") as mes:
                    await mes.subscribe(topics.alarms, take)
                    await wait_until(lambda: publisher.sent == 2 and len(received) == 2)
    changes = await alarms.newest(store, 2)
    assert received == [f"alarm/{change.position}" for change in changes]


class Session:
    """A session with a broker that is there or not."""

    def __init__(self) -> None:
        self.listeners: list[Callable[[bool], None]] = []
        self.events: list[str] = []
        self.connected = True

    async def send(self, message: Message) -> bool:
        if not self.connected:
            raise Unavailable("the broker is gone")
        if message.topic == TOPICS.alarms:
            self.events.append(to_event(message).id)
        return True

    def connect(self, *, connected: bool) -> None:
        self.connected = connected
        for listener in self.listeners:
            listener(connected)


TOPICS = Topics("p", "s1")


async def test_second_outage_keeps_the_pending_republish_of_the_first(store: Store, wait_until: WaitUntil) -> None:
    """The broker was gone again before the events of the first outage were published again."""
    session, now = Session(), [0.0]
    publisher = AlarmPublisher(
        store, cast("MqttSession", session), "urn:x", TOPICS, lambda: 100, monotonic=lambda: now[0]
    )
    async with background_task(publisher.run(), "alarms"):
        await store.commit(alarms.save(store.keys, await alarms.load(store), [RAISED]))
        await wait_until(lambda: publisher.sent == 1)
        session.connect(connected=False)
        now[0] = 60.0
        session.connect(connected=False)
        session.connect(connected=True)
        await wait_until(lambda: len(session.events) == 2)
    assert len(set(session.events)) == 1


class Recorder:
    """Takes calls as the job service does."""

    def __init__(self) -> None:
        self.calls: list[JobCall] = []

    async def call(self, call: JobCall) -> CallAnswer:
        self.calls.append(call)
        return CallAnswer(ReturnStatus.NO_ERROR)


async def test_action_is_called_once_for_the_job_of_the_alarm(store: Store, wait_until: WaitUntil) -> None:
    plant, recorder = Plant(store, {}, Clock()), Recorder()
    await plant.teach("linear", LINEAR)
    await plant.order(Cause.STORE, order("J1", "linear"))
    for job, action in (("J1", "abort"), ("gone", "abort"), ("J1", ""), ("J1", "pause")):
        alarm = Alarm(id="a", rule="r", subject="s", active=ActiveState.ACTIVE, job=job, message={"en": "hot"})
        change = AlarmChange(alarm, AlarmChangeKind.RAISED, action)
        await store.commit(alarms.save(store.keys, await alarms.load(store), [change]))
    last = (await alarms.newest(store, 1))[0].position
    for _ in range(2):
        async with background_task(follow_actions(store, cast("Any", recorder), "urn:x"), "actions"):
            await wait_until(lambda: len(recorder.calls) >= 2)
            while await alarms.cursor(store, CURSOR) != last:
                await store.execute("PING")
    assert [call.method for call in recorder.calls] == [Cause.ABORT, Cause.HOLD]
    assert {str(call.by) for call in recorder.calls} == {"alarm r"}
    assert len({call.event_id for call in recorder.calls}) == 2


def test_former_alarm_event_can_be_had_by_a_setting() -> None:
    event = alarm_event("urn:x", "s1", RAISED, 100, version=1)
    assert event.type == "com.github.aschamberger.microdcs.alarm.v1"
    assert event.data == AlarmNotice.of(ACTIVE, AlarmChangeKind.RAISED)
    assert alarm_event("urn:x", "s1", RAISED, 100).type == "com.github.aschamberger.microdcs.alarm.v2"

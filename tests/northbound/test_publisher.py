"""The MES receives every change of a job, in order, across restarts of the gateway and the broker."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from edge.config import MqttSettings, RedisSettings
from edge.foundation.errors import Unavailable
from edge.foundation.instant import now_ms
from edge.foundation.task_group import background_task
from edge.links.mqtt import Message, MqttSession, keep_session, open_session, to_event
from edge.links.mqtt_broker import ANSWER_SECONDS
from edge.model.cloudevent import CloudEvent
from edge.model.event_types import JOB_ORDER_TYPE, JOB_RESPONSE_TYPE, PROGRESS_TYPE, STATUS_EVENT_TYPE
from edge.model.isa95 import IdCall, JobOrder, LocalizedText, OrderCall, WorkMaster
from edge.model.job_state import Cause
from edge.northbound.events import ProgressPublisher
from edge.northbound.publisher import MOST_CHANGES, MOST_CHANGES_PER_S, Publisher, PublisherTiming, publish_task_name
from edge.northbound.topics import Topics
from edge.station.job_call import JobCall
from edge.station.jobs import JobService
from edge.station.retention import RetentionPolicy
from edge.store import changes
from edge.store.background import Heartbeat
from edge.store.client import Store
from edge.store.open_store import open_store
from edge.store.reads import position_key
from tests.conftest import WaitUntil
from tests.local_broker import OwnBroker, open_broker
from tests.northbound.calling import SCOPE, WORK_MASTER, Station, opened_station
from tests.store.servers import relay_to

LIFETIME_S = 3600


class Listener:
    """What the MES heard: `events` by type, and what is `retained` by topic."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.events: list[CloudEvent] = []
        self.retained: dict[str, Any] = {}

    async def take(self, message: Message) -> None:
        self.messages.append(message)
        _, kind, *_ = message.topic.rsplit("/", 2)
        if kind in {"order", "result"} or message.topic.endswith("/state-index"):
            if message.payload:
                self.retained[message.topic] = to_event(message)
            else:
                self.retained.pop(message.topic, None)
        else:
            self.events.append(to_event(message))

    def states(self, job_order_id: str = "J1") -> list[list[str]]:
        """Return the states in the status events of a job."""
        return [
            [state["StateText"]["Text"] for state in event.data["JobState"]]
            for event in self.events
            if event.type == STATUS_EVENT_TYPE and event.data["JobOrder"]["JobOrderID"] == job_order_id
        ]


class Bench:
    """A station that publishes where a listener hears it."""

    def __init__(self, station: Station, session: MqttSession, topics: Topics, heard: Listener) -> None:
        self.station = station
        self.jobs = JobService(station.store, station.runs, 1000, 60_000)
        self.session = session
        self.topics = topics
        self.heard = heard
        self.lifetime_s = LIFETIME_S
        self.retry_refused_s = 0.05
        self.timing = PublisherTiming()
        self.policy = RetentionPolicy(0)
        self._calls = 0

    def publisher(self, timing: PublisherTiming | None = None) -> Publisher:
        store, timing = self.station.store, replace(timing or self.timing, retry_refused=self.retry_refused_s)
        return Publisher(
            store, self.session, "urn:edge", self.topics, self.lifetime_s, now_ms, timing=timing, policy=self.policy
        )

    async def all_events_published(self) -> None:
        """Wait until every change is out, and the index that says so."""
        newest = (await changes.latest(self.station.store, [SCOPE]))[SCOPE]
        async with asyncio.timeout(60):
            while self._index_position() != newest:
                # A test may take the connection away meanwhile.
                with contextlib.suppress(Unavailable):
                    await changes.cursors(self.station.store, [SCOPE])

    async def all_published(self) -> None:
        """Wait until every change has been published, or refused."""
        newest = await changes.latest(self.station.store, [SCOPE])
        async with asyncio.timeout(60):
            while await changes.cursors(self.station.store, [SCOPE]) != newest:
                pass

    def _index_position(self) -> str | None:
        index = self.heard.retained.get(self.topics.state_index)
        return index.extensions.get("position") if index else None

    @asynccontextmanager
    async def publishing(self, timing: PublisherTiming | None = None) -> AsyncIterator[Publisher]:
        publisher = self.publisher(timing)
        async with background_task(publisher.run(), "publisher"):
            yield publisher

    async def call(self, method: Cause, arguments: OrderCall | IdCall) -> None:
        self._calls += 1
        answer = await self.jobs.call(JobCall(SCOPE, method, arguments, "/mes", str(self._calls)))
        assert answer.reasons == ()

    async def store_and_abort(self, job_order_id: str) -> None:
        await self.call(Cause.STORE, order(job_order_id))
        await self.call(Cause.ABORT, IdCall(job_order_id=job_order_id))


def order(job_order_id: str) -> OrderCall:
    return OrderCall(job_order=JobOrder(job_order_id=job_order_id, work_master_id=(WorkMaster(id=WORK_MASTER.id),)))


@asynccontextmanager
async def opened_bench(
    store: Store, mqtt: MqttSettings, prefix: str, answer_s: float = ANSWER_SECONDS
) -> AsyncIterator[Bench]:
    topics, heard = Topics(prefix, SCOPE), Listener()
    station = await opened_station(store)
    manager = keep_session(mqtt, f"{prefix}-edge", answer_s=answer_s)
    async with manager as ours, open_session(mqtt, f"{prefix}-mes") as theirs:
        await ours.wait_connected(10.0)
        await theirs.subscribe(f"{prefix}/{SCOPE}/#", heard.take)
        yield Bench(station, ours, topics, heard)


@pytest.fixture
async def bench(store: Store, mqtt: MqttSettings, unique: str) -> AsyncIterator[Bench]:
    async with opened_bench(store, mqtt, unique) as bench:
        yield bench


async def test_each_transition_is_published_in_order_with_state_and_response(
    bench: Bench, wait_until: WaitUntil
) -> None:
    async with bench.publishing(), bench.station.at_work():
        await bench.call(Cause.STORE, order("J1"))
        await bench.call(Cause.START, IdCall(job_order_id="J1"))
        await wait_until(lambda: bench.heard.states()[-1:] == [["Running"]])
        await bench.call(Cause.PAUSE, IdCall(job_order_id="J1"))
        await bench.call(Cause.RESUME, IdCall(job_order_id="J1"))
        await bench.call(Cause.STOP, IdCall(job_order_id="J1"))
        await wait_until(lambda: bench.topics.result("J1") in bench.heard.retained and len(bench.heard.states()) == 5)
    assert bench.heard.states() == [
        ["AllowedToStart", "Ready"],
        ["Running"],
        ["Interrupted", "Suspended"],
        ["Running"],
        ["Ended", "Closed"],
    ]
    event = [event for event in bench.heard.events if event.type == STATUS_EVENT_TYPE][-1]
    assert (event.source, event.subject) == ("urn:edge", SCOPE)
    assert event.data["JobResponse"]["JobState"] == event.data["JobState"]
    assert event.data["JobResponse"]["JobOrderID"] == "J1"
    assert {event.correlationid for event in bench.heard.events if event.type == STATUS_EVENT_TYPE} == {
        event.data["JobResponse"]["JobResponseID"]
    }


async def test_order_and_result_are_retained_until_the_job_is_removed(
    bench: Bench, mqtt: MqttSettings, unique: str, wait_until: WaitUntil
) -> None:
    order_topic, result_topic = bench.topics.order("J/1"), bench.topics.result("J/1")
    retained = bench.heard.retained

    def state_of(topic: str, field: str) -> str | None:
        return retained[topic].data[field][0]["StateText"]["Text"] if topic in retained else None

    async with bench.publishing():
        await bench.store_and_abort("J/1")
        await wait_until(lambda: state_of(result_topic, "JobState") == state_of(order_topic, "State") == "Aborted")
        assert retained[order_topic].type == JOB_ORDER_TYPE
        assert retained[result_topic].type == JOB_RESPONSE_TYPE
        late = Listener()
        async with open_session(mqtt, f"{unique}-late", session_expiry=0) as session:
            await session.subscribe(f"{unique}/{SCOPE}/#", late.take)
            await wait_until(lambda: {order_topic, result_topic} <= late.retained.keys())
        await bench.call(Cause.CLEAR, IdCall(job_order_id="J/1"))
        await wait_until(lambda: not {order_topic, result_topic} & retained.keys())
    async with open_session(mqtt, f"{unique}-later", session_expiry=0) as session:
        nothing = Listener()
        await session.subscribe(f"{unique}/{SCOPE}/#", nothing.take)
        await session.publish(f"{unique}/{SCOPE}/order/end", msgspec.json.encode({}))
        end = f"{unique}/{SCOPE}/order/end"
        await wait_until(lambda: end in [message.topic for message in nothing.messages])
        assert {message.topic for message in nothing.messages} <= {end, bench.topics.state_index}


async def test_storing_and_removing_a_job_publish_no_transition(bench: Bench, wait_until: WaitUntil) -> None:
    async with bench.publishing():
        await bench.call(Cause.STORE, order("J1"))
        await bench.call(Cause.CANCEL, IdCall(job_order_id="J1"))
        await bench.store_and_abort("J2")
        await wait_until(lambda: bench.heard.states("J2"))
    assert bench.heard.states("J1") == []
    assert bench.topics.order("J1") not in bench.heard.retained
    assert bench.heard.states("J2") == [["Aborted"]]


async def test_restarted_publisher_continues_at_its_cursor(bench: Bench, wait_until: WaitUntil) -> None:
    async with bench.publishing():
        await bench.store_and_abort("J1")
        await bench.all_events_published()
    await bench.store_and_abort("J2")
    async with bench.publishing():
        await wait_until(lambda: bench.heard.states("J2"))
    assert (bench.heard.states("J1"), bench.heard.states("J2")) == ([["Aborted"]], [["Aborted"]])


async def test_an_event_that_is_reported_again_after_a_crash_has_the_same_id(
    bench: Bench, store: Store, wait_until: WaitUntil
) -> None:
    async with bench.publishing():
        await bench.store_and_abort("J1")
        await wait_until(lambda: len(bench.heard.states()) == 1)
    # As after a crash between publishing and saving the cursor.
    await store.execute("DEL", store.keys.publisher_cursors())
    async with bench.publishing():
        await wait_until(lambda: len(bench.heard.states()) == 2)
    first, again = (event for event in bench.heard.events if event.type == STATUS_EVENT_TYPE)
    assert first.id == again.id
    assert first.data == again.data


async def test_progress_of_a_recipe_is_reported(bench: Bench, wait_until: WaitUntil) -> None:
    progress = ProgressPublisher(bench.session, "urn:edge", bench.topics)
    async with background_task(progress.run(), "progress"), bench.station.at_work():
        bench.station.runs.listeners.append(progress.watch)
        await bench.call(Cause.STORE_AND_START, order("J1"))
        await wait_until(lambda: any(event.type == PROGRESS_TYPE for event in bench.heard.events))
    published = next(event.data for event in bench.heard.events if event.type == PROGRESS_TYPE)
    assert published["job_order_id"] == "J1"
    assert published["steps"] == [{"step": "Wait", "active": True}]
    assert published["commands"] == []


@pytest.fixture
async def own_broker() -> AsyncIterator[OwnBroker]:
    async with open_broker() as broker:
        yield broker


async def test_events_of_a_broker_outage_are_published_afterwards(
    own_broker: OwnBroker, store: Store, unique: str, wait_until: WaitUntil
) -> None:
    mqtt = MqttSettings(url=own_broker.url)
    async with opened_bench(store, mqtt, unique) as bench, bench.publishing():
        await bench.store_and_abort("J1")
        await wait_until(lambda: bench.heard.states("J1"))
        with capture_logs() as logs:
            await own_broker.stop()
            for number in range(2, 5):
                await bench.store_and_abort(f"J{number}")
            await wait_until(lambda: "publishing waits" in {entry["event"] for entry in logs})
            await own_broker.start()
            await wait_until(lambda: bench.heard.states("J4"))
            await wait_until(lambda: "publishing continued" in {entry["event"] for entry in logs})
    assert [bench.heard.states(f"J{number}") for number in range(2, 5)] == [[["Aborted"]]] * 3
    assert sum(entry["event"] == "publishing waits" for entry in logs) == 1


async def test_a_backlog_leaves_a_slow_mes_the_time_to_read(bench: Bench, wait_until: WaitUntil) -> None:
    """Mosquitto drops what is beyond 1,000 waiting messages of a client; 3,000 changes came within a second."""
    count = 5 * MOST_CHANGES
    for number in range(count):
        await bench.call(Cause.STORE, order(f"J{number}"))
    began = time.monotonic()
    async with bench.publishing():
        await wait_until(lambda: sum("/order/" in topic for topic in bench.heard.retained) == count)
    assert time.monotonic() - began >= (count - MOST_CHANGES) / MOST_CHANGES_PER_S


async def reads_of_server(bench: Bench) -> int:
    """Return how often the server of the store has read from a socket: about once for each round trip."""
    return int((await bench.station.store.execute("INFO", "stats"))["total_reads_processed"])


async def test_ordered_changes_of_a_scope_share_their_round_trips(bench: Bench, wait_until: WaitUntil) -> None:
    """Row 7 of the design page: 500 changes a second, in order. The commit about an end waited for the one before."""
    count = 5 * MOST_CHANGES
    for number in range(count):
        await bench.store_and_abort(f"J{number}")
    bench.policy = RetentionPolicy(0, "delivery")
    before = await reads_of_server(bench)
    async with bench.publishing():
        await wait_until(lambda: bench.heard.states(f"J{count - 1}"))
    assert await reads_of_server(bench) - before < count
    ids = [event.id for event in bench.heard.events if event.type == STATUS_EVENT_TYPE]
    assert len(ids) == count
    assert ids == sorted(ids, key=lambda text: position_key(text.rpartition("/")[2]))


async def test_returning_publisher_republishes_only_the_index(
    bench: Bench,
) -> None:
    first, second = bench.publisher(), bench.publisher()
    for number, publisher in enumerate((first, second, first)):
        async with background_task(publisher.run(), "publisher"):
            await bench.store_and_abort(f"J{number}")
            await bench.all_events_published()
    assert [bench.heard.states(f"J{number}") for number in range(3)] == [[["Aborted"]]] * 3
    published = [bench.heard.retained[bench.topics.state_index].data]
    assert "J0" in str(published)
    assert "J1" in str(published)


async def test_stalled_publisher_of_one_scope_is_reported(bench: Bench, wait_until: WaitUntil) -> None:
    beats = bench.station.store.heartbeat = Heartbeat(patience_s=0.2)
    beats.expect([publish_task_name(SCOPE), publish_task_name("station-2")])

    async def hang() -> None:
        beats.beat()
        await asyncio.Event().wait()

    async with bench.publishing(), background_task(hang(), publish_task_name("station-2")):
        await wait_until(lambda: publish_task_name("station-2") in beats.stalled())


async def test_too_large_job_does_not_block_other_jobs(store: Store, unique: str, wait_until: WaitUntil) -> None:
    async with (
        open_broker("max_packet_size 4000") as broker,
        opened_bench(store, MqttSettings(url=broker.url), unique) as bench,
        bench.publishing(),
    ):
        large = order("large")
        described = msgspec.structs.replace(large.job_order, description=(LocalizedText(text="x" * 8000),))
        await bench.call(Cause.STORE, msgspec.structs.replace(large, job_order=described))
        await bench.call(Cause.ABORT, IdCall(job_order_id="large"))
        await bench.store_and_abort("small")
        await wait_until(lambda: bench.heard.states("small"))
        await wait_until(lambda: bench.topics.state_index in bench.heard.retained)
    assert bench.heard.states("large") == []


async def test_unreadable_job_does_not_block_events_of_others(bench: Bench, store: Store) -> None:
    await bench.call(Cause.STORE, order("J1"))
    await store.execute("HSET", store.keys.joborder("J1"), "order", "{")
    await bench.store_and_abort("J2")
    publisher = bench.publisher()
    async with background_task(publisher.run(), "publisher"):
        await bench.all_events_published()
    assert bench.topics.result("J2") in bench.heard.retained
    assert bench.heard.states("J2") == [["Aborted"]]


async def test_change_is_in_the_index_when_the_cursor_reply_is_lost(
    redis: RedisSettings, mqtt: MqttSettings, unique: str, tmp_path: Path
) -> None:
    """It is published and saved: no change follows that would publish a new index."""
    async with (
        relay_to(tmp_path, redis.url) as relay,
        open_store(msgspec.structs.replace(redis, url=relay.url), "edge") as store,
        opened_bench(store, mqtt, unique) as bench,
        bench.publishing(PublisherTiming(retry=0.05)),
    ):
        await bench.store_and_abort("J1")
        await bench.all_events_published()
        lost: list[bytes] = []

        async def lose_once(request: bytes) -> bool:
            if lost or b"EVALSHA" not in request or store.keys.publisher_cursors().encode() not in request:
                return True
            lost.append(request)
            return False

        relay.deliver = lose_once
        await bench.call(Cause.STORE, order("J2"))
        await bench.all_events_published()
        assert lost
    assert "J2" in str(bench.heard.retained[bench.topics.state_index].data)


async def test_broker_loss_during_renewal_restarts_the_renewal(
    own_broker: OwnBroker, store: Store, unique: str, wait_until: WaitUntil
) -> None:
    async with opened_bench(store, MqttSettings(url=own_broker.url), unique) as bench:
        topics = [bench.topics.order(f"J{number}") for number in range(60)]
        for number in range(60):
            await bench.call(Cause.STORE, order(f"J{number}"))
        # The changes do not go back far enough for a broker that has nothing.
        await store.execute("XTRIM", store.keys.joborder_changes(SCOPE), "MAXLEN", 1)
        async with bench.publishing() as publisher:
            await wait_until(lambda: bench.heard.retained)
            async with publisher.exclusive():
                assert not set(topics) <= bench.heard.retained.keys()
                await own_broker.stop()
                own_broker.forget()
                bench.heard.retained.clear()
                await own_broker.start()
                await wait_until(lambda: bench.session.connection_count == 2 and bench.session.connected)
                await bench.call(Cause.STORE, order("new"))
            await bench.all_events_published()
            await wait_until(lambda: set(topics) <= bench.heard.retained.keys())

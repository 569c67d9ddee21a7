"""A returning MES reads the complete state from the retained topics, after any broker failure."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from edge.config import MqttSettings
from edge.foundation.task_group import background_task
from edge.links.mqtt import Message, open_session, to_event
from edge.model.cloudevent import CloudEvent
from edge.model.isa95 import IdCall
from edge.model.job_message import StateIndex
from edge.model.job_state import Cause
from edge.northbound.publisher import PublisherTiming
from edge.northbound.retained_topics import DueTopics, IndexState, RepublishPlan, plan_republish
from edge.store.background import Heartbeat
from edge.store.client import Store
from tests.conftest import WaitUntil
from tests.local_broker import OwnBroker, open_broker
from tests.northbound.calling import SCOPE
from tests.northbound.test_publisher import LIFETIME_S, Bench, Listener, opened_bench, order
from tests.store.beat_clock import BeatClock


class Mes:
    """Reads only what is retained: what it would know if it had been away until now."""

    def __init__(self) -> None:
        self.indexes: list[StateIndex] = []
        self.found: dict[str, CloudEvent] = {}
        self.expiries: dict[str, int | None] = {}
        self.messages: list[Message] = []

    async def take(self, message: Message) -> None:
        self.messages.append(message)
        name = message.topic.partition(f"/{SCOPE}/")[2]
        if not message.payload:
            self.found.pop(name, None)
            return
        event = to_event(message)
        self.expiries[name] = message.expiry
        if name == "state-index":
            self.indexes.append(msgspec.convert(event.data, StateIndex))
        elif name.partition("/")[0] in {"order", "result"}:
            self.found[name] = event

    @property
    def jobs(self) -> dict[str, str]:
        """The state of each job by the newest index."""
        newest = self.indexes[-1].jobs if self.indexes else ()
        return {
            state_index_entry.job_order_id: state_index_entry.state[0].state_text.text for state_index_entry in newest
        }

    def whole(self) -> bool:
        """Return whether every topic is there that the newest index promises, and no other."""
        promised = {f"order/{job.job_order_id}" for job in self.indexes[-1].jobs} if self.indexes else set()
        for entry in self.indexes[-1].jobs if self.indexes else ():
            promised |= {f"result/{entry.job_order_id}"} if entry.has_result else set()
        return bool(self.indexes) and promised == self.found.keys()


@asynccontextmanager
async def returned(mqtt: MqttSettings, unique: str) -> AsyncIterator[Mes]:
    """Open the session of a MES that has lost all it knew."""
    mes = Mes()
    async with open_session(mqtt, f"{unique}-returned-{time.monotonic_ns()}", session_expiry=0) as session:
        await session.subscribe(f"{unique}/{SCOPE}/#", mes.take)
        yield mes


@pytest.fixture
async def bench(store: Store, mqtt: MqttSettings, unique: str) -> AsyncIterator[Bench]:
    async with opened_bench(store, mqtt, unique) as bench:
        yield bench


async def test_index_contains_the_state_of_every_job(
    bench: Bench, mqtt: MqttSettings, unique: str, wait_until: WaitUntil
) -> None:
    async with returned(mqtt, unique) as mes, bench.publishing():
        await bench.call(Cause.STORE, order("J1"))
        await bench.store_and_abort("J2")
        await wait_until(lambda: mes.jobs == {"J1": "NotAllowedToStart", "J2": "Aborted"})
        await bench.call(Cause.CLEAR, IdCall(job_order_id="J2"))
        await wait_until(lambda: mes.jobs == {"J1": "NotAllowedToStart"})
        assert mes.whole()
    numbers = [index.seq for index in mes.indexes]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert {index.scope for index in mes.indexes} == {SCOPE}


async def test_many_changes_make_few_indexes_without_reading_all_jobs(
    bench: Bench, mqtt: MqttSettings, unique: str, store: Store, wait_until: WaitUntil
) -> None:
    for number in range(300):
        await bench.call(Cause.STORE, order(f"old-{number}"))
    async with returned(mqtt, unique) as mes, bench.publishing():
        await bench.all_events_published()
        assert len(mes.jobs) == 300
        before, reads = len(mes.indexes), await calls_of(store, "hgetall", "hmget")
        began = time.monotonic()
        for number in range(40):
            await bench.call(Cause.STORE, order(f"new-{number}"))
        await wait_until(lambda: len(mes.jobs) == 340)
        took = time.monotonic() - began
        assert len(mes.indexes) - before <= took * 20 + 2
        # One to store it, one to publish it.
        assert await calls_of(store, "hgetall", "hmget") - reads <= 3 * 40


async def calls_of(store: Store, *commands: str) -> int:
    stats = await store.execute("INFO", "commandstats")
    text = stats if isinstance(stats, dict) else {}
    found = (text.get(f"cmdstat_{command}", "calls=0,") for command in commands)
    return sum(int(value.removeprefix("calls=").partition(",")[0]) for value in found)


async def test_result_is_published_once_the_job_has_ended(
    bench: Bench, mqtt: MqttSettings, unique: str, wait_until: WaitUntil
) -> None:
    async with returned(mqtt, unique) as mes, bench.publishing(), bench.station.at_work():
        await bench.call(Cause.STORE_AND_START, order("J1"))
        await wait_until(lambda: mes.jobs == {"J1": "Running"})
        assert mes.found.keys() == {"order/J1"}
        await bench.call(Cause.STOP, IdCall(job_order_id="J1"))
        await wait_until(lambda: mes.jobs == {"J1": "Ended"})
        assert mes.found.keys() == {"order/J1", "result/J1"}


async def test_retained_topics_expire_after_their_lifetime(
    bench: Bench, mqtt: MqttSettings, unique: str, wait_until: WaitUntil
) -> None:
    async with bench.publishing():
        await bench.store_and_abort("J1")
        await wait_until(lambda: bench.heard.states("J1"))
        async with returned(mqtt, unique) as mes:
            await wait_until(lambda: mes.indexes and mes.whole())
    assert {name: LIFETIME_S - 60 < (expiry or 0) <= LIFETIME_S for name, expiry in mes.expiries.items()} == {
        "state-index": True,
        "order/J1": True,
        "result/J1": True,
    }


async def test_topics_are_published_again_before_they_expire(bench: Bench, wait_until: WaitUntil) -> None:
    bench.lifetime_s = 2
    topic = bench.topics.order("J1")
    async with bench.publishing():
        await bench.call(Cause.STORE, order("J1"))
        await wait_until(lambda: sum(message.topic == topic for message in bench.heard.messages) >= 3)


async def test_topics_are_renewed_before_they_expire_under_load(bench: Bench) -> None:
    bench.lifetime_s = 2
    topic = bench.topics.order("waits")
    async with bench.publishing():
        await bench.call(Cause.STORE, order("waits"))
        async with asyncio.timeout(60):
            while sum(message.topic == topic for message in bench.heard.messages) < 2:
                await bench.call(Cause.STORE, order("busy"))
                await bench.call(Cause.CANCEL, IdCall(job_order_id="busy"))


@pytest.fixture
async def own_broker() -> AsyncIterator[OwnBroker]:
    async with open_broker() as broker:
        yield broker


@pytest.mark.parametrize("then", ["remembers", "forgets"])
async def test_retained_topics_are_complete_after_an_outage_of_the_broker(
    own_broker: OwnBroker, store: Store, unique: str, wait_until: WaitUntil, then: str
) -> None:
    mqtt = MqttSettings(url=own_broker.url)
    async with opened_bench(store, mqtt, unique) as bench, bench.publishing():
        for number in range(4):
            await bench.store_and_abort(f"J{number}")
        await bench.call(Cause.STORE, order("J9"))
        await wait_until(lambda: bench.topics.order("J9") in bench.heard.retained)
        await own_broker.stop()
        if then == "forgets":
            own_broker.forget()
        await bench.call(Cause.CLEAR, IdCall(job_order_id="J0"))
        await bench.store_and_abort("J4")
        await own_broker.start()
        expected = {"J1": "Aborted", "J2": "Aborted", "J3": "Aborted", "J4": "Aborted", "J9": "NotAllowedToStart"}
        async with returned(mqtt, unique) as mes:
            await wait_until(lambda: mes.jobs == expected and mes.whole())


async def test_events_lost_by_a_killed_broker_are_republished_in_order(
    own_broker: OwnBroker, store: Store, unique: str, wait_until: WaitUntil
) -> None:
    mqtt, heard = MqttSettings(url=own_broker.url), Listener()
    async with opened_bench(store, mqtt, unique) as bench, bench.publishing():
        async with open_session(mqtt, f"{unique}-away") as away:
            await away.subscribe(bench.topics.events, heard.take)
            await bench.store_and_abort("J1")
            await wait_until(lambda: heard.states("J1") and index_of(bench) == {"J1"})
        await own_broker.stop()
        await own_broker.start()
        await bench.store_and_abort("J2")
        await bench.store_and_abort("J3")
        await wait_until(lambda: bench.heard.states("J3"))
        # It stored all at its stop, and nothing since.
        await own_broker.kill()
        await own_broker.start()
        await bench.store_and_abort("J4")
        async with open_session(mqtt, f"{unique}-away") as away:
            await away.subscribe(bench.topics.events, heard.take)
            await wait_until(lambda: heard.states("J4"))
    published = dict.fromkeys(event.data["JobOrder"]["JobOrderID"] for event in heard.events)
    assert list(published) == ["J1", "J2", "J3", "J4"]


async def test_event_published_after_the_last_index_is_republished(
    own_broker: OwnBroker, store: Store, unique: str, wait_until: WaitUntil
) -> None:
    """The broker comes back with the newest index there is, and has forgotten what it took after that."""
    mqtt = MqttSettings(url=own_broker.url)
    async with opened_bench(store, mqtt, unique) as bench:
        async with bench.publishing():
            await bench.store_and_abort("J0")
            await bench.all_events_published()
        async with bench.publishing(PublisherTiming(index=3600.0)):
            await wait_until(lambda: bench.topics.state_index in bench.heard.retained)
            await own_broker.save()
            await bench.store_and_abort("J1")
            await bench.all_published()
        assert index_of(bench) == {"J0"}
        await own_broker.kill()
        bench.heard.events.clear()
        bench.heard.messages.clear()
        await own_broker.start()
        async with bench.publishing(), returned(mqtt, unique) as mes:
            await wait_until(lambda: bench.heard.states("J1"))
            await wait_until(lambda: mes.jobs == {"J0": "Aborted", "J1": "Aborted"} and mes.whole())
        # To publish all jobs would flood the MES: its broker drops what it cannot take.
        assert bench.topics.order("J0") not in {message.topic for message in bench.heard.messages}


async def test_broker_with_an_older_index_gets_all_topics_again(
    bench: Bench, mqtt: MqttSettings, unique: str, wait_until: WaitUntil
) -> None:
    """As a broker does that was killed, and came back with what it had written to its disk some time before."""
    async with bench.publishing():
        await bench.store_and_abort("J1")
        await wait_until(lambda: bench.topics.state_index in bench.heard.retained and bench.heard.states("J1"))
    old = to_event(next(message for message in bench.heard.messages if message.topic == bench.topics.state_index))
    await bench.session.publish(bench.topics.order("J1"), retain=True)
    index = msgspec.structs.replace(msgspec.convert(old.data, StateIndex), seq=0)
    await bench.session.publish(
        bench.topics.state_index,
        msgspec.json.encode(index),
        retain=True,
        content_type="application/json",
        user_properties={"id": "1", "source": "urn:edge", "type": old.type, "specversion": "1.0"},
    )
    async with bench.publishing(), returned(mqtt, unique) as mes:
        await wait_until(lambda: mes.jobs == {"J1": "Aborted"} and mes.whole())


async def test_broker_with_the_last_index_gets_only_changed_topics(bench: Bench) -> None:
    async with bench.publishing():
        await bench.store_and_abort("J1")
        await bench.all_events_published()
    count = len(bench.heard.messages)
    async with bench.publishing():
        await bench.call(Cause.STORE, order("J2"))
        # A first index may name J2 already: its states are read at the start, before the change is published.
        await bench.all_events_published()
    assert index_of(bench) == {"J1", "J2"}
    again = {message.topic for message in bench.heard.messages[count:]}
    assert again == {bench.topics.state_index, bench.topics.order("J2")}


def index_of(bench: Bench) -> set[str]:
    newest = bench.heard.retained.get(bench.topics.state_index)
    return {job["job_order_id"] for job in newest.data["jobs"]} if newest and "jobs" in newest.data else set()


async def test_topics_of_jobs_whose_removal_was_missed_are_emptied(
    bench: Bench, store: Store, mqtt: MqttSettings, unique: str, wait_until: WaitUntil
) -> None:
    async with bench.publishing():
        await bench.store_and_abort("J1")
        await bench.store_and_abort("J2")
        await wait_until(lambda: index_of(bench) == {"J1", "J2"} and bench.heard.states("J2"))
    await bench.call(Cause.CLEAR, IdCall(job_order_id="J1"))
    await bench.call(Cause.STORE, order("J3"))
    await bench.call(Cause.STORE, order("J4"))
    # More happened than the stream holds.
    await store.execute("XTRIM", store.keys.joborder_changes(SCOPE), "MAXLEN", 1)
    async with bench.publishing():
        expected = {"J2": "Aborted", "J3": "NotAllowedToStart", "J4": "NotAllowedToStart"}
        async with returned(mqtt, unique) as mes:
            await wait_until(lambda: mes.jobs == expected and mes.whole())


@pytest.mark.parametrize("payload", [b"{}", b"[1]", b"not even json"])
async def test_invalid_index_is_overwritten(bench: Bench, payload: bytes, wait_until: WaitUntil) -> None:
    properties = {"id": "1", "source": "/x", "type": "x", "specversion": "1.0"}
    await bench.session.publish(bench.topics.state_index, payload, retain=True, user_properties=properties)
    async with bench.publishing():
        await bench.call(Cause.STORE, order("J1"))
        await wait_until(lambda: index_of(bench) == {"J1"})


@pytest.mark.parametrize("position", [f"0-{'9' * 23}", "1_0-0", "٣-0"])
async def test_foreign_index_with_invalid_position_is_overwritten(
    bench: Bench, position: str, wait_until: WaitUntil
) -> None:
    async with bench.publishing():
        await bench.call(Cause.STORE, order("J1"))
        await wait_until(lambda: index_of(bench) == {"J1"})
    properties = {"id": "1", "source": "/x", "type": "x", "specversion": "1.0", "position": position}
    payload = b'{"seq": 1, "scope": "s", "published_at": "2026-01-01T00:00:00Z", "jobs": []}'
    await bench.session.publish(bench.topics.state_index, payload, retain=True, user_properties=properties)
    async with bench.publishing():
        await bench.call(Cause.STORE, order("J2"))
        await wait_until(lambda: index_of(bench) == {"J1", "J2"})


async def test_index_waits_until_all_jobs_are_read(bench: Bench, wait_until: WaitUntil) -> None:
    async with bench.publishing():
        await bench.call(Cause.STORE, order("J1"))
        await bench.all_events_published()
    for topic in (bench.topics.order("J1"), bench.topics.state_index):
        await bench.session.publish(topic, retain=True)
    await wait_until(lambda: bench.heard.retained.keys() == set())
    keeper = bench.publisher()
    async with background_task(keeper.keep_retained(), "retained"):
        bench.session.listeners[-1](True)
        await wait_until(lambda: bench.topics.order("J1") in bench.heard.retained)
        await keeper.load()
        await wait_until(lambda: bench.topics.state_index in bench.heard.retained)


async def test_publisher_waiting_for_a_long_republish_is_not_stalled(bench: Bench, store: Store) -> None:
    clock = BeatClock()
    store.heartbeat = Heartbeat(patience_s=25, clock=clock)
    store.heartbeat.expect(["publish changes"])

    keeper = bench.publisher(PublisherTiming(heartbeat=0.01))
    had_its_turn = asyncio.Event()

    async def publish() -> None:
        store.heartbeat.beat()
        async with keeper.exclusive():
            had_its_turn.set()

    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        async with keeper.exclusive():
            tasks.create_task(publish(), name="publish changes")
            for _ in range(3):
                await clock.advance(20)
                assert store.heartbeat.stalled() == []
            assert not had_its_turn.is_set()
        await had_its_turn.wait()


async def test_unreadable_job_does_not_block_other_topics(bench: Bench, store: Store, wait_until: WaitUntil) -> None:
    async with bench.publishing():
        for job_id in ("J1", "J2"):
            await bench.call(Cause.STORE, order(job_id))
        await wait_until(lambda: bench.topics.order("J2") in bench.heard.retained)
    await store.execute("HSET", store.keys.joborder("J1"), "order", "{")
    await bench.session.publish(bench.topics.order("J2"), retain=True)
    await bench.session.publish(bench.topics.state_index, retain=True)
    await wait_until(lambda: bench.topics.order("J2") not in bench.heard.retained)
    async with bench.publishing():
        await wait_until(lambda: bench.topics.order("J2") in bench.heard.retained)


NOTHING, ALL, CHANGED = DueTopics.NONE, DueTopics.ALL, DueTopics.CHANGED


@pytest.mark.parametrize(
    ("broker", "ours", "has_gap", "topics", "index"),
    [
        pytest.param((7, "9-0"), (7, "9-0"), False, NOTHING, False, id="lost nothing"),
        pytest.param((6, "5-0"), (7, "9-0"), False, CHANGED, True, id="older index"),
        pytest.param((7, "5-0"), (7, "9-0"), False, CHANGED, True, id="changes after the last index"),
        pytest.param((0, "0-0"), (7, "9-0"), False, CHANGED, True, id="lost all, the stream covers it"),
        pytest.param((0, "0-0"), (7, "9-0"), True, ALL, True, id="lost all, the stream is trimmed"),
        pytest.param((6, "5-0"), (7, "9-0"), True, ALL, True, id="older than the stream"),
        pytest.param((8, "9-0"), (7, "9-0"), False, ALL, True, id="index of another store"),
        pytest.param((0, "0-0"), (0, "0-0"), False, NOTHING, False, id="first start"),
    ],
)
def test_only_topics_lost_by_the_broker_are_republished(
    broker: tuple[int, str], ours: tuple[int, str], *, has_gap: bool, topics: DueTopics, index: bool
) -> None:
    plan = plan_republish(IndexState(*broker), IndexState(*ours), has_gap=has_gap)
    assert plan == RepublishPlan(broker[1], topics, index=index)


def test_index_of_another_generation_republishes_all_topics() -> None:
    """A new primary may lack the last changes: a job stands where it stood before."""
    plan = plan_republish(IndexState(7, "9-0", "first"), IndexState(7, "9-0", "second"), has_gap=False)
    assert plan == RepublishPlan("9-0", ALL, index=True)

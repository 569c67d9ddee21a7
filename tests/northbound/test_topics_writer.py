"""A refused topic blocks no other, and is published once the access rules allow it."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from structlog.testing import capture_logs

from edge.config import MqttSettings, RedisSettings
from edge.foundation.task_group import background_task
from edge.northbound.publisher import PublisherTiming
from edge.store.client import Store
from edge.store.open_store import open_store
from tests.conftest import WaitUntil
from tests.local_broker import open_broker
from tests.northbound.access_rules import allowing, refusing_subscriptions
from tests.northbound.test_publisher import Bench, opened_bench
from tests.store.servers import relay_to, until_served


@asynccontextmanager
async def forbidding(
    store: Store, directory: Path, unique: str, *topics: str
) -> AsyncIterator[tuple[Bench, Callable[[], None]]]:
    """Open a bench at a broker that refuses some topics, and yield what ends that."""
    rules = directory / "acl"
    rules.write_text("".join(("topic readwrite #\n", *(f"topic deny {topic}\n" for topic in topics))))
    rules.chmod(0o600)
    async with open_broker(f"acl_file {rules}") as broker:

        def allow() -> None:
            rules.write_text("topic readwrite #\n")
            broker.reload()

        async with opened_bench(store, MqttSettings(url=broker.url), unique) as bench:
            yield bench, allow


async def test_refused_events_block_no_topic_and_are_retried_in_order(
    store: Store, tmp_path: Path, unique: str, wait_until: WaitUntil
) -> None:
    async with forbidding(store, tmp_path, unique, f"{unique}/+/events") as (bench, allow):
        with capture_logs() as logs:
            async with bench.publishing() as publisher:
                await bench.store_and_abort("J1")
                await bench.store_and_abort("J2")
                await wait_until(lambda: bench.topics.result("J2") in bench.heard.retained)
                await wait_until(lambda: publisher.refused() == [bench.topics.events])
                allow()
                await wait_until(lambda: bench.heard.states("J2"))
                await wait_until(lambda: not publisher.refused())
                await bench.store_and_abort("J3")
                await wait_until(lambda: bench.heard.states("J3"))
    published = [event.data["JobOrder"]["JobOrderID"] for event in bench.heard.events]
    assert published == ["J1", "J2", "J3"]
    assert [entry["topic"] for entry in logs if entry["event"] == "refused topic"] == [bench.topics.events]


async def test_refused_events_are_published_after_a_restart(
    store: Store, tmp_path: Path, unique: str, wait_until: WaitUntil
) -> None:
    async with forbidding(store, tmp_path, unique, f"{unique}/+/events") as (bench, allow):
        bench.retry_refused_s = 3600
        async with bench.publishing():
            await bench.store_and_abort("J1")
            await wait_until(lambda: "Aborted" in str(bench.heard.retained.get(bench.topics.state_index)))
        allow()
        async with bench.publishing():
            await wait_until(lambda: bench.heard.states("J1"))


async def test_next_publisher_publishes_events_refused_to_the_previous_one(
    store: Store, tmp_path: Path, unique: str, wait_until: WaitUntil
) -> None:
    """It had looked at this connection of the broker before, and so did not see what the other had left."""
    async with forbidding(store, tmp_path, unique, f"{unique}/+/events") as (bench, allow):
        bench.retry_refused_s = 3600
        ours, other = bench.publisher(), bench.publisher()
        for number, publisher in enumerate((ours, other)):
            async with background_task(publisher.run(), "publisher"):
                await bench.store_and_abort(f"J{number}")
                await bench.all_published()
        allow()
        async with background_task(ours.run(), "publisher"):
            await wait_until(lambda: bench.heard.states("J1"))


async def test_refused_events_survive_a_silent_broker(
    store: Store, tmp_path: Path, unique: str, wait_until: WaitUntil
) -> None:
    """Its connection stays, so its index is not checked again: waiting events must continue waiting."""
    rules = allowing(tmp_path, "readwrite #", f"deny {unique}/+/events")
    async with (
        open_broker(rules) as broker,
        opened_bench(store, MqttSettings(url=broker.url), unique, answer_s=1.0) as bench,
        bench.publishing() as publisher,
    ):
        await bench.store_and_abort("J1")
        await bench.store_and_abort("J2")
        await bench.all_published()
        await wait_until(lambda: publisher.refused() == [bench.topics.events])
        with capture_logs() as logs:
            broker.freeze()
            await wait_until(lambda: "refused topics wait" in {entry["event"] for entry in logs})
        allowing(tmp_path, "readwrite #")
        broker.reload()
        broker.thaw()
        await bench.store_and_abort("J3")
        await wait_until(lambda: bench.heard.states("J3"))
        assert bench.session.connection_count == 1
    assert list(dict.fromkeys(published_jobs(bench))) == ["J1", "J2", "J3"]


async def test_refused_events_survive_a_store_outage(
    redis: RedisSettings, tmp_path: Path, unique: str, wait_until: WaitUntil
) -> None:
    async with (
        relay_to(tmp_path, redis.url) as relay,
        open_store(msgspec.structs.replace(redis, url=relay.url), "edge") as store,
        forbidding(store, tmp_path, unique, f"{unique}/+/events") as (bench, allow),
        bench.publishing() as publisher,
    ):
        await bench.store_and_abort("J1")
        await bench.store_and_abort("J2")
        await bench.all_published()
        await wait_until(lambda: publisher.refused() == [bench.topics.events])
        lost: list[bytes] = []

        async def lose_once(request: bytes) -> bool:
            if lost or store.keys.joborder("J2").encode() not in request:
                return True
            lost.append(request)
            return False

        relay.deliver = lose_once
        allow()
        await wait_until(lambda: lost)
        await until_served(store)
        await bench.store_and_abort("J3")
        await wait_until(lambda: bench.heard.states("J3"))
    assert list(dict.fromkeys(published_jobs(bench))) == ["J1", "J2", "J3"]


@pytest.mark.parametrize("kind", ["order/#", "result/#", "state-index"])
async def test_refused_retained_topics_block_no_others_and_are_retried(
    store: Store, tmp_path: Path, unique: str, wait_until: WaitUntil, kind: str
) -> None:
    async with forbidding(store, tmp_path, unique, f"{unique}/+/{kind}") as (bench, allow), bench.publishing():
        every = {item(job) for item in (bench.topics.order, bench.topics.result) for job in ("J1", "J2")}
        every.add(bench.topics.state_index)
        await bench.store_and_abort("J1")
        await bench.store_and_abort("J2")
        await wait_until(lambda: bench.heard.states("J2"))
        await wait_until(lambda: {text for text in every if kind.rstrip("#") not in text} == set(bench.heard.retained))
        allow()
        await wait_until(lambda: every == set(bench.heard.retained))


_BUT_INDEX = ("events", "order/#", "result/#")


QUICK = PublisherTiming(read=0.2, echo=0.3)


def published_jobs(bench: Bench) -> list[str]:
    return [event.data["JobOrder"]["JobOrderID"] for event in bench.heard.events]


@pytest.mark.parametrize("way", ["passes it over", "refuses the subscription"])
async def test_unreadable_index_does_not_count_as_total_loss(
    store: Store, tmp_path: Path, unique: str, wait_until: WaitUntil, way: str
) -> None:
    index = f"{unique}/+/state-index"
    if way == "passes it over":
        rules = [allowing(tmp_path, *(f"readwrite {unique}/+/{text}" for text in _BUT_INDEX), f"write {index}")]
    else:
        rules = [*refusing_subscriptions(tmp_path, index)]
    async with (
        open_broker(*rules) as broker,
        opened_bench(store, MqttSettings(url=broker.url), unique) as bench,
    ):
        async with bench.publishing(QUICK):
            await bench.store_and_abort("J1")
            await wait_until(lambda: bench.heard.states("J1"))
            await bench.all_published()
        published = len(bench.heard.messages)
        with capture_logs() as logs:
            for job_id in ("J2", "J3"):
                async with bench.publishing(QUICK) as publisher:
                    await bench.store_and_abort(job_id)
                    await wait_until(lambda job_id=job_id: bench.heard.states(job_id))
                    await bench.all_published()
                    assert publisher.refused() == [f"{bench.topics.state_index} (read)"]
    assert published_jobs(bench) == ["J1", "J2", "J3"]
    assert bench.topics.order("J1") not in {message.topic for message in bench.heard.messages[published:]}
    refusals = [entry for entry in logs if entry["event"] == "refused topic"]
    assert [refusal["topic"] for refusal in refusals] == [f"{bench.topics.state_index} (read)"] * 2
    assert "access rules" in refusals[0]["advice"]


async def test_readable_index_is_checked_without_a_new_connection(
    store: Store, tmp_path: Path, unique: str, wait_until: WaitUntil
) -> None:
    rules = allowing(
        tmp_path, *(f"readwrite {unique}/+/{text}" for text in _BUT_INDEX), f"write {unique}/+/state-index"
    )
    async with open_broker(rules) as broker, opened_bench(store, MqttSettings(url=broker.url), unique) as bench:
        async with bench.publishing(QUICK):
            await bench.store_and_abort("J1")
            await bench.all_published()
        async with bench.publishing(QUICK) as publisher:
            await wait_until(publisher.refused)
            allowing(tmp_path, "readwrite #")
            broker.reload()
            await wait_until(lambda: not publisher.refused())
            await bench.store_and_abort("J2")
            await wait_until(lambda: bench.heard.states("J2"))
    assert published_jobs(bench) == ["J1", "J2"]


async def test_refused_events_survive_a_restart_with_unreadable_index(
    store: Store, tmp_path: Path, unique: str, wait_until: WaitUntil
) -> None:
    most = [f"readwrite {unique}/+/{text}" for text in ("order/#", "result/#")]
    most += [f"write {unique}/+/state-index", f"read {unique}/+/events"]
    rules = allowing(tmp_path, *most)
    async with open_broker(rules) as broker, opened_bench(store, MqttSettings(url=broker.url), unique) as bench:
        bench.retry_refused_s = 3600
        async with bench.publishing(QUICK) as publisher:
            await bench.store_and_abort("J1")
            await bench.store_and_abort("J2")
            await bench.all_published()
            assert publisher.refused() == [bench.topics.events]
        allowing(tmp_path, *most, f"write {unique}/+/events")
        broker.reload()
        async with bench.publishing(QUICK) as publisher:
            await wait_until(lambda: bench.heard.states("J2"))
            assert publisher.refused() == [f"{bench.topics.state_index} (read)"]
    assert published_jobs(bench) == ["J1", "J2"]

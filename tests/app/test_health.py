"""The status line shows the health of the gateway, faults first."""

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

import msgspec
import structlog

from edge.app.health import Health
from edge.config import MqttSettings, RedisSettings
from edge.foundation.clock_sync import Clock
from edge.foundation.errors import SettingsError, Unavailable
from edge.foundation.instant import now_ms
from edge.foundation.text import Text
from edge.links.mqtt import Message, open_session
from edge.model.finding import HealthFinding, failing, ok, warning
from edge.model.job_state import Cause
from edge.station.active_runs import ActiveRuns
from edge.station.equipment_watch import EquipmentWatch, WatchedEquipment
from edge.store import dedupe, ended_jobs
from edge.store.background import Heartbeat
from edge.store.bounds import CountLimits
from edge.store.client import HighAvailability, Store
from edge.store.connection import CommandConnection, Endpoint
from edge.store.dedupe import MarkCounter
from edge.store.fence import Fence
from edge.store.generation import GenerationCheck
from edge.store.open_store import open_store
from edge.store.replication import Replication
from edge.store.sentinels import Primary, SentinelAddress, Sentinels
from edge.store.server_check import ServerState, read_state
from tests.conftest import WaitUntil
from tests.local_broker import open_broker
from tests.northbound.access_rules import refusing_subscriptions
from tests.station.plant import LINEAR, SCOPE, TIGHTEN, FakeEquipment, Plant, order
from tests.store.servers import own_server


def health_of(
    store: Store,
    *equipment: FakeEquipment,
    certificates: Callable[[], Iterable[HealthFinding]] = tuple,
    clock: Clock = Clock.SYNCHRONISED,
    read_state: Callable[[Store, CountLimits, MarkCounter], Awaitable[ServerState]] = read_state,
) -> Health:
    plant = Plant(store, {}, now_ms)
    active_runs = ActiveRuns(plant.runs, (SCOPE,))
    watch = EquipmentWatch(store, active_runs, now_ms)
    watch.watched += [WatchedEquipment(fake_equipment, "fake", (), plant.answers.stats) for fake_equipment in equipment]
    return Health(store, active_runs, watch, certificates, lambda: clock, 0.01, read_state=read_state)


async def test_status_of_a_healthy_gateway_shows_jobs_and_store_size(store: Store) -> None:
    plant = Plant(store, {TIGHTEN: FakeEquipment()}, now_ms)
    active_runs = ActiveRuns(plant.runs, (SCOPE,))
    looking = Health(store, active_runs, EquipmentWatch(store, active_runs, now_ms), clock=lambda: Clock.SYNCHRONISED)
    assert re.fullmatch(r"0 jobs at work; store holds \d+ MiB", await looking.check())
    await plant.teach("linear", LINEAR)
    await plant.order(Cause.STORE_AND_START, order("J1"))
    await plant.drive()
    assert (await looking.check()).startswith("1 job at work; ")


async def test_unavailable_broker_is_named_by_the_sessions_that_use_it(
    store: Store, unique: str, wait_until: WaitUntil
) -> None:
    looking = health_of(store)
    async with open_broker() as broker, open_session(MqttSettings(url=broker.url), unique) as session:
        looking.sessions["wrench"] = session
        assert "broker" not in await looking.check()
        await broker.stop()
        await wait_until(lambda: not session.connected)
        assert (await looking.check()).startswith("broker unavailable: wrench; ")


async def test_disconnected_equipment_is_named_unless_its_broker_is_down(
    store: Store, unique: str, wait_until: WaitUntil
) -> None:
    wrench, camera, scanner = FakeEquipment("wrench"), FakeEquipment("camera"), FakeEquipment("scanner")
    looking = health_of(store, wrench, camera, scanner)
    assert "equipment" not in await looking.check()
    wrench.reachable = camera.reachable = False
    assert (await looking.check()).startswith("equipment disconnected: wrench (refused), camera (refused); ")
    async with open_broker() as broker, open_session(MqttSettings(url=broker.url), unique) as session:
        looking.sessions["wrench"] = session
        await broker.stop()
        await wait_until(lambda: not session.connected)
        assert (await looking.check()).startswith(
            "broker unavailable: wrench; equipment disconnected: camera (refused); "
        )


async def test_refused_topics_are_named(store: Store) -> None:
    looking = health_of(store)
    looking.refusals += [list, lambda: ["app/jobs/station-1/events"]]
    assert (await looking.check()).startswith("broker refuses: app/jobs/station-1/events; ")


async def ignore(_: object) -> None:
    """Handle a message without any effect."""


async def test_refused_subscriptions_are_named_and_mark_the_gateway_as_degraded(
    store: Store, unique: str, tmp_path: Path, wait_until: WaitUntil
) -> None:
    looking = health_of(store)
    topic = "app/jobs/station-1/commands"
    async with (
        open_broker(*refusing_subscriptions(tmp_path, topic)) as broker,
        open_session(MqttSettings(url=broker.url), unique) as session,
    ):
        looking.sessions["MES"] = session
        with contextlib.suppress(Unavailable):
            await session.subscribe(topic, ignore)
        await wait_until(session.refused)
        expected = "broker refuses subscriptions of MES: app/jobs/station-1/commands; "
        assert (await looking.check()).startswith(expected)
        assert looking.degraded_by("scopes station-1") == f"serving, degraded: {expected}scopes station-1"


async def test_message_that_stays_with_its_handler_is_named(
    store: Store, mqtt: MqttSettings, unique: str, wait_until: WaitUntil
) -> None:
    """The gateway was connected, and no order reached it any more: its state has to say so."""
    begun, released = asyncio.Event(), asyncio.Event()

    async def hang(_: Message) -> None:
        begun.set()
        await released.wait()

    plant = Plant(store, {}, now_ms)
    active_runs = ActiveRuns(plant.runs, (SCOPE,))
    looking = Health(store, active_runs, EquipmentWatch(store, active_runs, now_ms), handled_within_s=0.0)
    async with open_session(mqtt, unique) as session:
        looking.sessions["MES"] = session
        await session.subscribe(f"{unique}/commands", hang)
        assert "wait" not in await looking.check()
        await session.publish(f"{unique}/commands", b"order")
        await begun.wait()
        assert (await looking.check()).startswith(f"messages for MES wait: {unique}/commands; ")
        released.set()
        await wait_until(lambda: not session.stalled(0.0))


async def test_status_does_not_wait_for_a_store_that_hangs(tmp_path: Path) -> None:
    async with own_server(tmp_path) as server, open_store(RedisSettings(url=server.url), "edge") as store:
        looking = health_of(store)
        server.freeze()
        try:
            assert (await looking.check()).startswith("Redis does not answer within 1 s")
        finally:
            server.thaw()


async def test_hanging_task_is_named(store: Store) -> None:
    store.heartbeat = Heartbeat(patience_s=0.01)
    store.heartbeat.expect(["timers"])

    async def hang() -> None:
        store.heartbeat.beat()
        await asyncio.sleep(60)

    task = asyncio.create_task(hang(), name="timers")
    await asyncio.sleep(0.05)
    assert (await health_of(store).check()).startswith("no progress: timers; ")
    task.cancel()


async def test_unavailable_or_nearly_full_store_is_reported(tmp_path: Path) -> None:
    async with own_server(tmp_path) as server, open_store(RedisSettings(url=server.url), "edge") as store:
        looking = health_of(store)
        used = int((await store.execute("INFO", "memory"))["used_memory"])
        await store.execute("CONFIG", "SET", "maxmemory", used + used // 20)
        with structlog.testing.capture_logs() as reported:
            for _ in range(2):
                assert re.fullmatch(r"0 jobs at work; store \d\d% full", await looking.check())
        assert [entry["event"] for entry in reported] == ["store filling up"]
        await server.kill()
        assert (await looking.check()).startswith("Redis does not answer: ")


async def test_absent_store_is_a_problem_of_the_gateway(tmp_path: Path) -> None:
    """The pages showed "Redis does not answer" in green: without a store nothing counted as wrong."""
    async with own_server(tmp_path) as server, open_store(RedisSettings(url=server.url), "edge") as store:
        health = health_of(store)
        await health.check()
        assert health.problem_line == ""
        await server.kill()
        assert await health.check() == health.problem_line
    assert health.problem_line.startswith("Redis does not answer: ")


async def test_a_store_that_cannot_write_to_its_disk_is_reported(store: Store) -> None:
    async def refuses(store: Store, limits: CountLimits, counter: MarkCounter) -> ServerState:
        return msgspec.structs.replace(await read_state(store, limits, counter), can_write=False)

    assert (await health_of(store, read_state=refuses).check()).startswith(
        "Redis cannot write to its disk: is it full?; 0 jobs"
    )


async def test_an_expired_certificate_is_reported_each_time_and_logged_once(store: Store) -> None:
    findings = [
        failing("certificate mqtt.ca_file", "ca.pem has expired", "renew it"),
        ok("certificate rpc.ca_file", ""),
    ]
    looking = health_of(store, certificates=lambda: findings)
    with structlog.testing.capture_logs() as reported:
        for _ in range(2):
            assert (await looking.check()).startswith("certificate mqtt.ca_file: ca.pem has expired; 0 jobs")
    assert [(entry["subject"], entry["advice"]) for entry in reported] == [("certificate mqtt.ca_file", "renew it")]


async def test_a_certificate_to_renew_is_noted_without_a_problem(store: Store) -> None:
    """A note: clients that use other names are served, so the gateway is as good as another."""
    findings = [
        warning("OPC UA certificate", "it does not name 192.0.2.9", "renew it"),
        ok("certificate rpc.ca_file", ""),
    ]
    looking = health_of(store, certificates=lambda: findings)
    assert (await looking.check()).endswith("OPC UA certificate: it does not name 192.0.2.9")
    assert (looking.problem_line, looking.certificates.expiring) == ("", 1)


async def test_certificates_are_not_read_at_every_health_check(store: Store) -> None:
    """To read a private key every five seconds was most of what an idle gateway did."""
    examined: list[None] = []

    def examine() -> list[HealthFinding]:
        examined.append(None)
        return []

    looking = health_of(store, certificates=examine)
    for _ in range(3):
        await looking.check()
    assert len(examined) == 1


async def test_certificates_that_cannot_be_read_are_reported(store: Store) -> None:
    def unreadable() -> list[HealthFinding]:
        raise SettingsError(["opcua.pki: the key is open to others"])

    looking = health_of(store, certificates=unreadable)
    assert (await looking.check()).startswith("opcua.pki: the key is open to others; 0 jobs")


async def test_an_unsynchronised_clock_is_reported(store: Store) -> None:
    assert (await health_of(store, clock=Clock.UNSYNCHRONISED).check()).endswith("; clock not synchronised")


async def test_systemd_is_notified_of_each_change_of_the_status(store: Store) -> None:
    reported: asyncio.Queue[str] = asyncio.Queue()
    looking = health_of(store)
    publishing = asyncio.create_task(looking.publish_status(reported.put_nowait, "scopes station-1"))
    printed = await asyncio.wait_for(reported.get(), 30)
    assert printed.startswith("STATUS=0 jobs at work; ")
    assert printed.endswith("; scopes station-1")
    looking.interface_problems["OPC UA server"] = Text("OPC UA cannot listen")
    printed = await asyncio.wait_for(reported.get(), 30)
    assert printed.startswith("STATUS=serving, degraded: OPC UA cannot listen; 0 jobs at work; ")
    publishing.cancel()


async def test_counts_near_their_limit_are_reported_and_full_marks_are_flagged(store: Store) -> None:
    active_runs = ActiveRuns(Plant(store, {}, now_ms).runs, (SCOPE,))
    watch = EquipmentWatch(store, active_runs, now_ms)
    looking = Health(store, active_runs, watch, limits=CountLimits((SCOPE,), marks=1, undelivered=2))
    await store.commit(ended_jobs.add_undelivered(store.keys, SCOPE, "J1", 1))
    await store.commit(dedupe.mark(store.keys, "mes", "1", "null", 60_000))
    with structlog.testing.capture_logs() as logs:
        line = await looking.check()
        await looking.check()
    assert f"1 of at most 2 undelivered results kept in {SCOPE}; " in line
    assert re.search(r"[1-9]\d* of at most 1 marks of messages kept; ", line)
    assert [entry["event"] for entry in logs] == ["marks above half of limit", "marks of sender above half of share"]
    assert "1 of at most 1 marks kept of calls:" in line
    assert store.marks.is_full


async def test_store_without_a_confirmed_primary_counts_as_unavailable(store: Store) -> None:
    primary = Primary("127.0.0.1", 6379, 1)
    fence = Fence(primary, asyncio.get_running_loop().time)
    sentinels = Sentinels(SentinelAddress("line", (), Endpoint()))
    health = health_of(store)
    replication = Replication(CommandConnection(Endpoint()), store.keys.replication_mark(), (), least=0)
    store.ha = HighAvailability(sentinels, fence, GenerationCheck(store.keys, primary), replication)
    line = await health.check()
    assert line.startswith("store unavailable, its primary is not confirmed: no majority of the sentinels confirms")
    assert str(health.work_waits).startswith("store unavailable, its primary is not confirmed: no majority")
    assert not health.has_store
    store.ha = None
    await health.check()
    assert (health.has_store, health.work_waits) == (True, "")


async def test_server_that_may_lose_decisions_is_a_problem_logged_once(tmp_path: Path) -> None:
    """As after a failover to a replica without append-only file."""
    async with own_server(tmp_path) as server, open_store(RedisSettings(url=server.url), "edge") as store:
        health = health_of(store)
        await health.check()
        assert health.problem_line == ""
        await store.execute("CONFIG SET", "appendonly", "no")
        with structlog.testing.capture_logs() as logs:
            for _ in range(2):
                await health.check()
    assert health.problem_line == "the Redis server does not write down each change: its appendonly is no, expected yes"
    assert [entry["event"] for entry in logs].count("store may lose decisions") == 1

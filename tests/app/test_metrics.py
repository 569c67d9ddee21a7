"""The metrics show the values of the gateway in the Prometheus format."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace
from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families

from edge.app.health import Health
from edge.app.metrics import MetricSources, page
from edge.config import MqttSettings, RedisSettings
from edge.foundation.errors import Unavailable
from edge.foundation.metric import MetricFamily
from edge.foundation.task_group import background_task
from edge.links.mqtt import open_session
from edge.model.job_state import Cause
from edge.station.active_runs import ActiveRuns, Activity
from edge.station.equipment import EquipmentAnswer
from edge.station.equipment_watch import EquipmentWatch, WatchedEquipment
from edge.store import dead_letters
from edge.store.bounds import CountLimits
from edge.store.client import Store
from edge.store.dead_letters import Letter, LetterKind
from edge.store.open_store import open_store
from tests.conftest import WaitUntil
from tests.station.plant import LINEAR, SCOPE, TIGHTEN, Clock, FakeEquipment, Plant, order
from tests.store.servers import own_server
from tests.store.test_store_state import line

PREFIX = "microdcs_edge_"
LIMITS = CountLimits((SCOPE,), marks=1000, undelivered=10)


async def sources_of(store: Store, tool: FakeEquipment) -> tuple[MetricSources, Plant]:
    plant = Plant(store, {TIGHTEN: tool}, Clock())
    await plant.teach("linear", LINEAR)
    active_runs, activity = ActiveRuns(plant.runs, (SCOPE,)), Activity()
    watch = EquipmentWatch(store, active_runs, plant.runs.clock)
    watch.watched.append(WatchedEquipment(tool, "fake", (TIGHTEN,), plant.answers.stats))
    plant.runs.listeners.append(activity.watch)
    health = Health(store, active_runs, watch, limits=LIMITS)
    health.servers.state = line()
    return MetricSources(
        "edge",
        (SCOPE,),
        store,
        health,
        watch,
        activity,
        lambda: 3,
        (lost,),
    ), plant


async def lost() -> list[MetricFamily]:
    """Raise Unavailable: what cannot be read without the store hides nothing else."""
    raise Unavailable("the store is away")


@asynccontextmanager
async def looked_at(sources: MetricSources, wait_until: WaitUntil) -> AsyncIterator[None]:
    """Take a new report of the equipment."""
    sources.equipment.health = ()
    async with background_task(sources.equipment.run(), "equipment"):
        await wait_until(lambda: sources.equipment.health)
    yield


async def reported(sources: MetricSources) -> dict[str, float]:
    """Return every sample, by its name and labels as they are written."""
    found = await page(sources)
    assert found.media_type == "text/plain; version=0.0.4; charset=utf-8"
    samples = {}
    for family in text_string_to_metric_families(found.body.decode()):
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
            samples[f"{sample.name.removeprefix(PREFIX)}{{{labels}}}" if labels else sample.name] = sample.value
    return {name.removeprefix(PREFIX): value for name, value in samples.items()}


@pytest.fixture
def tool() -> FakeEquipment:
    return FakeEquipment("wrench")


async def test_a_gateway_at_work_reports_jobs_steps_commands_and_equipment(
    store: Store, tool: FakeEquipment, wait_until: WaitUntil
) -> None:
    sources, plant = await sources_of(store, tool)
    for number in range(3):
        await plant.order(Cause.STORE_AND_START, order(f"J{number}"))
    await plant.order(Cause.STORE, order("J9"))
    await plant.drive()
    assert isinstance(plant.runs.clock, Clock)
    plant.runs.clock.now += 700
    first, second, _ = tool.commands
    await plant.answers.answer(EquipmentAnswer(first.command_id, {"evaluation": "OK"}))
    await plant.answers.answer(EquipmentAnswer(second.command_id, error="jammed"))
    await plant.drive()
    async with looked_at(sources, wait_until):
        found = await reported(sources)
    expected = {
        f"jobs{{scope={SCOPE},state=Running}}": 2,
        f"jobs{{scope={SCOPE},state=NotAllowedToStart}}": 1,
        f"jobs{{scope={SCOPE},state=Interrupted}}": 0,
        f"jobs{{scope={SCOPE},state=EndState}}": 1,
        f"runs_ended_total{{outcome=failed,scope={SCOPE}}}": 1,
        f"steps_total{{scope={SCOPE}}}": 4,
        "commands_total{equipment=wrench,phase=start}": 4,
        "commands_outstanding{equipment=wrench}": 2,
        "command_answers_total{equipment=wrench,outcome=done}": 1,
        "command_answers_total{equipment=wrench,outcome=failed}": 1,
        "command_round_trip_seconds_bucket{equipment=wrench,le=0.5}": 0,
        "command_round_trip_seconds_bucket{equipment=wrench,le=1.0}": 2,
        "command_round_trip_seconds_count{equipment=wrench}": 2,
        "command_round_trip_seconds_sum{equipment=wrench}": pytest.approx(1.4),
        "equipment_connected{equipment=wrench,kind=fake}": 1,
        "equipment_last_seen_timestamp_seconds{equipment=wrench}": plant.runs.clock.now / 1000,
        "equipment_messages_ignored_total{equipment=wrench}": 0,
        "equipment_messages_refused_total{equipment=wrench}": 0,
        "results_total{equipment=wrench,evaluation=OK}": 1,
        "results_total{equipment=wrench,evaluation=NotOK}": 0,
        "outcomes_unknown_total{equipment=wrench}": 0,
        "starts_repeated_total{equipment=wrench}": 0,
        "results_late_total{equipment=wrench}": 0,
        "stops_declined_total{equipment=wrench}": 0,
        "traces_lost_total{equipment=wrench}": 0,
        "stops_unconfirmed{equipment=wrench}": 0,
        "store_up": 1,
        "opcua_sessions": 3,
        "tasks_hanging": 0,
        "dead_letters": 0,
        f"publish_lag_seconds{{scope={SCOPE}}}": 0,
    }
    assert {name: found.get(name) for name in expected} == expected
    assert found["commit_seconds_count"] == found["commit_seconds_bucket{le=+Inf}"] > 0
    assert found["store_memory_bytes"] > 0
    assert found["process_resident_memory_bytes"] > 0


async def test_equipment_without_a_known_connection_has_no_connection_metric(
    store: Store, wait_until: WaitUntil
) -> None:
    class Silent(FakeEquipment):
        connected = None

    sources, _ = await sources_of(store, Silent("wrench"))
    async with looked_at(sources, wait_until):
        found = await reported(sources)
    assert not {name for name in found if name.startswith(("equipment_connected", "equipment_last_seen"))}


async def test_equipment_that_is_not_connected_has_the_kind_of_reason_as_label(
    store: Store, tool: FakeEquipment, wait_until: WaitUntil
) -> None:
    sources, _ = await sources_of(store, tool)
    async with looked_at(sources, wait_until):
        assert not [name for name in await reported(sources) if name.startswith("equipment_disconnected")]
    tool.reachable = False
    async with looked_at(sources, wait_until):
        found = await reported(sources)
    assert found["equipment_disconnected{equipment=wrench,fault=refused}"] == 1
    assert found["equipment_connected{equipment=wrench,kind=fake}"] == 0


async def test_nearly_full_store_is_reported(tmp_path: Path, tool: FakeEquipment) -> None:
    async with own_server(tmp_path) as server, open_store(RedisSettings(url=server.url), "edge") as store:
        sources, _ = await sources_of(store, tool)
        used = int((await store.execute("INFO", "memory"))["used_memory"])
        assert (await reported(sources))["store_nearly_full"] == 0
        await store.execute("CONFIG", "SET", "maxmemory", used + used // 20)
        found = await reported(sources)
        assert (found["store_nearly_full"], found["store_memory_limit_bytes"]) == (1, used + used // 20)


async def test_gateway_without_its_store_reports_the_other_metrics(tmp_path: Path, tool: FakeEquipment) -> None:
    async with own_server(tmp_path) as server, open_store(RedisSettings(url=server.url), "edge") as store:
        sources, _ = await sources_of(store, tool)
        await server.kill()
        found = await reported(sources)
    assert found["store_up"] == 0
    assert found["opcua_sessions"] == 3
    assert "dead_letters" not in found


async def test_dead_letters_waiting_work_and_brokers_are_reported(
    store: Store, mqtt: MqttSettings, unique: str, tool: FakeEquipment
) -> None:
    sources, plant = await sources_of(store, tool)
    await store.commit(dead_letters.add(store.keys, Letter(LetterKind.START, SCOPE, "J1", "a defect", 1), 60_000))
    await plant.order(Cause.STORE_AND_START, order("J1"))
    async with open_session(mqtt, unique) as session:
        sources.health.sessions["MES"] = session
        found = await reported(replace(sources, sessions=None))
    assert (found["dead_letters"], found["broker_connected{session=MES}"]) == (1, 1)
    assert found[f"work_entries{{scope={SCOPE}}}"] == 1
    assert found[f"work_lag_seconds{{scope={SCOPE}}}"] >= 0
    assert "opcua_sessions" not in found


async def test_registry_of_the_process_is_unchanged(store: Store, tool: FakeEquipment) -> None:
    before = {family.name for family in REGISTRY.collect()}
    sources, _ = await sources_of(store, tool)
    await page(sources)
    assert {family.name for family in REGISTRY.collect()} == before

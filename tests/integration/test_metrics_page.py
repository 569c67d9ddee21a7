"""The page of metrics lists each one of the core and of its features, and no other."""

import re
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from edge.app.metrics import page
from edge.config import MqttSettings
from edge.features.archive.service import Archive
from edge.features.flows.engine import FlowStats
from edge.features.sparkplug.session import NodeStats
from edge.features.station_files.service import StationDrift
from edge.features.telemetry.definitions import RuleUpdates
from edge.features.telemetry.history.writer import HistoryLimits, HistoryWriter
from edge.features.telemetry.interest import RuleInterest
from edge.features.telemetry.job_samples import JobSamples
from edge.features.telemetry.metrics import telemetry_metrics
from edge.features.telemetry.parts import TelemetryService
from edge.features.telemetry.processor import RuleProcessor
from edge.features.telemetry.sample_queue import SampleQueue
from edge.features.telemetry.trends import TrendMemory, Trends
from edge.links.mqtt import open_session
from edge.model.job_state import Cause
from edge.ports.tag import TagDefinitions
from edge.station.equipment_watch import EquipmentStats, WatchedEquipment
from edge.store.client import Store
from tests.app.test_metrics import PREFIX, looked_at, sources_of
from tests.conftest import WaitUntil
from tests.features.telemetry.plant import HOT, TelemetryClock, append, rules_of
from tests.features.telemetry.test_processor import temp
from tests.station.plant import FakeEquipment, order

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "monitoring.md"


@pytest.fixture
def tool() -> FakeEquipment:
    return FakeEquipment("wrench")


async def test_page_lists_every_metric_with_its_labels(
    store: Store, mqtt: MqttSettings, unique: str, tool: FakeEquipment, wait_until: WaitUntil
) -> None:
    sources, plant = await sources_of(store, tool)
    await plant.order(Cause.STORE_AND_START, order("J1"))
    await plant.drive()
    await plant.ask(Cause.ABORT, "J1")
    clock, rules = TelemetryClock(), rules_of(HOT)
    telemetry = TelemetryService(
        SampleQueue(store, clock),
        RuleProcessor(store, rules, clock),
        RuleUpdates(store, rules, print),
        RuleInterest(rules),
        JobSamples(store.keys, RuleInterest(rules), {}, 10),
        (),
        TagDefinitions(),
        store,
        10,
        Trends(store, TrendMemory(), lambda: rules, TagDefinitions(), None, Path("unused")),
        history=HistoryWriter(Path("unused"), HistoryLimits(days=1)),
    )
    await append(store, temp(0, 1))
    await store.execute(
        "HSET", store.keys.telemetry_counters(), "rule:triggered:hot", "3", "rule:rate_limited:hot", "1"
    )
    await sources.health.check()
    away = FakeEquipment("camera")
    away.reachable = False
    sources.equipment.watched.append(WatchedEquipment(away, "fake", (), EquipmentStats()))
    async with open_session(mqtt, unique) as session, looked_at(sources, wait_until):
        node = NodeStats()
        sources = replace(
            sources,
            further=(
                *sources.further,
                FlowStats().metrics,
                StationDrift("1 changed", {"missing": 0, "changed": 1, "extra": 0}).metrics,
                partial(telemetry_metrics, telemetry, store),
                node.metrics,
                Archive(Path("unused"), (), None).metrics,
            ),
        )
        sources.health.sessions["MES"] = session
        telemetry.queue.refuse("oven", 1)
        store.defects.record("rules", KeyError("unforeseen"))
        text = (await page(sources)).body.decode()
    rows = []
    for family in text_string_to_metric_families(text):
        if family.name.startswith(PREFIX):
            names = {name for sample in family.samples for name in sample.labels} - {"le"}
            labels = ", ".join(f"`{name}`" for name in sorted(names))
            total = "_total" if family.type == "counter" else ""
            rows.append(f"| `{family.name}{total}` | {family.type} | {labels} | {family.documentation} |")
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    missing = [row for row in rows if row not in lines]
    assert not missing, f"in {PAGE.name} these rows belong:\n" + "\n".join(missing)
    named = {re.sub("_(bucket|count|sum)$", "", name) for name in re.findall(r"microdcs_edge_\w+", "\n".join(lines))}
    assert {name for name in named if not any(f"`{name}`" in row for row in rows)} == set()

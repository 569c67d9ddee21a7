"""The edge node at a real broker, with a host on npm packages: births, data, deaths, faults."""

import asyncio
from typing import Any

import pytest

from edge.features.sparkplug import sample_streams as sparkplug
from edge.features.sparkplug.session import NodeLimits
from edge.foundation.task_group import background_task
from edge.ports.sample_lines import Quality, Sample
from edge.ports.tag import TagDefinition
from edge.store.client import Store
from tests.conftest import WaitUntil
from tests.features.sparkplug.peers import REBIRTH, Host, metrics_of, open_host
from tests.features.sparkplug.plant import FAST, Plant, now_ms
from tests.features.telemetry.plant import append
from tests.local_broker import OwnBroker, open_broker
from tests.waiting import until_async

pytestmark = pytest.mark.slow


def values(messages: list[dict[str, Any]]) -> list[Any]:
    """Return the values of messages with one metric each."""
    return [metric["value"] for message in messages for metric in message["payload"]["metrics"]]


def numbers(host: Host) -> list[list[int]]:
    """Return the sequence numbers of each life of the edge node."""
    lives: list[list[int]] = []
    for message in host.messages:
        kind = message.get("topic", "//").split("/")[2]
        if kind == "NBIRTH":
            lives.append([])
        if kind in {"NBIRTH", "DBIRTH", "NDATA", "DDATA", "DDEATH"}:
            lives[-1].append(message["payload"]["seq"])
    return lives


def assert_numbered(host: Host) -> None:
    """Check that every life counts from 0 by one, modulo 256."""
    for life in numbers(host):
        assert life == [number % 256 for number in range(len(life))]


async def test_births_data_and_death_reach_an_independent_host(store: Store, unique: str) -> None:
    plant = Plant(unique)
    async with open_broker() as broker, open_host(broker.port, unique) as host:
        await append(store, Sample(now_ms(), "wrench.torque", 85.2), Sample(now_ms(), "gateway.memory", 90))
        plant.define(TagDefinition("wrench.angle", unit="DD", type="number"))
        async with plant.running(store, broker.port) as node:
            (birth,) = await host.until(lambda: host.of("DBIRTH", "wrench"))
            (node_birth,) = host.of("NBIRTH")
            await append(store, Sample(now_ms(), "wrench.torque", 85.2), Sample(now_ms(), "wrench.torque", 86.5))
            await append(store, Sample(now_ms(), "gateway.memory", 91))
            (data,) = await host.until(lambda: host.of("DDATA"))
            (node_data,) = await host.until(lambda: host.of("NDATA"))
            assert node.problem == ""
        # Its own, and by the reason code of DISCONNECT that of the broker: MQTT 5 must have both.
        deaths = await host.until(lambda: len(host.of("NDEATH")) > 1 and host.of("NDEATH"))
    assert node_birth["topic"] == f"spBv1.0/{unique}/NBIRTH/station"
    assert metrics_of(node_birth)["bdSeq"]["value"] == 0
    assert metrics_of(node_birth)["bdSeq"]["type"] == "Int64"
    assert metrics_of(node_birth)["Node Control/Rebirth"]["value"] is False
    assert "alias" not in metrics_of(node_birth)["Node Control/Rebirth"]
    assert metrics_of(node_birth)["gateway/memory"]["value"] == 90
    torque, angle = metrics_of(birth)["torque"], metrics_of(birth)["angle"]
    assert (torque["type"], torque["value"], angle["value"]) == ("Double", 85.2, None)
    assert angle["properties"]["engUnit"]["value"] == "°"
    ((metric,), (own,)) = data["payload"]["metrics"], node_data["payload"]["metrics"]
    assert (metric["alias"], metric["value"], "name" in metric, metric["sentType"]) == (torque["alias"], 86.5, False, 0)
    assert (own["value"], own["timestamp"] > 1_600_000_000_000) == (91, True)
    assert [(entry["qos"], entry["retain"]) for entry in (node_birth, birth, data, node_data)] == [(0, False)] * 4
    found = [
        (death["qos"], death["retain"], metrics_of(death)["bdSeq"]["value"], "seq" in death["payload"])
        for death in deaths
    ]
    assert found == [(1, False, 0, False)] * 2
    assert_numbered(host)


async def test_rebirth_requests_are_throttled_and_answered(store: Store, unique: str, broker: OwnBroker) -> None:
    async with open_host(broker.port, unique) as host, Plant(unique).running(store, broker.port):
        await append(store, Sample(now_ms(), "wrench.torque", 1))
        await host.until(lambda: host.of("DBIRTH"))
        began, since = asyncio.get_running_loop().time(), len(host.messages)
        host.send(f"spBv1.0/{unique}/NCMD/station", payload=REBIRTH, repeat=2_000)
        await host.until(lambda: host.of("NBIRTH", since=since))
        await append(store, Sample(now_ms(), "wrench.torque", 2))
        await host.until(lambda: host.of("DDATA", since=since))
        lasted = asyncio.get_running_loop().time() - began
        births = host.of("NBIRTH", since=since)
    assert len(births) <= 2 + lasted / FAST.rebirth_s
    assert {metrics_of(birth)["bdSeq"]["value"] for birth in births} == {0}
    assert_numbered(host)


async def test_write_commands_are_refused(store: Store, unique: str, broker: OwnBroker, wait_until: WaitUntil) -> None:
    other = {"timestamp": 1, "metrics": [{"name": "torque", "type": "Double", "value": 1}]}
    async with open_host(broker.port, unique) as host, Plant(unique).running(store, broker.port) as node:
        await append(store, Sample(now_ms(), "wrench.torque", 1))
        await host.until(lambda: host.of("DBIRTH"))
        since = len(host.messages)
        host.send(f"spBv1.0/{unique}/DCMD/station/wrench", payload=other)
        host.send(f"spBv1.0/{unique}/NCMD/station", payload=other)
        host.send(f"spBv1.0/{unique}/NCMD/station", body="no payload")
        host.send(f"spBv1.0/{unique}/NCMD/station", payload={**REBIRTH, "metrics": []})
        await append(store, Sample(now_ms(), "wrench.torque", 2))
        assert values(await host.until(lambda: host.of("DDATA", since=since))) == [2]
        assert host.of("NBIRTH", since=since) == []
        await wait_until(lambda: node.stats.refused >= 3)
        assert node.problem == ""
        assert (node.stats.is_born, node.stats.births, node.stats.messages, node.stats.refused) == (True, 1, 3, 3)
    assert not node.stats.is_born


async def test_samples_of_a_broker_outage_become_historical(store: Store, unique: str, wait_until: WaitUntil) -> None:
    async with open_broker() as broker, Plant(unique).running(store, broker.port, host="scada") as node:
        async with open_host(broker.port, unique) as host:
            host.state("scada", 1, online=True)
            await append(store, Sample(now_ms(), "wrench.torque", 0))
            await host.until(lambda: host.of("DBIRTH"))
            await append(store, Sample(now_ms(), "wrench.torque", 1))
            await host.until(lambda: host.of("DDATA"))
            await until_async(lambda: _has_cursor(store), 60)
            await broker.kill()
        await wait_until(lambda: "cannot connect" in str(node.problem))
        for number in range(2, 7):
            await append(store, Sample(now_ms(), "wrench.torque", number))
        await broker.start()
        async with open_host(broker.port, unique) as host:
            host.state("scada", 2, online=True)
            await host.until(lambda: 6 in values(host.of("DDATA")))
            await append(store, Sample(now_ms(), "wrench.torque", 7))
            await host.until(lambda: 7 in values(host.of("DDATA")))
    (birth,) = host.of("DBIRTH")
    data = host.of("DDATA")
    historical = [entry["payload"]["metrics"][0].get("isHistorical", False) for entry in data]
    assert values([birth]) == [6]
    assert values(data)[-6:] == [2, 3, 4, 5, 6, 7]
    assert historical[-6:] == [True] * 5 + [False]
    assert (await sparkplug.load(store)).bd_seq == 1


async def _has_cursor(store: Store) -> bool:
    return bool((await sparkplug.load(store)).cursors)


async def test_node_waits_for_the_primary_host_and_dies_with_it(
    store: Store, unique: str, broker: OwnBroker, wait_until: WaitUntil
) -> None:
    scada = f"scada-{unique}"
    async with open_host(broker.port, unique) as host, Plant(unique).running(store, broker.port, host=scada) as node:
        await append(store, Sample(now_ms(), "wrench.torque", 1))
        await wait_until(lambda: "waits for the primary host" in str(node.problem))
        assert node.waits_for_host
        host.send(f"spBv1.0/STATE/{scada}", body="ONLINE", qos=1)
        host.state(scada, 100, online=True)
        await host.until(lambda: host.of("DBIRTH"))
        kinds = [entry["topic"].split("/")[1:3] for entry in host.messages if unique in entry.get("topic", "")]
        assert kinds[:3] == [["STATE", scada], ["STATE", scada], [unique, "NBIRTH"]]
        since = len(host.messages)
        host.state(scada, 99, online=False)
        await append(store, Sample(now_ms(), "wrench.torque", 2))
        await host.until(lambda: host.of("DDATA", since=since))
        assert host.of("NDEATH") == []
        host.state(scada, 101, online=False)
        await host.until(lambda: host.of("NDEATH"))
        for number in (3, 4):
            await append(store, Sample(now_ms(), "wrench.torque", number))
        since = len(host.messages)
        host.state(scada, 102, online=True)
        await host.until(lambda: 4 in values(host.of("DDATA", since=since)))
        (birth,) = host.of("NBIRTH", since=since)
        stored = host.of("DDATA", since=since)
    assert metrics_of(birth)["bdSeq"]["value"] == 1
    assert all(entry["payload"]["metrics"][0]["isHistorical"] for entry in stored)
    assert values(stored)[-2:] == [3, 4]
    assert_numbered(host)
    host.state(scada, 103, online=False)


async def test_edge_node_connects_to_the_broker_of_its_primary_host(
    store: Store, unique: str, broker: OwnBroker, wait_until: WaitUntil
) -> None:
    scada = f"scada-{unique}"
    async with (
        open_broker() as other,
        open_host(broker.port, unique) as here,
        open_host(other.port, unique) as there,
        Plant(unique).running(store, broker.port, other.port, host=scada) as node,
    ):
        await append(store, Sample(now_ms(), "wrench.torque", 1))
        there.state(scada, 100, online=True)
        await there.until(lambda: there.of("DBIRTH"))
        here.state(scada, 100, online=True)
        there.state(scada, 101, online=False)
        await there.until(lambda: there.of("NDEATH"))
        await here.until(lambda: here.of("DBIRTH"))
        there.state(scada, 102, online=True)
        await append(store, Sample(now_ms(), "wrench.torque", 2))
        await here.until(lambda: 2 in values(here.of("DDATA")))
        assert (len(here.of("NBIRTH")), len(there.of("NBIRTH"))) == (1, 1)
        here.state(scada, 101, online=False)
        await there.until(lambda: len(there.of("NBIRTH")) == 2)
        await other.stop()
        await wait_until(lambda: node.problem)
        here.state(scada, 102, online=True)
        await here.until(lambda: len(here.of("NBIRTH")) == 2)
        births, deaths = (
            [metrics_of(entry)["bdSeq"]["value"] for entry in here.of(kind)] for kind in ("NBIRTH", "NDEATH")
        )
        assert births[0] in deaths
        here.state(scada, 103, online=False)
    assert_numbered(here)
    assert_numbered(there)


async def test_lost_equipment_publishes_a_device_death(store: Store, unique: str, broker: OwnBroker) -> None:
    plant = Plant(unique)
    async with open_host(broker.port, unique) as host, plant.running(store, broker.port):
        await append(store, Sample(now_ms(), "wrench.torque", 1), Sample(now_ms(), "camera.ok", True))
        await host.until(lambda: len(host.of("DBIRTH")) == 2)
        plant.gone.add("wrench")
        (death,) = await host.until(lambda: host.of("DDEATH", "wrench"))
        await append(store, Sample(now_ms(), "wrench.torque", 2), Sample(now_ms(), "camera.ok", False))
        await host.until(lambda: host.of("DDATA", "camera"))
        assert host.of("DDATA", "wrench") == []
        plant.gone.clear()
        await host.until(lambda: len(host.of("DBIRTH", "wrench")) == 2)
        assert metrics_of(host.of("DBIRTH", "wrench")[1])["torque"]["value"] == 2
    assert (death["qos"], death["retain"]) == (0, False)
    assert_numbered(host)


async def test_new_tags_types_and_definitions_cause_a_new_birth(store: Store, unique: str, broker: OwnBroker) -> None:
    plant = Plant(unique)
    async with open_host(broker.port, unique) as host, plant.running(store, broker.port):
        await append(store, Sample(now_ms(), "wrench.torque", 1))
        await host.until(lambda: host.of("DBIRTH"))
        await append(store, Sample(now_ms(), "wrench.angle", 30), Sample(now_ms(), "nut.size", 13))
        await host.until(lambda: host.of("DBIRTH", "nut") and "angle" in metrics_of(host.of("DBIRTH", "wrench")[-1]))
        await append(store, Sample(now_ms(), "wrench.torque", "much"))
        await host.until(lambda: metrics_of(host.of("DBIRTH", "wrench")[-1])["torque"]["type"] == "String")
        plant.define(TagDefinition("wrench.torque", type="text", description="final"), TagDefinition("press.force"))
        await host.until(lambda: "documentation" in metrics_of(host.of("DBIRTH", "wrench")[-1])["torque"]["properties"])
        assert host.of("DBIRTH", "press")
        await append(store, Sample(now_ms(), "wrench.angle", 31, Quality.BAD))
        await host.until(lambda: 31 in values(host.of("DDATA", "wrench")))
        (metric,) = host.of("DDATA", "wrench")[-1]["payload"]["metrics"]
        assert metric["properties"]["Quality"] == {"type": "Int32", "value": 0}
    assert_numbered(host)


async def test_thousand_tags_are_in_the_birth_and_the_data(store: Store, unique: str, broker: OwnBroker) -> None:
    async def append_all(more: float) -> None:
        for start in range(0, 1_000, 100):
            tags = ((f"d{number % 20}.t{number}", number + more) for number in range(start, start + 100))
            await append(store, *(Sample(now_ms(), tag, value) for tag, value in tags))

    async with open_host(broker.port, unique) as host:
        await append_all(0)
        async with Plant(unique).running(store, broker.port):
            await host.until(lambda: len(host.of("DBIRTH")) == 20)
            await append_all(0.5)
            await host.until(lambda: len(values(host.of("DDATA"))) == 1_000)
    aliases = [metric["alias"] for message in host.of("DBIRTH") for metric in message["payload"]["metrics"]]
    assert len(set(aliases)) == len(aliases) == 1_000
    assert_numbered(host)


async def test_bd_seq_continues_after_a_restart_and_after_255(store: Store, unique: str, broker: OwnBroker) -> None:
    await store.commit(sparkplug.save_bd_seq(store.keys, 254, None))
    async with open_host(broker.port, unique) as host:
        async with Plant(unique).running(store, broker.port):
            await host.until(lambda: host.of("NBIRTH"))
        since = len(host.messages)
        async with Plant(unique).running(store, broker.port):
            await host.until(lambda: host.of("NBIRTH", since=since))
    assert [metrics_of(entry)["bdSeq"]["value"] for entry in host.of("NBIRTH")] == [255, 0]


async def test_unreachable_broker_does_not_consume_a_bd_seq(store: Store, unique: str, wait_until: WaitUntil) -> None:
    async with open_broker() as broker:
        await broker.stop()
        async with Plant(unique).running(store, broker.port) as node:
            await wait_until(lambda: "cannot connect" in str(node.problem))
            await broker.start()
            await wait_until(lambda: node.problem == "")
            assert not node.waits_for_host
    assert (await sparkplug.load(store)).bd_seq == 0


async def test_second_gateway_takes_over_as_the_same_edge_node(store: Store, unique: str, broker: OwnBroker) -> None:
    plant, limits = Plant(unique), NodeLimits(look_s=0.02, confirm_s=0.05)
    first, second = (plant.node(store, broker.port, limits=limits) for _ in range(2))
    async with open_host(broker.port, unique) as host, background_task(first.run(), "first"):
        await host.until(lambda: host.of("NBIRTH"))
        # A gateway that hangs keeps its connection until the next one takes its client id.
        async with background_task(second.run(), "second"):
            await host.until(lambda: len(host.of("NBIRTH")) >= 2)
            kinds = [entry["topic"].split("/")[2] for entry in host.messages if f"/{unique}/" in entry.get("topic", "")]
    assert kinds[:2] == ["NBIRTH", "NDEATH"]
    assert metrics_of(host.of("NDEATH")[0])["bdSeq"]["value"] == 0
    # The first one connects again: here no lease keeps it from that.
    births = [metrics_of(entry)["bdSeq"]["value"] for entry in host.of("NBIRTH")]
    assert births == sorted(set(births))

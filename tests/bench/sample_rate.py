"""Samples from a real broker through a gateway process: the rate at which it breaks, and a store that stalls."""

import asyncio
import json
import os
import signal
import tempfile
import time
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from edge.config import MqttSettings, RedisSettings
from edge.links.cloudevent_mqtt import Message
from edge.links.host_addresses import free_port
from edge.links.mqtt import open_session, to_event
from edge.links.mqtt_publish import encode_publish
from edge.store import stream_of_samples as telemetry
from edge.store.client import Store
from edge.store.open_store import open_store
from tests.bench.gateway import Gateway, gateway
from tests.bench.measure import Row, spread
from tests.local_broker import open_broker

GOAL = 6_000
"""Samples a second that one core takes, with 51 rules."""
P95_MS = 150.0
"""From the publication of a sample to that of the alarm that it raises."""
RECOVERY_S = 3.0
"""After a stall of the store of a second."""
_TAGS = 50
_TICK_S = 0.01
_PROBE_S = 0.1
"""Every so long one tag exceeds its limit, or returns."""
_SETTLE_S = 3.0
_CONNECT = b"\x10\x15\x00\x04MQTT\x05\x02\x00\x3c\x00\x00\x08bench-pb"


def rules() -> list[dict[str, object]]:
    """Return a limit for each tag and one rule of the whole line."""
    limits = {"high": {"at": 80, "severity": 500}}
    of_tags = [
        {"id": f"r{n}", "kind": "limit", "tag": f"line.{n}.temperature", "limits": limits, "hysteresis": 2}
        for n in range(_TAGS)
    ]
    return [*of_tags, {"id": "rate", "kind": "rate", "tag": "line.0.temperature", "per_second": 1e6, "severity": 1}]


@dataclass(slots=True)
class Plant:
    """A gateway whose samples come from a broker, with the instants of what was published and raised."""

    running: Gateway
    store: Store
    metrics: str
    probes: dict[float, float] = field(default_factory=dict)
    raised: dict[float, float] = field(default_factory=dict)

    async def note_alarm(self, message: Message) -> None:
        """Note the arrival of a change of an alarm by the value that made it."""
        change = to_event(message).data
        if change["kind"] == "raised":
            self.raised.setdefault(change["alarm"]["value"], time.perf_counter())

    def latencies(self, since: float, until: float) -> list[float]:
        """Return how long each alarm of a time took; one that has not come counts as a minute."""
        sent = {value: at for value, at in self.probes.items() if since <= at < until}
        return [self.raised.get(value, at + 60.0) - at for value, at in sent.items()]

    async def processed(self) -> int:
        """Return how many lines were evaluated."""
        return (await telemetry.read_counters(self.store)).get("processed", 0)

    async def dropped(self) -> int:
        """Return how many samples the gateway has counted as dropped."""
        text = await asyncio.to_thread(_read, self.metrics)
        found = [line for line in text.splitlines() if "telemetry_dropped_total" in line and not line.startswith("#")]
        return round(sum(float(line.rpartition(" ")[2]) for line in found))


def _read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=20) as answer:  # noqa: S310 - our own gateway
        return str(answer.read(), "utf-8")


@asynccontextmanager
async def plant() -> AsyncIterator[tuple[Plant, str]]:
    """Run broker, store and gateway; provide them with the address of the broker."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        directory, port = Path(name), free_port()
        (directory / "rules.json").write_text(json.dumps(rules()), encoding="utf-8")
        settings = {
            "EDGE_TELEMETRY__RULES": str(directory / "rules.json"),
            "EDGE_SOURCE__LINE__TOPIC": "line/+/temperature",
            "EDGE_METRICS__LISTEN": f"127.0.0.1:{port}",
        }
        async with (
            open_broker() as broker,
            gateway(directory, broker.url, settings) as running,
            open_store(RedisSettings(url=f"embedded:{directory}"), None) as store,
            open_session(MqttSettings(url=broker.url), "bench-watch") as watch,
        ):
            there = Plant(running, store, f"http://127.0.0.1:{port}/metrics")
            await watch.subscribe("app/jobs/+/alarms", there.note_alarm)
            yield there, broker.url


async def publish(plant: Plant, url: str, rate: int, seconds: float) -> int:
    """Publish samples of QoS 0 in turn of their tags, with probes among them; return their number."""
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    writer.write(_CONNECT)
    await reader.read(64)
    packets = [_packet(tag, 60 + tag / 10) for tag in range(_TAGS)]
    began, sent, probed = time.perf_counter(), 0, 0
    total = int(rate * seconds)
    while sent < total:
        passed = time.perf_counter() - began
        due = min(total, int(passed * rate))
        chunk = [packets[number % _TAGS] for number in range(sent, due)]
        while passed > (probed + 5) * _PROBE_S:
            tag, is_high = probed % _TAGS, probed // _TAGS % 2 == 0
            # Each value is published once: the alarm names it.
            value = 90 + len(plant.probes) / 1e6 if is_high else 60.0
            if is_high:
                plant.probes[value] = time.perf_counter()
            packets[tag] = _packet(tag, value)
            chunk.append(packets[tag])
            probed += 1
            total += 1
            due += 1
        writer.write(b"".join(chunk))
        await writer.drain()
        sent = due
        await asyncio.sleep(_TICK_S)
    writer.close()
    return sent


def _packet(tag: int, value: float) -> bytes:
    return encode_publish(Message(f"line/{tag}/temperature", json.dumps(value).encode()), 0)


async def at_rate(rate: int, seconds: float) -> Row:
    """Measure a rate: CPU of the gateway, time to the alarm, what was dropped and what was lost without a count."""
    async with plant() as (there, url):
        await publish(there, url, 500, 1.0)
        await asyncio.sleep(_SETTLE_S)
        processed, dropped, cpu = await there.processed(), await there.dropped(), there.running.cpu_s()
        began = time.perf_counter()
        offered = await publish(there, url, rate, seconds)
        ended = time.perf_counter()
        cpu = there.running.cpu_s() - cpu
        await asyncio.sleep(_SETTLE_S)
        dropped = await there.dropped() - dropped
        taken = await there.processed() - processed
        return Row(
            "samples from the broker",
            conc=rate,
            aof="everysec",
            cpu_percent=round(cpu / (ended - began) * 100, 1),
            latency_ms=spread(there.latencies(began, ended)),
            rss_kb=there.running.rss_kb(),
            dropped=dropped,
            # The gateway has samples of its own, a few a second.
            lost=max(0, offered - taken - dropped),
        )


async def stalled(rate: int, seconds: float = 10.0) -> Row:
    """Measure how long alarms are late after the store stood still for a second."""
    async with plant() as (there, url):
        await publish(there, url, 500, 1.0)
        pid = int((await there.store.execute("INFO"))["process_id"])
        publishing = asyncio.create_task(publish(there, url, rate, seconds), name="publish")
        await asyncio.sleep(3.0)
        os.kill(pid, signal.SIGSTOP)
        try:
            await asyncio.sleep(1.0)
        finally:
            os.kill(pid, signal.SIGCONT)
        resumed = time.perf_counter()
        await publishing
        await asyncio.sleep(_SETTLE_S)
        late = [at for value, at in there.probes.items() if there.raised.get(value, at + 60.0) - at > P95_MS / 1000]
        last = max((at for at in late), default=resumed)
        return Row(
            "store stalls a second",
            conc=rate,
            aof="everysec",
            recovery_s=round(max(0.0, last - resumed), 2),
            rss_kb=there.running.rss_kb(),
            dropped=await there.dropped(),
        )


def is_broken(row: Row) -> bool:
    """Return whether samples were dropped or lost, or alarms came late."""
    late = row.latency_ms is None or row.latency_ms["p95"] > P95_MS
    return bool(row.dropped or row.lost or late)


async def breaking_rate(seconds: float = 5.0) -> AsyncIterator[Row]:
    """Search the rate at which the gateway breaks: it doubles until then, and is halved in between three times."""
    good, bad = 0, 2_000
    while not is_broken(row := await at_rate(bad, seconds)):
        yield row
        good, bad = bad, 2 * bad
    yield row
    for _ in range(3):
        row = await at_rate((good + bad) // 2, seconds)
        yield row
        good, bad = (good, (good + bad) // 2) if is_broken(row) else ((good + bad) // 2, bad)
    yield Row("highest rate that holds", samples_per_s=good)

"""Kills gateway, store and broker under 200 samples a second, and compares the alarms with those of the samples."""

import json
import random
import subprocess
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from edge.features.telemetry.rules.evaluator import RuleEvaluator
from edge.features.telemetry.rules.rule_form import parse_rules
from edge.ports.batch import decode_batch, plausible_time
from edge.ports.sample_lines import Sample
from edge.store.reads import Entry
from tests.outside.mqtt_client import MqttClient
from tests.outside.servers import PREFIX, SCOPE, Broker, Gateway, Store, ended, wait_for

TAGS = 20
SAMPLES_PER_SECOND = 200
STREAM = "microdcs-edge:telemetry"
CHANGES = "microdcs-edge:alarms:changes"
ALARMS = "microdcs-edge:alarms"
TARGETS = ("gateway", "gateway", "gateway", "gateway", "store", "broker", "gateway and store")
_STILL_S = 3.0
FINDINGS = {"raised", "escalated", "eased", "cleared"}
RULES: list[dict[str, Any]] = [
    {
        "id": "hot",
        "kind": "limit",
        "tag": "t*",
        "limits": {"high": {"at": 80, "severity": 500}, "high_high": {"at": 95, "severity": 800}},
        "hysteresis": 10,
    },
    # A window of all samples: one that is lost or doubled changes what deviates.
    {"id": "odd", "kind": "baseline", "tag": "t1*", "severity": 300, "window_seconds": 86_400, "sigma": 2.2},
    {"id": "drift", "kind": "control_chart", "tag": "t2", "severity": 400, "learn": 50, "nelson": [1, 2]},
    {"id": "bad", "kind": "share", "tag": "ok", "severity": 600, "bad": 3, "of": 10},
]


@dataclass
class TelemetryFigures:
    """What a campaign saw: kills, samples in the stream, and the findings that are expected and found by subject."""

    kills: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    sent: int = 0
    samples: int = 0
    expected: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    found: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    published: int = 0
    unpublished: list[str] = field(default_factory=list)
    odd: list[str] = field(default_factory=list)

    def faults(self) -> Iterator[str]:
        """Yield what must not be."""
        for subject in sorted(self.expected.keys() | self.found.keys()):
            expected, found = self.expected.get(subject, []), self.found.get(subject, [])
            if expected != found:
                yield f"{subject}: {len(found)} findings {found[-5:]}, expected {len(expected)} {expected[-5:]}"
        yield from self.odd
        if self.unpublished:
            yield f"the MES did not receive {self.unpublished[:5]}"


def carry_out(
    kills: int, directory: Path, seed: int, report: Callable[[str], None] = lambda _: None
) -> TelemetryFigures:
    """Send samples, kill so often, and collect what came of it."""
    chance, figures, began = random.Random(seed), TelemetryFigures(), time.monotonic()
    broker, store = Broker(directory / "broker"), Store(directory / "store")
    with ended(broker, store):
        broker.start()
        _start(store)
        gateway = Gateway(directory / "gateway", "edge", _settings(directory, broker, store))
        sensor = MqttClient(broker.port, "sensor")
        mes = MqttClient(broker.port, "mes", session_expiry=3600)
        with ended(gateway):
            gateway.start()
            for client in (sensor, mes):
                client.connect()
            mes.subscribe(f"{PREFIX}/{SCOPE}/alarms")
            with _sending(sensor, chance.randrange(1 << 30), figures):
                while figures.kills.total() < kills:
                    time.sleep(chance.uniform(0.2, 1.5))
                    target = chance.choice(TARGETS)
                    _strike(target, gateway, store, broker, chance)
                    figures.kills[target] += 1
                    if figures.kills.total() % 10 == 0:
                        report(f"{figures.kills.total()} kills, {figures.sent} samples sent")
            _wait_until_still(store)
            _collect(store, mes, figures)
            wait_for(lambda: _retained(broker) == _standing(store), "the broker retains the alarms that stand", 60)
            for client in (sensor, mes):
                client.close()
    figures.seconds = time.monotonic() - began
    return figures


def _settings(directory: Path, broker: Broker, store: Store) -> str:
    rules = directory / "rules.json"
    rules.write_text(json.dumps(RULES))
    return (
        f'[redis]\nurl = "unix://{store.socket}"\n[mqtt]\nurl = "mqtt://127.0.0.1:{broker.port}"\n'
        f'[northbound]\ntopic_prefix = "{PREFIX}"\n[opcua]\nendpoint = ""\n'
        f'[telemetry]\nrules = "{rules}"\nstream_length = 100000\n'
        '[source.sensors]\ntopic = "sensors/+"\npointer = "/v"\ntag = "{2}"\n'
    )


@contextmanager
def _sending(sensor: MqttClient, seed: int, figures: TelemetryFigures) -> Iterator[None]:
    """Send samples on a thread for the length of a block; those for a broker that is gone wait in the client."""
    over = threading.Event()
    thread = threading.Thread(target=_send, args=(sensor, random.Random(seed), figures, over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _send(sensor: MqttClient, chance: random.Random, figures: TelemetryFigures, over: threading.Event) -> None:
    levels = [70.0] * TAGS
    while not over.wait(1 / SAMPLES_PER_SECOND):
        tag = figures.sent % TAGS
        levels[tag] = min(110.0, max(40.0, levels[tag] + chance.gauss(0, 2.5)))
        name, value = (f"t{tag}", round(levels[tag], 1)) if tag else ("ok", chance.random() > 0.15)
        sensor.publish(f"sensors/{name}", json.dumps({"v": value}), {}, confirm=None)
        figures.sent += 1


def _strike(target: str, gateway: Gateway, store: Store, broker: Broker, chance: random.Random) -> None:
    """Kill a target and start it again."""
    known: dict[str, list[Gateway | Store | Broker]] = {"gateway": [gateway], "store": [store], "broker": [broker]}
    servers = known.get(target, [gateway, store])
    for server in servers:
        server.kill()
    time.sleep(chance.uniform(0, 0.3))
    for server in reversed(servers):
        _start(server)


def _start(server: Gateway | Store | Broker) -> None:
    """Start a server; a store that syncs each second only may lose what it has confirmed when it is killed."""
    server.start()
    if isinstance(server, Store):
        server.cli("CONFIG", "SET", "appendfsync", "always")


def _redis(store: Store, *command: str) -> Any:
    line = ["redis-cli", "-s", str(store.socket), "--json", *command]
    return json.loads(subprocess.run(line, capture_output=True, text=True, check=True, timeout=60).stdout)


def _is_drained(store: Store) -> bool:
    groups = store.cli("XINFO", "GROUPS", STREAM).split("\n")
    facts = dict(zip(groups[::2], groups[1::2], strict=False))
    return facts.get("pending") == "0" and facts.get("lag") == "0"


def _wait_until_still(store: Store) -> None:
    """Wait until no sample comes any more, and every one is evaluated."""
    length, since = "", time.monotonic()

    def is_still() -> bool:
        nonlocal length, since
        if not _is_drained(store) or store.cli("XLEN", STREAM) != length:
            length, since = store.cli("XLEN", STREAM), time.monotonic()
        return time.monotonic() - since > _STILL_S

    wait_for(is_still, "every sample is evaluated", 120)


def _collect(store: Store, mes: MqttClient, figures: TelemetryFigures) -> None:
    figures.expected, figures.samples = _expected(_entries(store, STREAM))
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    ids = []
    for entry in _entries(store, CHANGES):
        alarm = json.loads(entry.fields["alarm"])
        ids.append(f"alarm/{entry.entry_id}")
        if entry.fields["kind"] in FINDINGS and not alarm["rule"].startswith("gateway."):
            found[alarm["rule"], alarm["subject"]].append(entry.fields["kind"])
    figures.found = dict(found)
    events: dict[str, bytes] = {}
    with suppress(AssertionError):
        mes.wait(
            lambda: {received.attributes.get("id") for received in list(mes.received)} >= set(ids), "all events", 20
        )
    for item in list(mes.received):
        known = events.setdefault(item.attributes["id"], item.payload)
        if known != item.payload:
            figures.odd.append(f"event {item.attributes['id']} came with two contents")
    figures.published = len(events)
    figures.unpublished = sorted(set(ids) - events.keys())
    figures.odd += [f"event {event} is none of the store" for event in sorted(events.keys() - set(ids))]
    if store.cli("XLEN", f"{STREAM}:dlq") != "0":
        figures.odd.append("batches were set aside")


def _entries(store: Store, key: str) -> Iterator[Entry]:
    for entry_id, flat in _redis(store, "XRANGE", key, "-", "+"):
        yield Entry(entry_id, dict(zip(flat[::2], flat[1::2], strict=True)))


def _expected(entries: Iterator[Entry]) -> tuple[dict[tuple[str, str], list[str]], int]:
    """Return the findings of all samples of the stream, each batch once, and the number of samples."""
    rules, _ = parse_rules(RULES)
    evaluator, producers, at, count = RuleEvaluator(rules, 0), dict[str, int](), 0, 0
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for entry in entries:
        batch, _ = decode_batch(entry.fields)
        if batch.producer and producers.get(batch.producer, 0) >= batch.number:
            continue
        producers[batch.producer] = batch.number
        for line in batch.lines:
            if isinstance(line, Sample):
                at, count = max(at, plausible_time(line.at, batch.arrived_at)), count + 1
                placed = replace(line, at=at)
                for ordered_finding in evaluator.feed(placed):
                    found[ordered_finding.finding.rule, ordered_finding.finding.subject].append(
                        ordered_finding.finding.event.value
                    )
    return dict(found), count


def _standing(store: Store) -> set[str]:
    return set(_redis(store, "HKEYS", ALARMS)) - {"rev"}


def _retained(broker: Broker) -> set[str]:
    client = MqttClient(broker.port, f"look-{time.monotonic_ns()}")
    client.connect()
    try:
        client.subscribe(f"{PREFIX}/{SCOPE}/alarm/+")
        client.subscribe(f"{PREFIX}/echo")
        client.publish(f"{PREFIX}/echo", "x", {})
        client.wait(lambda: any(received.topic == f"{PREFIX}/echo" for received in list(client.received)), "the echo")
        topics = {received.topic: received.payload for received in list(client.received) if "/alarm/" in received.topic}
    finally:
        client.close()
    return {topic.rpartition("/")[2] for topic, payload in topics.items() if payload}

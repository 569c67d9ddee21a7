"""`make bench`: measures the engine and the gateway, prints one table, writes JSON lines on demand.

Figures of one run are comparable with each other only: read the ratios to the floor, which is measured in the same run.
"""

import argparse
import json
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import uvloop
from rich.console import Console
from rich.table import Table

from tests.bench import engine, gateway, opcua
from tests.bench.measure import Row

COLUMNS: tuple[tuple[str, Callable[[Row], object]], ...] = (
    ("scenario", lambda row: row.scenario),
    ("steps", lambda row: row.steps),
    ("conc", lambda row: row.conc),
    ("stored", lambda row: row.stored_jobs),
    ("aof", lambda row: row.aof),
    ("latency ms (median)", lambda row: row.latency_ms and row.latency_ms["median"]),
    ("p95", lambda row: row.latency_ms and row.latency_ms["p95"]),
    ("p99", lambda row: row.latency_ms and row.latency_ms["p99"]),
    ("ms/step", lambda row: row.step_ms),
    ("steps/s", lambda row: row.steps_per_s),
    ("cpu s/1000", lambda row: row.cpu_s_per_1000_steps),
    ("trips/step", lambda row: row.round_trips_per_step),
    ("aof B/step", lambda row: row.aof_bytes_per_step),
    ("idle %", lambda row: row.idle_cpu_percent),
    ("ready s", lambda row: row.ready_s),
    ("rss MB", lambda row: row.rss_kb and row.rss_kb // 1024),
)


async def quick() -> AsyncIterator[Row]:
    """Measure what tells most, within 100 s."""
    yield await engine.floor("everysec", 3000)
    yield await engine.run_jobs("linear", 10, 1, "everysec", 0)
    yield await engine.run_jobs("linear", 200, 1, "everysec", 0)
    yield await engine.run_jobs("conc", 10, 100, "everysec", 0)
    yield await gateway.over_mqtt(10, 10)
    for row in await gateway.start_and_idle(10):
        yield row
    async for row in opcua.reads_beside_changes(5):
        yield row


async def full() -> AsyncIterator[Row]:
    """Measure everything."""
    for aof in ("everysec", "always"):
        yield await engine.floor(aof, 5000)
        for steps in (10, 50, 200, 500):
            yield await engine.run_jobs("linear", steps, 1, aof, 0)
        for conc in (10, 100):
            yield await engine.run_jobs("conc", 50, conc, aof, 0)
    yield await engine.run_jobs("linear", 50, 1, "everysec", 10_000)
    yield await engine.run_jobs("conc", 10, 1000, "everysec", 0)
    for conc in (1, 10, 100):
        yield await gateway.over_mqtt(50, conc)
    for row in await gateway.start_and_idle(30):
        yield row
    async for row in opcua.reads_beside_changes(20):
        yield row


def show(rows: list[Row]) -> None:
    """Print the table."""
    table = Table(title="microdcs-edge: compare within this run only")
    for title, _ in COLUMNS:
        table.add_column(title, justify="right")
    for row in rows:
        table.add_row(*("" if (value := read(row)) is None else f"{value}" for _, read in COLUMNS))
    Console(width=None if sys.stdout.isatty() else 200).print(table)


async def measure(arguments: argparse.Namespace) -> None:
    """Measure, telling each row as it comes."""
    rows = []
    lines = arguments.json.open("w", encoding="utf-8") if arguments.json else None
    async for row in quick() if arguments.quick else full():
        rows.append(row)
        sys.stderr.write(json.dumps(row.as_json()) + "\n")
        if lines:
            lines.write(json.dumps(row.as_json()) + "\n")
            lines.flush()
    if lines:
        lines.close()
    show(rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="make bench ARGS=", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the telling scenarios only, within 100 s")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write one JSON object a row to FILE, too")
    uvloop.run(measure(parser.parse_args()))

"""`make bench`: measures the engine and the gateway, prints one table, writes JSON lines on demand.

Figures of one run are comparable with each other only: read the ratios to the floor, which is measured in the same run.
"""

import argparse
import json
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import uvloop
from rich.console import Console
from rich.table import Table

from tests.bench import engine, flows, gateway, opcua, telemetry
from tests.bench.measure import Row, summarise, verdict, with_ratios
from tests.bench.memory import memory_over_jobs

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
    ("x floor", lambda row: row.floor_ratio),
    ("cpu x floor", lambda row: row.cpu_ratio),
    ("spread of x floor", lambda row: row.spread and row.spread.get("floor_ratio")),
    ("steps/s", lambda row: row.steps_per_s),
    ("cpu s/1000", lambda row: row.cpu_s_per_1000_steps),
    ("cpu %", lambda row: row.cpu_percent),
    ("trips/step", lambda row: row.round_trips_per_step),
    ("aof B/step", lambda row: row.aof_bytes_per_step),
    ("idle %", lambda row: row.idle_cpu_percent),
    ("ready s", lambda row: row.ready_s),
    ("x alone", lambda row: row.times_alone),
    ("alarms in 100 ms", lambda row: row.alarms_in_time),
    ("dropped", lambda row: row.dropped),
    ("lost", lambda row: row.lost),
    ("rss MB", lambda row: row.rss_kb and row.rss_kb // 1024),
)


ROUNDS = 3


async def quick() -> AsyncIterator[Row]:
    """Measure what matters most, 1,000 steps a scenario."""
    for row in await engine.floors("everysec", 2000):
        yield row
    yield await engine.run_jobs("linear", 10, 1, "everysec", 0)
    yield await engine.run_jobs("linear", 200, 1, "everysec", 0)
    yield await engine.run_jobs("conc", 10, 100, "everysec", 0)
    yield await flows.node_tasks("everysec")
    yield await flows.flows_every_second("everysec", 5)
    yield await gateway.over_mqtt(10, 10)
    for row in await gateway.start_and_idle(5):
        yield row
    async for row in telemetry.beside_jobs(1_000):
        yield row


async def full() -> AsyncIterator[Row]:
    """Measure everything."""
    for aof in ("everysec", "always"):
        for row in await engine.floors(aof, 5000):
            yield row
        for steps in (10, 50, 200, 500):
            yield await engine.run_jobs("linear", steps, 1, aof, 0)
        for conc in (10, 100):
            yield await engine.run_jobs("conc", 50, conc, aof, 0)
        yield await flows.node_tasks(aof, 2000)
        yield await flows.flows_every_second(aof, 10)
    yield await flows.waiting_flows(20)
    yield await engine.run_jobs("linear", 50, 1, "everysec", 10_000)
    yield await engine.run_jobs("conc", 10, 1000, "everysec", 0)
    for conc in (1, 10, 100):
        yield await gateway.over_mqtt(50, conc)
    for row in await gateway.start_and_idle(30):
        yield row
    async for row in opcua.reads_beside_changes(20):
        yield row


async def samples() -> AsyncIterator[Row]:
    """Measure telemetry: a thousand samples a second, ten thousand, in memory, and next to jobs."""
    yield await telemetry.load(1_000, 10)
    yield await telemetry.load(1_000, 10, volatile=True)
    yield await telemetry.load(10_000, 5)
    for rate in (1_000, 10_000):
        async for row in telemetry.beside_jobs(rate):
            yield row


def _scenarios(arguments: argparse.Namespace) -> AsyncIterator[Row]:
    if arguments.memory:
        return memory_over_jobs(arguments.memory)
    if arguments.telemetry:
        return samples()
    return quick() if arguments.quick else full()


def show(rows: list[Row]) -> None:
    """Print the table."""
    table = Table(title="microdcs-edge: compare within this run only")
    for title, _ in COLUMNS:
        table.add_column(title, justify="right")
    for row in rows:
        table.add_row(*("" if (value := read(row)) is None else f"{value}" for _, read in COLUMNS))
    Console(width=None if sys.stdout.isatty() else 200).print(table)


def _scenario(row: Row) -> tuple[object, ...]:
    return row.scenario, row.steps, row.conc, row.stored_jobs, row.aof


async def measure(arguments: argparse.Namespace) -> None:
    """Measure all scenarios in each round, then print the median of each."""
    rounds: dict[tuple[object, ...], list[Row]] = {}
    for _ in range(arguments.rounds):
        floor = Row("floor")
        async for row in _scenarios(arguments):
            floor = row if row.scenario == "floor" else floor
            measured = with_ratios(row, floor)
            rounds.setdefault(_scenario(row), []).append(measured)
            sys.stderr.write(json.dumps(measured.as_json()) + "\n")
    rows = [summarise(each) for each in rounds.values()]
    show(rows)
    if arguments.json:
        arguments.json.write_text("".join(json.dumps(row.as_json()) + "\n" for row in rows), encoding="utf-8")
    if arguments.compare:
        compare(rows, [Row(**json.loads(line)) for line in arguments.compare.read_text("utf-8").splitlines()])


def compare(rows: Sequence[Row], before: Sequence[Row]) -> None:
    """Print each figure that both runs have: better, worse, or within the spread of the rounds."""
    known = {_scenario(row): row for row in before}
    for row in rows:
        old = known.get(_scenario(row))
        for name in (row.spread or {}) if old else ():
            if old and name in (old.spread or {}):
                sys.stdout.write(
                    f"{row.scenario} {row.steps or ''} x {row.conc or 1} {name}: {verdict(name, row, old)}\n"
                )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="make bench ARGS=", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the most telling scenarios only")
    parser.add_argument("--memory", type=int, metavar="JOBS", help="the memory over so many jobs, and nothing else")
    parser.add_argument("--telemetry", action="store_true", help="samples and rules only")
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N", help="rounds whose median counts")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write one JSON object a scenario to FILE")
    parser.add_argument("--compare", type=Path, metavar="FILE", help="compare with the JSON of an earlier run")
    uvloop.run(measure(parser.parse_args()))

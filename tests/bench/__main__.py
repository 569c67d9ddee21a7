"""`make bench`: measures the engine and the gateway, prints tables, writes JSON lines on demand.

Figures of one run are comparable with each other only: read the ratios to the floor, which is measured in the same run.
"""

import argparse
import json
import shutil
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import structlog
import uvloop

from tests.bench import engine, flows, gateway, mqtt, opcua, sample_rate, telemetry
from tests.bench.measure import Row, fixed_per_job, summarise, verdict, with_ratios
from tests.bench.memory import memory_over_jobs
from tests.bench.table import label, written

ROUNDS = 3


async def quick() -> AsyncIterator[Row]:
    """Measure what matters most, 1,000 steps a scenario."""
    for row in await engine.floors("everysec", 2000):
        yield row
    short, long = [await engine.run_jobs("linear", steps, 1, "everysec", 0) for steps in (10, 200)]
    for row in (short, long, fixed_per_job(short, long)):
        yield row
    yield await engine.run_jobs("conc", 10, 100, "everysec", 0)
    yield await flows.node_tasks("everysec")
    yield await flows.flows_every_second("everysec", 5)
    yield await mqtt.over_mqtt(10, 10)
    for row in await gateway.start_and_idle(5):
        yield row
    async for row in telemetry.beside_jobs(1_000):
        yield row


async def full() -> AsyncIterator[Row]:
    """Measure everything."""
    for aof in ("everysec", "always"):
        for row in await engine.floors(aof, 5000):
            yield row
        linear = [await engine.run_jobs("linear", steps, 1, aof, 0) for steps in (10, 50, 200, 500)]
        for row in (*linear, fixed_per_job(linear[0], linear[2])):
            yield row
        for conc in (10, 100):
            yield await engine.run_jobs("conc", 50, conc, aof, 0)
        yield await flows.node_tasks(aof, 2000)
        yield await flows.flows_every_second(aof, 10)
    yield await flows.waiting_flows(20)
    yield await engine.run_jobs("linear", 50, 1, "everysec", 10_000)
    yield await engine.run_jobs("conc", 10, 1000, "everysec", 0)
    for conc in (1, 10, 100):
        yield await mqtt.over_mqtt(50, conc)
    for row in await gateway.start_and_idle(30):
        yield row
    async for row in opcua.reads_beside_changes(20):
        yield row


async def samples() -> AsyncIterator[Row]:
    """Measure telemetry: a thousand samples a second, ten thousand, in memory, and next to jobs."""
    yield await telemetry.load(1_000, 10)
    yield await telemetry.load(1_000, 10, volatile=True)
    yield await telemetry.load(10_000, 5)
    async for row in from_broker():
        yield row
    for rate in (1_000, 6_000, 10_000):
        async for row in telemetry.beside_jobs(rate):
            yield row


async def from_broker() -> AsyncIterator[Row]:
    """Measure samples from the broker on: the goal, a stall of the store, an overload, the rate that is too high."""
    yield await sample_rate.at_rate(sample_rate.GOAL, 10)
    yield await sample_rate.stalled(sample_rate.GOAL)
    yield await sample_rate.at_rate(10_000, 10)
    async for row in sample_rate.breaking_rate():
        yield row


def _scenarios(arguments: argparse.Namespace) -> AsyncIterator[Row]:
    if arguments.memory:
        return memory_over_jobs(arguments.memory)
    if arguments.telemetry:
        return samples()
    if arguments.samples:
        return from_broker()
    return quick() if arguments.quick else full()


def show(rows: list[Row]) -> None:
    """Print the tables, as wide as the terminal or as COLUMNS says."""
    width = shutil.get_terminal_size((120, 24)).columns
    sys.stdout.write("microdcs-edge: compare within this run only; in brackets smallest and largest of the rounds\n\n")
    sys.stdout.write(f"{written(rows, width)}\n")


async def measure(arguments: argparse.Namespace) -> None:
    """Measure all scenarios in each round, then print the median of each."""
    rounds: dict[str, list[Row]] = {}
    for _ in range(arguments.rounds):
        floors: dict[str | None, Row] = {}
        async for row in _scenarios(arguments):
            if row.scenario == "floor":
                floors[row.aof] = row
            measured = with_ratios(row, floors.get(row.aof))
            rounds.setdefault(label(row), []).append(measured)
            sys.stderr.write(json.dumps(measured.as_json()) + "\n")
    rows = [summarise(item) for item in rounds.values()]
    show(rows)
    if arguments.json:
        arguments.json.write_text("".join(json.dumps(row.as_json()) + "\n" for row in rows), encoding="utf-8")
    if arguments.compare:
        compare(rows, [Row(**json.loads(line)) for line in arguments.compare.read_text("utf-8").splitlines()])


def compare(rows: Sequence[Row], before: Sequence[Row]) -> None:
    """Print each figure that both runs have: better, worse, or within the spread of the rounds."""
    known = {label(row): row for row in before}
    for row in rows:
        old = known.get(label(row))
        for name in (row.spread or {}) if old else ():
            if old and name in (old.spread or {}):
                sys.stdout.write(f"{label(row)}, {name}: {verdict(name, row, old)}\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="make bench ARGS=", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the most telling scenarios only")
    parser.add_argument("--memory", type=int, metavar="JOBS", help="the memory over so many jobs, and nothing else")
    parser.add_argument("--telemetry", action="store_true", help="samples and rules only")
    parser.add_argument("--samples", action="store_true", help="samples from the broker on: goal, stall, breaking rate")
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N", help="rounds whose median counts")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write one JSON object a scenario to FILE")
    parser.add_argument("--compare", type=Path, metavar="FILE", help="compare with the JSON of an earlier run")
    # The tables and nothing else are the output.
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    uvloop.run(measure(parser.parse_args()))

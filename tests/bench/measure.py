"""What a measurement is: one row of figures, and how they are read from the process and from Redis."""

import resource
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from edge.store.client import Store


@dataclass(slots=True)
class Row:
    """One scenario's figures; None where a figure has no meaning. Field names are those of the JSON lines."""

    scenario: str
    steps: int | None = None
    conc: int | None = None
    stored_jobs: int | None = None
    aof: str | None = None
    latency_ms: dict[str, float] | None = None
    step_ms: float | None = None
    jobs_per_s: float | None = None
    steps_per_s: float | None = None
    cpu_s_per_1000_steps: float | None = None
    cpu_percent: float | None = None
    """CPU of this process in percent of one core, under a load of a given rate."""
    round_trips_per_step: float | None = None
    aof_bytes_per_step: float | None = None
    cpu_ms_per_job: float | None = None
    """What a job takes whatever its length, like the two figures below."""
    round_trips_per_job: float | None = None
    aof_bytes_per_job: float | None = None
    idle_cpu_percent: float | None = None
    ready_s: float | None = None
    cpu_s: float | None = None
    """CPU time of a process until it was ready."""
    lists_received: int | None = None
    rss_kb: int | None = None
    lost: int | None = None
    """Samples that were neither evaluated nor counted as dropped."""
    dropped: int | None = None
    alarms_in_time: float | None = None
    """Part of the alarms that were committed within 100 ms after the arrival of their batch."""
    samples_per_s: int | None = None
    recovery_s: float | None = None
    """Time after the end of a stall from which on alarms are not late."""
    times_alone: float | None = None
    """Time of a step under samples as a multiple of that without, in the same round."""
    floor_ratio: float | None = None
    """Time of a step as a multiple of the raw floor of the same round."""
    cpu_ratio: float | None = None
    """CPU time of a step as a multiple of the raw floor's, in the same round."""
    spread: dict[str, tuple[float, float]] | None = None
    """The smallest and the largest value of each figure over all rounds; the figures are medians then."""

    def as_json(self) -> dict[str, Any]:
        """Return the figures that were measured."""
        return {name: value for name, value in asdict(self).items() if value is not None}


FIGURES = (
    "step_ms",
    "jobs_per_s",
    "steps_per_s",
    "cpu_s_per_1000_steps",
    "cpu_percent",
    "round_trips_per_step",
    "aof_bytes_per_step",
    "cpu_ms_per_job",
    "round_trips_per_job",
    "aof_bytes_per_job",
    "idle_cpu_percent",
    "ready_s",
    "cpu_s",
    "lists_received",
    "rss_kb",
    "lost",
    "dropped",
    "alarms_in_time",
    "samples_per_s",
    "recovery_s",
    "times_alone",
    "floor_ratio",
    "cpu_ratio",
)
"""The figures of a row that are summarised over rounds and compared between runs."""
MORE_IS_BETTER = {"jobs_per_s", "steps_per_s", "lists_received", "alarms_in_time", "samples_per_s"}


def with_ratios(row: Row, floor: Row | None) -> Row:
    """Return a row with its ratios to the raw floor of the same round and the same durability."""
    if floor and floor.cpu_s_per_1000_steps and row.cpu_ms_per_job:
        return replace(row, cpu_ratio=round(row.cpu_ms_per_job / floor.cpu_s_per_1000_steps, 1))
    if not (floor and row.step_ms and floor.step_ms and row.cpu_s_per_1000_steps and floor.cpu_s_per_1000_steps):
        return row
    return replace(
        row,
        floor_ratio=round(row.step_ms / floor.step_ms, 2),
        cpu_ratio=round(row.cpu_s_per_1000_steps / floor.cpu_s_per_1000_steps, 2),
    )


def fixed_per_job(short: Row, long: Row) -> Row:
    """Return what a job takes whatever its length: where the line through jobs of two lengths meets no step at all."""

    def fixed(name: str) -> float:
        (steps, per_step), (more_steps, each_of_more) = ((row.steps or 0, getattr(row, name)) for row in (short, long))
        return float(steps * more_steps * (per_step - each_of_more) / (more_steps - steps))

    return Row(
        "job without steps",
        aof=short.aof,
        # A second for a thousand steps is a millisecond for each.
        cpu_ms_per_job=round(fixed("cpu_s_per_1000_steps"), 3),
        round_trips_per_job=round(fixed("round_trips_per_step"), 1),
        aof_bytes_per_job=round(fixed("aof_bytes_per_step")),
    )


def summarise(rounds: Sequence[Row]) -> Row:
    """Return the median of each figure over the rounds of one scenario, with its spread."""
    found = {name: [value for row in rounds if (value := getattr(row, name)) is not None] for name in FIGURES}
    return replace(
        rounds[-1],
        latency_ms=_median_latency(rounds),
        spread={name: (min(values), max(values)) for name, values in found.items() if values},
        **{name: statistics.median(values) for name, values in found.items() if values},
    )


def _median_latency(rounds: Sequence[Row]) -> dict[str, float] | None:
    latencies = [row.latency_ms for row in rounds if row.latency_ms]
    return (
        {name: statistics.median(latency[name] for latency in latencies) for name in latencies[0]}
        if latencies
        else None
    )


def verdict(name: str, now: Row, before: Row) -> str:
    """Return whether a figure is better, worse, or within the spread of both runs: noise."""
    new, old = getattr(now, name), getattr(before, name)
    (low, high), (old_low, old_high) = (now.spread or {})[name], (before.spread or {})[name]
    if low <= old_high and old_low <= high:
        return f"noise ({new:g}, before {old:g})"
    improved = (new > old) == (name in MORE_IS_BETTER)
    return f"{'better' if improved else 'WORSE'} ({new:g}, before {old:g}, x {new / old:.2f})" if old else "noise"


def spread(seconds: Sequence[float]) -> dict[str, float]:
    """Summarise latencies, in milliseconds."""
    ordered = sorted(second * 1000 for second in seconds)
    return {
        "median": round(statistics.median(ordered), 4),
        "min": round(ordered[0], 4),
        "p95": round(ordered[int(0.95 * (len(ordered) - 1))], 4),
        "p99": round(ordered[int(0.99 * (len(ordered) - 1))], 4),
        "max": round(ordered[-1], 4),
        "n": len(ordered),
    }


@dataclass(slots=True)
class Meter:
    """Reads clock, CPU of this process, and the counters of Redis, before and after."""

    store: Store
    _began: dict[str, float] = field(default_factory=dict)

    async def start(self) -> None:
        """Take the first reading."""
        self._began = await self._read()

    async def since_start(self) -> dict[str, float]:
        """Return the differences since then: `wall` and `cpu` in seconds, `trips` of clients, `aof` bytes."""
        now = await self._read()
        return {name: now[name] - began for name, began in self._began.items()}

    async def _read(self) -> dict[str, float]:
        reported: Mapping[str, str] = await self.store.execute("INFO", "everything")
        return {
            "wall": time.perf_counter(),
            "cpu": time.process_time(),
            # One read event of the server is one request of a client, or one pipeline of them.
            "trips": float(reported["total_reads_processed"]),
            # What is written and what waits in the server's buffer to be written.
            "aof": float(reported.get("aof_current_size", 0)) + float(reported.get("aof_buffer_length", 0)),
        }


def rss_kb() -> int:
    """Return the largest memory of this process so far, in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

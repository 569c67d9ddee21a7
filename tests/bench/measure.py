"""What a measurement is: one row of figures, and how they are read from the process and from Redis."""

import resource
import statistics
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
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
    round_trips_per_step: float | None = None
    aof_bytes_per_step: float | None = None
    idle_cpu_percent: float | None = None
    ready_s: float | None = None
    rss_kb: int | None = None

    def as_json(self) -> dict[str, Any]:
        """Give the figures that were measured."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def spread(seconds: Sequence[float]) -> dict[str, float]:
    """Summarise latencies, in milliseconds."""
    ordered = sorted(each * 1000 for each in seconds)
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
        """Give what happened since: `wall` and `cpu` in seconds, `trips` of clients, `aof` bytes."""
        now = await self._read()
        return {name: now[name] - began for name, began in self._began.items()}

    async def _read(self) -> dict[str, float]:
        info = await self.store.execute("INFO", "everything")
        told = (
            info if isinstance(info, dict) else dict(line.split(":", 1) for line in info.split("\r\n") if ":" in line)
        )
        return {
            "wall": time.perf_counter(),
            "cpu": time.process_time(),
            # One read event of the server is one request of a client, or one pipeline of them.
            "trips": float(told["total_reads_processed"]),
            # What is written and what waits in the server's buffer to be written.
            "aof": float(told.get("aof_current_size", 0)) + float(told.get("aof_buffer_length", 0)),
        }


def rss_kb() -> int:
    """Give the most memory this process held, in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

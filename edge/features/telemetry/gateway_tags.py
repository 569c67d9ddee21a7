"""The gateway itself as a source of samples: equipment, store, clock, certificates, results, board, steps."""

import contextlib
import re
import resource
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from edge.app.parts import GatewayParts
from edge.features.telemetry.built_in_rules import STEP_OVERDUE
from edge.features.telemetry.rules.baseline import Moments
from edge.foundation.clock_sync import Clock, read_clock, read_offset_ms
from edge.foundation.computer import BoardSensors
from edge.foundation.errors import Unavailable
from edge.foundation.ticks import next_tick
from edge.model.isa95 import JobOrder
from edge.ports.sample_lines import Line, Occurrence, Quality, Sample
from edge.sfc.intervention import held_failures
from edge.sfc.run import ActionState
from edge.station.decision import LoadedJob
from edge.station.equipment import EquipmentPort
from edge.station.runs import Progress
from edge.store import ended_jobs
from edge.store import stream_of_samples as telemetry
from edge.store.store_repair import find_repairs

MIN_RUNS: Final = 20
"""Runs of a step before its usual time is known."""
_TIMES_MEAN: Final = 2
_SIGMAS: Final = 6
_MAX_STEPS: Final = 2_000
"""Maximum number of steps whose times are kept."""


class OverdueStep(Struct, frozen=True):
    """A step that is active for longer than usual; times are in seconds."""

    job_id: str
    step: str
    seconds: float
    usual: float


class StepTimes:
    """The usual times of steps since the start of this process, by recipe and step; pauses do not count."""

    def __init__(self) -> None:
        self._times: dict[tuple[str, str], Moments] = {}
        self._found: set[tuple[str, str, int]] = set()
        """Activations that were found overdue: job, step and count."""

    def watch(self, progress: Progress) -> None:
        """Record the times of the steps that a decision has left."""
        loaded = progress.loaded
        for change in progress.steps:
            state = loaded.stored.run.steps.get(change.step)
            if change.active or state is None or state.active:
                continue
            key = (_recipe(loaded.job.order), change.step)
            moments = self._times.get(key)
            if moments is None and len(self._times) >= _MAX_STEPS:
                continue
            if (loaded.job.job_id, change.step, state.count) not in self._found:
                self._times[key] = (moments or Moments()).add(state.elapsed_ms)

    def overdue(self, runs: Mapping[str, LoadedJob], now: int) -> Iterator[OverdueStep]:
        """Yield each activation of a step that takes longer than twice its mean and six standard deviations, once."""
        self._found = {row for row in self._found if row[0] in runs}
        for job_id, loaded in runs.items():
            run = loaded.stored.run
            if run.paused or run.ended:
                continue
            recipe = _recipe(loaded.job.order)
            for step in run.active:
                moments, state = self._times.get((recipe, step)), run.steps[step]
                if moments is None or moments.count < MIN_RUNS or (job_id, step, state.count) in self._found:
                    continue
                took = state.t(now)
                if took > max(_TIMES_MEAN * moments.mean, moments.mean + _SIGMAS * moments.deviation):
                    self._found.add((job_id, step, state.count))
                    yield OverdueStep(job_id, step, round(took / 1000, 1), round(moments.mean / 1000, 1))


def _recipe(order: JobOrder) -> str:
    return order.work_master_id[0].id if order.work_master_id else ""


_STORE_FULLNESS: Final = "gateway.store_fullness"
_MARKS_OF: Final = "gateway.marks_of."
_LEVEL: Final = re.compile(r"[^\w/-]+")
"""What a level of a tag may not hold."""
_MOST_SENDERS: Final = 10
_INTERVAL_S: Final = 2.0
_MACHINE_EVERY_MS: Final = 10_000
_REPAIRS: Final = "gateway.store_repairs"
_OF_STORE: Final = ("gateway.store_", "gateway.marks_", "gateway.consumer_lag")
"""Beginnings of tags that are the same for every gateway of the store."""
_REPEAT_MS: Final = 600_000
"""A value that stays is repeated so often: each time wears the flash."""
_UNKNOWN_MS: Final = 10_000
"""Equipment that can be reached and has not shown for so long whether it is present counts as connected: uncertain."""
_COUNT_EVERY_MS: Final = 60_000


class GatewayTags:
    """Samples the gateway at an interval; a value that stays is repeated every ten minutes, a lost one is bad."""

    def __init__(
        self,
        core: GatewayParts,
        put: Callable[[Line], object],
        clock: Callable[[], int],
        board: Callable[[], Iterable[tuple[str, float]]] | None = None,
        supply: Callable[[], Iterable[tuple[str, float]]] | None = None,
        servers: Callable[[], Iterable[tuple[str, float]]] = tuple,
    ) -> None:
        self._core = core
        self._put = put
        self._clock = clock
        self._last: dict[str, tuple[float | None, int]] = {}
        self._uncollected: int | None = None
        self._lag: int | None = None
        self._repairs: int | None = None
        sensors = BoardSensors()
        self._board = board or sensors.values
        self._supply = supply or sensors.supply
        self._servers = servers
        self._of_machine: tuple[tuple[str, float], ...] = ()
        self._measured_at = -_MACHINE_EVERY_MS
        self._counted_at = 0
        self._unknown_since: dict[str, int] = {}
        """Since when it is not known whether equipment is connected, by its tag."""
        self._steps = StepTimes()
        core.runs.listeners.append(self._steps.watch)

    async def run(self, interval_s: float = _INTERVAL_S) -> None:
        """Measure until cancelled."""
        while True:
            now = self._clock()
            if abs(now - self._counted_at) >= _COUNT_EVERY_MS:
                self._counted_at = now
                await self._count_results()
                with contextlib.suppress(Unavailable):
                    self._repairs = len(await find_repairs(self._core.store, self._core.settings.redis))
                    self._lag = (await telemetry.read_lengths(self._core.store)).lag
            self.sample(now)
            await next_tick(interval_s)

    def sample(self, now: int) -> None:
        """Queue the values that changed or are no longer known, or are due to be repeated."""
        values: dict[str, float | None] = dict(self._values(now))
        values |= dict.fromkeys(name for name in self._last if name not in values and name not in self._unknown_since)
        for name, value in values.items():
            last = self._last.get(name)
            if last is None or last[0] != value or abs(now - last[1]) >= _REPEAT_MS:
                self._last[name] = (value, now)
                gateway = None if self._is_of_store(name) else self._core.settings.gateway.name
                self._put(Sample(now, name, value, self._quality(name, value), gateway=gateway))
        # Instants of runs are those of the reference clock.
        for overdue_step in self._steps.overdue(self._core.active_runs.loaded, self._core.clock()):
            facts = {"step": overdue_step.step, "seconds": overdue_step.seconds, "usual": overdue_step.usual}
            self._put(Occurrence(now, STEP_OVERDUE, overdue_step.job_id, facts))

    def _is_of_store(self, name: str) -> bool:
        """Return whether a tag is the same for every gateway; repairs behind Sentinel are those of one machine."""
        is_of_machine = name == _REPAIRS and self._core.store.ha is not None
        return name.startswith(_OF_STORE) and not is_of_machine

    def _quality(self, name: str, value: float | None) -> Quality:
        if value is None:
            return Quality.BAD
        return Quality.UNCERTAIN if name in self._unknown_since else Quality.GOOD

    async def _count_results(self) -> None:
        """Count the jobs that stay beyond their time because the MES has not confirmed their results."""
        if self._core.retention.confirmation != "none":
            with contextlib.suppress(Unavailable):
                kept = [await ended_jobs.count_kept_results(self._core.store, scope) for scope in self._core.scopes]
                self._uncollected = sum(kept_results.undelivered + kept_results.unconfirmed for kept_results in kept)

    def _unknown_outcomes(self) -> Counter[str]:
        """Count the commands whose outcome the recipe or a person has yet to decide, by type."""
        counter: Counter[str] = Counter()
        for loaded in self._core.active_runs.loaded.values():
            run = loaded.stored.run
            unknown = [key for key in run.open if run.associations[key].state is ActionState.UNKNOWN]
            counter.update(loaded.net.actions[key.latest].type_id for key in unknown)
        return counter

    def _awaits_person(self) -> int:
        """Count the jobs with a failure for which a person must intervene."""
        loaded = [loaded_job for loaded_job in self._core.active_runs.loaded.values() if loaded_job.net.held]
        return sum(bool(held_failures(loaded_job.net, loaded_job.stored.run)) for loaded_job in loaded)

    def _connected(self, tag: str, equipment: EquipmentPort, now: int) -> bool | None:
        """Return whether equipment is connected; None while that is not known and may still be shown.

        Equipment over MQTT without presence is offline while the broker is away: only this ends its alarm.
        """
        connected = equipment.connected
        if connected is not None:
            self._unknown_since.pop(tag, None)
            return connected
        return True if now - self._unknown_since.setdefault(tag, now) >= _UNKNOWN_MS else None

    def _values(self, now: int) -> Iterator[tuple[str, float]]:
        maybe_active, unknown = self._core.watch.maybe_active(), self._unknown_outcomes()
        for watched_equipment in self._core.watch.watched:
            name = watched_equipment.equipment.name
            tag = f"equipment.{name}.connected"
            connected = self._connected(tag, watched_equipment.equipment, now)
            if connected is not None:
                yield tag, int(connected)
            yield f"equipment.{name}.maybe_active", int(name in maybe_active)
            yield f"equipment.{name}.fault", int(bool(watched_equipment.equipment.problem))
            yield f"equipment.{name}.answers_flooded", int(name in self._core.watch.flooding)
            yield f"equipment.{name}.skipped_results", watched_equipment.stats.skipped_since_answer
            if self._core.settings.results_folder:
                yield f"equipment.{name}.lost_traces", watched_equipment.stats.lost_since_stored
            yield f"equipment.{name}.unknown_outcomes", sum(unknown[type_id] for type_id in watched_equipment.type_ids)
        yield "gateway.jobs_await_person", self._awaits_person()
        memory = self._core.health.memory
        if memory.limit:
            yield _STORE_FULLNESS, round(memory.fullness, 2)
        elif self._last.get(_STORE_FULLNESS, (None, 0))[0]:
            yield _STORE_FULLNESS, 0  # The limit was removed: its alarm ends, before the tag has no value.
        yield "gateway.failing_tasks", self._core.store.defects.failing
        yield "gateway.marks_fullness", round(self._core.health.counts.marks.fullness, 2)
        yield from self._fullness_by_sender()
        if self._uncollected is not None:
            yield "gateway.results_uncollected", self._uncollected
        if (expiring := self._core.health.certificates.expiring) is not None:
            yield "gateway.certificates_expiring", expiring
        if (faulty := self._core.health.faulty_recipes) is not None:
            yield "gateway.faulty_recipes", faulty
        if self._repairs is not None:
            yield _REPAIRS, self._repairs
        yield from self._servers()
        if self._lag is not None:
            yield "gateway.consumer_lag", self._lag
        if abs(now - self._measured_at) >= _MACHINE_EVERY_MS:  # the clock may be set back
            self._measured_at, self._of_machine = now, tuple(self._measure())
        yield from self._of_machine
        yield from self._supply()

    def _fullness_by_sender(self) -> Iterator[tuple[str, float]]:
        """Yield the used part of the marks of each sender near its share, and 0 for those that were near it before."""
        near = list(self._core.health.counts.by_sender.nearly_full.items())[:_MOST_SENDERS]
        fullness = {f"{_MARKS_OF}{_LEVEL.sub('_', sender)}": round(own.fullness, 2) for sender, own in near}
        yield from fullness.items()
        yield from ((tag, 0) for tag in self._last if tag.startswith(_MARKS_OF) and tag not in fullness)

    def _measure(self) -> Iterator[tuple[str, float]]:
        """Read the state of the machine, which takes longer than all other values and changes slowly."""
        state = read_clock()
        if state is not Clock.UNKNOWN:
            yield "gateway.clock_synchronised", int(state is Clock.SYNCHRONISED)
        yield "gateway.memory_mib", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        offset = read_offset_ms()
        if offset is not None:
            yield "gateway.clock_offset_ms", round(offset)
        yield from self._board()

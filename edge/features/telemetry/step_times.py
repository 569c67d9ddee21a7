"""Learns how long each step of each recipe takes, and finds steps that take much longer."""

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

from edge.features.telemetry.rules.baseline import Moments
from edge.model.isa95 import JobOrder
from edge.station.decision import LoadedJob
from edge.station.runs import Progress

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
            known = self._times.get(key)
            if known is None and len(self._times) >= _MAX_STEPS:
                continue
            if (loaded.job.job_id, change.step, state.count) not in self._found:
                self._times[key] = (known or Moments()).add(state.elapsed_ms)

    def overdue(self, runs: Mapping[str, LoadedJob], now: int) -> Iterator[OverdueStep]:
        """Yield each activation of a step that takes longer than twice its mean and six standard deviations, once."""
        self._found = {each for each in self._found if each[0] in runs}
        for job_id, loaded in runs.items():
            run = loaded.stored.run
            if run.paused or run.ended:
                continue
            recipe = _recipe(loaded.job.order)
            for step in run.active:
                known, state = self._times.get((recipe, step)), run.steps[step]
                if known is None or known.count < MIN_RUNS or (job_id, step, state.count) in self._found:
                    continue
                took = state.t(now)
                if took > max(_TIMES_MEAN * known.mean, known.mean + _SIGMAS * known.deviation):
                    self._found.add((job_id, step, state.count))
                    yield OverdueStep(job_id, step, round(took / 1000, 1), round(known.mean / 1000, 1))


def _recipe(order: JobOrder) -> str:
    return order.work_master_id[0].id if order.work_master_id else ""

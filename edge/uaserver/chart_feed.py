"""Shows running charts to OPC UA clients, each as it moves on, whichever instance moves it.

What we decide ourselves is shown as we decide it. For what others decide we ask the store once a second for the
revisions of all runs, which takes two round trips, and read the runs that have another one than we show.
"""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, replace

import structlog

from edge.errors import Unavailable
from edge.model.job_state import has_ended
from edge.sfc.run import ActionState, Association, next_deadline
from edge.sfc.why import why
from edge.station.decision import Held
from edge.station.runs import Progress, Runs
from edge.store.client import Store
from edge.store.runs import revisions
from edge.uaserver.charts import Charts
from edge.uaserver.picture import ActionPicture, ChartPicture, StepPicture

logger = structlog.get_logger(__name__)

_ROUND_S = 1.0
_PAUSE_S = 0.02  # a thousand runs that others move cost us fifty readings a second, and are late
_NEVER_STARTED = Association(state=ActionState.PENDING)


async def show_charts(
    store: Store, runs: Runs, charts: Charts, scopes: Collection[str], round_s: float = _ROUND_S
) -> None:
    """Show every run of the scopes until cancelled: as it moves here, and soon after another instance has moved it."""
    shown = RunCharts(store, runs, charts, scopes)
    runs.watchers.append(shown.watch)
    pause_s = 0.0  # those that run at the start are shown at once
    while True:
        try:
            await shown.catch_up(pause_s)
            pause_s = _PAUSE_S
        except Unavailable as error:
            logger.warning("OPC UA charts wait for the store", reason=error.message)
        await asyncio.sleep(round_s)


@dataclass(frozen=True, slots=True)
class _Known:
    """A run as it was last read; of one that cannot be read there is neither its scope nor the hash of its recipe."""

    revision: int
    scope: str | None = None
    recipe: int | None = None


class RunCharts:
    """What is shown of each run, and at which revision that was."""

    def __init__(self, store: Store, runs: Runs, charts: Charts, scopes: Collection[str]) -> None:
        self._store = store
        self._runs = runs
        self._charts = charts
        self._scopes = scopes
        self._known: dict[str, _Known] = {}

    def watch(self, progress: Progress) -> None:
        """Show what a decision of our own made of a run."""
        self._show(progress.held)

    async def catch_up(self, pause_s: float) -> None:
        """Show what others have started, moved on or ended; rest after each run that had to be read."""
        before = set(self._known)  # what starts here from now on may not be among those read below
        there = await revisions(self._store)
        for job_id in before - there.keys():
            if scope := self._known.pop(job_id).scope:
                self._charts.hide(scope, job_id)
        for job_id, revision in there.items():
            known = self._known.get(job_id)
            if known and (known.revision == revision or self._is_elsewhere(known)):
                continue
            self._known[job_id] = replace(known, revision=revision) if known else _Known(revision)
            if held := await self._read(job_id):
                self._show(held)
            await asyncio.sleep(pause_s)

    async def _read(self, job_id: str) -> Held | None:
        try:
            return await self._runs.load_readable(job_id)
        except Unavailable:
            del self._known[job_id]  # read it when the store is there again
            raise

    def _show(self, held: Held) -> None:
        job = held.job
        before = self._known.get(job.job_id)
        known = self._known[job.job_id] = _Known(held.stored.revision, job.scope, hash(held.stored.recipe))
        if self._is_elsewhere(known):
            return
        if before and before.recipe not in {None, known.recipe}:
            # It was cleared and stored anew with another recipe, between two looks: its steps are others.
            self._charts.hide(job.scope, job.job_id)
        if has_ended(job.status):
            self._charts.hide(job.scope, job.job_id)
        else:
            self._charts.show(job.scope, job.job_id, lambda: picture(held, self._runs.clock()))

    def _is_elsewhere(self, known: _Known) -> bool:
        return known.scope is not None and known.scope not in self._scopes


def picture(held: Held, now: int) -> ChartPicture:
    """Draw a run as it stands at an instant, in milliseconds since the epoch."""
    run, net = held.stored.run, held.net
    at = now if run.paused_at is None else run.paused_at
    masters = held.job.order.work_master_id or ()
    return ChartPicture(
        recipe=masters[0].id if masters else "",
        state="paused" if run.paused else run.outcome.value,
        started_at=run.started_at,
        steps={
            name: StepPicture(step.active, step.t(at), step.count) if (step := run.steps.get(name)) else StepPicture()
            for name in net.steps
        },
        actions={key: _action(run.associations.get(key, _NEVER_STARTED)) for key in net.actions},
        waiting=tuple(str(each) for each in why(net, run, now)),
        error=run.error or "",
        deadline=next_deadline(net, run),
    )


def _action(each: Association) -> ActionPicture:
    return ActionPicture(each.state.value, each.attempt, each.result, each.deadline, each.error or "")

"""Publishes the charts of active runs to OPC UA clients."""

from collections.abc import Callable, Mapping

from edge.foundation.instant import Clock
from edge.model.job_state import has_ended
from edge.sfc.run import ActionState, Association
from edge.sfc.signal import NO_MIRRORS, Mirrors
from edge.sfc.view import next_deadline
from edge.sfc.waiting import NO_HOLDERS, explain_waiting
from edge.station.active_runs import ActiveRuns, LockHolders
from edge.station.decision import LoadedJob
from edge.uaserver.charts import Charts
from edge.uaserver.view import ActionView, ChartView, StepView

_NEVER_STARTED = Association(state=ActionState.PENDING)


def show_charts(
    active_runs: ActiveRuns,
    charts: Charts,
    clock: Clock,
    holders: LockHolders,
    mirrors: Callable[[], Mirrors] = lambda: NO_MIRRORS,
) -> None:
    """Show the charts of all active runs; update each chart on every change, and hide it when its run has ended.

    `holders` says who holds the locks for which a run waits, `mirrors` returns the mirrored sets.
    """

    def show(before: LoadedJob | None, now: LoadedJob | None) -> None:
        running = None if now is None or has_ended(now.job.status) else now
        if before and (running is None or running.stored.recipe != before.stored.recipe):
            # Another recipe: the job was cleared and stored again between two changes, and the chart has other steps.
            charts.hide(before.job.scope, before.job.job_id)
        if running:
            charts.show(running.job.scope, running.job.job_id, lambda: view(running, clock(), holders.named, mirrors()))

    for loaded in active_runs.loaded.values():
        show(None, loaded)
    active_runs.listeners.append(show)


def view(
    loaded: LoadedJob, now: int, holders: Mapping[str, str] = NO_HOLDERS, mirrors: Mirrors = NO_MIRRORS
) -> ChartView:
    """Return the view of a run at an instant, in milliseconds since the epoch."""
    run, net = loaded.stored.run, loaded.net
    at = now if run.paused_at is None else run.paused_at
    masters = loaded.job.order.work_master_id or ()
    return ChartView(
        recipe=masters[0].id if masters else "",
        state="paused" if run.paused else run.outcome.value,
        started_at=run.started_at,
        steps={
            name: StepView(step.active, step.t(at), step.count) if (step := run.steps.get(name)) else StepView()
            for name in net.steps
        },
        actions={str(key): _action(run.associations.get(key, _NEVER_STARTED)) for key in net.actions},
        waiting=tuple(str(wait) for wait in explain_waiting(net, run, now, holders, mirrors)),
        error=run.error or "",
        deadline=next_deadline(net, run),
    )


def _action(association: Association) -> ActionView:
    return ActionView(
        association.state.value, association.attempt, association.result, association.deadline, association.error or ""
    )

"""Running jobs are paused by the maintenance mode `now`, and stay paused."""

from edge.access.mode import ModeWatch
from edge.links.background_task import background_task
from edge.model.job_state import Cause, JobState
from edge.model.maintenance import Maintenance, MaintenanceKind
from edge.station.active_runs import ActiveRuns
from edge.station.maintenance_pause import MaintenancePause
from edge.store import mode
from tests.station.plant import SCOPE, Plant


async def switched(plant: Plant, to: Maintenance | None) -> ModeWatch:
    watch = ModeWatch(plant.store, "gw-1")
    await plant.store.commit(mode.save(plant.store.keys, await mode.load(plant.store, "gw-1"), "", to))
    await watch.refresh()
    return watch


async def test_running_job_is_paused_once_by_mode_now(running: Plant) -> None:
    active = ActiveRuns(running.runs, (SCOPE,))
    await active.look()
    watch = await switched(running, Maintenance(kind=MaintenanceKind.NOW, message="fire"))
    pause = MaintenancePause(running.runs, active.loaded, watch, 0.01)
    async with background_task(pause.run(), "pause"):
        job = await running.until_state("J1", JobState.INTERRUPTED)
    assert [localized_text.text for localized_text in job.comment] == ["fire"]
    await pause.pause_running()
    assert (await running.job("J1")).revision == job.revision
    await switched(running, None)
    assert (await running.job("J1")).status.state is JobState.INTERRUPTED
    await running.ask(Cause.RESUME, "J1")
    assert (await running.job("J1")).status.state is JobState.RUNNING


async def test_running_job_continues_in_drain_mode(running: Plant) -> None:
    active = ActiveRuns(running.runs, (SCOPE,))
    await active.look()
    await MaintenancePause(running.runs, active.loaded, await switched(running, Maintenance())).pause_running()
    assert (await running.job("J1")).status.state is JobState.RUNNING

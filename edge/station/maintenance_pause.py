"""Pauses the running jobs of our scopes while a maintenance mode asks for it."""

from collections.abc import Mapping

import structlog

from edge.access.mode import ModeWatch
from edge.model.isa95 import LocalizedText
from edge.model.job_state import Cause, JobState
from edge.model.maintenance import MaintenanceKind
from edge.sfc.signal import Pause
from edge.station.decision import Decision, LoadedJob, MethodRequest
from edge.station.runs import Runs
from edge.store.retry import poll_store

logger = structlog.get_logger(__name__)

POLL_INTERVAL_S = 1.0


class MaintenancePause:
    """Pauses jobs as the MES would; they stay paused after the maintenance until somebody resumes them."""

    def __init__(
        self, runs: Runs, active: Mapping[str, LoadedJob], mode: ModeWatch, poll_interval_s: float = POLL_INTERVAL_S
    ) -> None:
        """Pause the runs of `active`, which the owner keeps up to date."""
        self._runs = runs
        self._active = active
        self._mode = mode
        self._poll_interval_s = poll_interval_s

    async def run(self) -> None:
        """Pause until cancelled; retry while the store is unavailable."""
        await poll_store(self._runs.store.defects, "maintenance pause", self.pause_running, self._poll_interval_s)

    async def pause_running(self) -> None:
        """Pause every job that runs, if the mode asks for it. Raises Unavailable when the store is gone."""
        mode = self._mode.in_force
        if mode is None or mode.kind is not MaintenanceKind.NOW:
            return
        running = [
            job_id for job_id, loaded_job in self._active.items() if loaded_job.job.status.state is JobState.RUNNING
        ]
        for job_id in running:
            comment = (LocalizedText(text=self._mode.message(())),)
            if isinstance(await self._runs.signal(job_id, Pause(), MethodRequest(Cause.PAUSE, comment)), Decision):
                logger.info("job paused for maintenance", job=job_id, by=mode.by)

"""The past events of job states, from the changes of jobs that the store keeps."""

import structlog
from asyncua import ua

from edge.features.telemetry.opcua.history_events import EventRange
from edge.model.instant import utc
from edge.model.isa95 import JobOrder, JobResponse, JobStatusEvent
from edge.model.job_state import has_response, is_transition, state_entries
from edge.opcua.event_filter import EventRecord
from edge.opcua.time_slices import Turn
from edge.store import changes, jobs, responses
from edge.store.background import Isolated
from edge.store.changes import Change
from edge.store.client import Store
from edge.store.jobs import Job
from edge.store.stream import StreamPage
from edge.uaserver.events import JobEventPublisher

logger = structlog.get_logger(__name__)

_OF_JOB = frozenset({"JobOrder", "JobResponse"})


class JobEvents:
    """The events of one machine at its JobOrderResults and at the Server object."""

    def __init__(self, store: Store, scope: str, events: JobEventPublisher) -> None:
        self._store = store
        self._scope = scope
        self._events = events

    @property
    def name(self) -> str:
        """A name of its own among the sources."""
        return f"jobs/{self._scope}"

    def serves(self, node_id: ua.NodeId) -> bool:
        """Return whether a node has the events of this machine."""
        return self._events.is_notifier(node_id)

    async def page(self, first: str, last: str, count: int, *, is_backward: bool) -> StreamPage[Change]:
        """Return a page of changes of jobs. Raises Unavailable."""
        return await changes.page(self._store, self._scope, first, last, count, is_backward=is_backward)

    async def record(self, change: Change, rest: EventRange, turn: Turn) -> EventRecord | None:
        """Return the event of a transition; storing and removing a job are none. Raises Unavailable.

        JobOrder is the present one, or its id alone when the job is removed. JobResponse is there for the
        present state.
        """
        if not is_transition(change.cause):
            return None
        job, response = None, None
        if _selects_job(rest.filter):
            turn.end()
            try:
                job, response = await self._job(change)
            finally:
                await turn.begin()
        at = utc(change.at)
        order = job.order if job else JobOrder(job_order_id=change.job_order_id)
        status_event = JobStatusEvent(job_order=order, job_state=state_entries(change.status), job_response=response)
        return self._events.record(status_event, at, at)

    async def _job(self, change: Change) -> tuple[Job | None, JobResponse | None]:
        """Return the job as it is now, and its response when the change led to its present state."""
        with Isolated(logger, "job not in history", scope=self._scope, job=change.job_order_id):
            job = await jobs.load(self._store, change.job_order_id)
            if job is None or job.status != change.status or not has_response(job.status):
                return job, None
            return job, await responses.load(self._store, job)
        return None, None


def _selects_job(asked: ua.EventFilter) -> bool:
    """Return whether a filter needs more of a job than its id."""
    return any(name.Name in _OF_JOB for clause in asked.SelectClauses or () for name in clause.BrowsePath or ())

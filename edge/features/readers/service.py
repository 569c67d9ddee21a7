"""Opens what readers need: the jobs of codes, until the service of jobs exists, and from then on."""

import asyncio
from contextlib import AsyncExitStack
from functools import partial

import msgspec
import structlog

from edge.app.feature import Opened
from edge.app.parts import GatewayParts, Works
from edge.features.readers.scanned_job import ScannedJob
from edge.foundation.errors import Refused
from edge.foundation.text import Text, join_texts
from edge.model.acceptance import validate_id
from edge.model.isa95 import IdCall, JobOrder, OrderCall, Parameter, ReturnStatus, WorkMaster
from edge.model.job_state import Cause
from edge.station.job_call import JobCall
from edge.station.jobs import JobService
from edge.store.background import retry_while_unavailable

_WAITING = 100

_log = structlog.get_logger(__name__)


class ScannedJobs:
    """The jobs that wait for their start; readers put them in before the service of jobs exists."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._waiting: asyncio.Queue[ScannedJob] = asyncio.Queue(_WAITING)

    async def put(self, job: ScannedJob) -> None:
        """Queue a job. Raises Refused when too many jobs wait, for example while the store is unavailable."""
        try:
            self._waiting.put_nowait(job)
        except asyncio.QueueFull:
            message = Text.of("{waiting} scanned jobs wait for their start", waiting=_WAITING)
            raise Refused("too_many", message, "Read the code again later.") from None

    async def run(self, jobs: JobService) -> None:
        """Start the jobs until cancelled; a refusal is logged, and the code can be read again."""
        while True:
            job = await self._waiting.get()
            try:
                answer = await retry_while_unavailable("scanned job", partial(jobs.call, self._call(job)))
            except (Refused, msgspec.ValidationError) as error:
                _log.warning("scanned job refused", job=job.job_order_id, reason=str(error))
                continue
            if answer.status is ReturnStatus.NO_ERROR:
                _log.info("scanned job started", job=job.job_order_id)
            else:
                reason = str(answer.reason) or answer.status.name
                _log.warning("scanned job refused", job=job.job_order_id, reason=reason)

    def _call(self, job: ScannedJob) -> JobCall:
        if faults := list(validate_id("JobOrderID", job.job_order_id)):
            raise Refused("invalid_payload", join_texts("; ", faults))
        if not job.work_master:
            return JobCall(job.scope, Cause.START, IdCall(job_order_id=job.job_order_id), self._source, job.event_id)
        order = JobOrder(
            job_order_id=job.job_order_id,
            work_master_id=(WorkMaster(id=job.work_master),),
            job_order_parameters=tuple(Parameter(id=name, value=value) for name, value in job.parameters.items()),
        )
        call = OrderCall(job_order=order)
        return JobCall(job.scope, Cause.STORE_AND_START, call, self._source, job.event_id)


async def prepare_readers(_stack: AsyncExitStack, core: GatewayParts) -> Opened:
    """Return where readers put the jobs of codes."""
    scanned = ScannedJobs(core.source)
    return Opened(port=scanned, equipment={"reader": (scanned.put,)})


async def open_readers(stack: AsyncExitStack, core: GatewayParts, works: Works) -> None:
    """Start the jobs of codes until the stack closes."""
    scanned: ScannedJobs = core.ports["readers"]
    await core.keep_running(stack, "scanned jobs", partial(scanned.run, works.jobs))

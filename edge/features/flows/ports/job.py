"""Stores and starts jobs for flows, as the MES does."""

from collections.abc import Collection
from typing import Any

import msgspec

from edge.features.flows.nodes.act import StartJob, task_of
from edge.features.flows.nodes.kind import NodeError
from edge.foundation.errors import Refused
from edge.model.acceptance import validate_id
from edge.model.isa95 import JobOrder, OrderCall, Parameter, ReturnStatus, WorkMaster
from edge.model.job_state import Cause
from edge.station.job_call import JobCall
from edge.station.jobs import JobService


class JobStarter:
    """Starts jobs under the id of their node task: a call that is repeated starts no second job."""

    def __init__(self, jobs: JobService, scopes: Collection[str], source: str) -> None:
        self._jobs = jobs
        self._scopes = frozenset(scopes)
        self._source = source

    async def start(self, action: StartJob, action_id: str) -> dict[str, Any]:
        """Store and start a job and return its id; raises NodeError when the station refuses it."""
        task_id = task_of(action_id)
        if action.scope not in self._scopes:
            raise NodeError(f"this gateway does not serve scope {action.scope!r}")
        if faults := list(validate_id("JobOrderID", task_id)):
            raise NodeError("; ".join(faults))
        values = action.value if isinstance(action.value, dict) else {}
        order = JobOrder(
            job_order_id=task_id,
            work_master_id=(WorkMaster(id=action.work_master),),
            job_order_parameters=tuple(Parameter(id=name, value=value) for name, value in values.items()) or None,
        )
        call = JobCall(
            action.scope, Cause.STORE_AND_START, OrderCall(job_order=order), self._source, f"flow {action_id}"
        )
        try:
            answer = await self._jobs.call(call)
        except (Refused, msgspec.ValidationError) as error:
            raise NodeError(str(error)) from None
        if answer.status is not ReturnStatus.NO_ERROR:
            raise NodeError("; ".join(answer.reasons) or f"the station answers {answer.status.name}")
        return {"job": task_id, "work_master": action.work_master}

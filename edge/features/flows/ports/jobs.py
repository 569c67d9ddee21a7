"""Stores and starts jobs for flows, and finds the results of jobs that ended in a window of time."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from edge.features.flows.nodes.kind import NodeError
from edge.features.flows.nodes.outside import JobResults, StartJob, task_of
from edge.foundation.errors import Refused
from edge.foundation.text import Text, join_texts
from edge.model.acceptance import validate_id
from edge.model.action_attempt import ATTEMPTS_ID, joining_process_of
from edge.model.instant import milliseconds
from edge.model.isa95 import JobOrder, JobResponse, OrderCall, Parameter, ReturnStatus, WorkMaster
from edge.model.job_state import Cause, JobState
from edge.station.job_call import JobCall
from edge.station.jobs import JobService
from edge.station.response import ERROR_ID, UNKNOWN_ID, VERDICT_ID
from edge.station.runs import net_of
from edge.store import responses, runs
from edge.store.client import Store


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
            raise NodeError(Text.of("this gateway does not serve scope {scope!r}.", scope=action.scope))
        if faults := list(validate_id("JobOrderID", task_id)):
            raise NodeError(join_texts("; ", faults))
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
            raise NodeError(error.text if isinstance(error, Refused) else str(error)) from None
        if answer.status is not ReturnStatus.NO_ERROR:
            raise NodeError(
                answer.reason if answer.reasons else Text.of("the station answers {status}", status=answer.status.name)
            )
        return {"job": task_id, "work_master": action.work_master}


MOST_RESULTS: Final = 10_000
_LONGEST_JOB_MS: Final = 86_400_000
"""Jobs are indexed by their start: one that ended in the window started at most this long before it."""
_BATCH: Final = 200
_NO_ACTIONS: Final = frozenset({ATTEMPTS_ID, ERROR_ID, UNKNOWN_ID, VERDICT_ID})


class ResultReader:
    """Reads job results of the scopes of a gateway."""

    def __init__(self, store: Store, scopes: Sequence[str]) -> None:
        self._store = store
        self._scopes = tuple(scopes)

    async def read(self, query: JobResults, _action_id: str) -> list[Any]:
        """Return one member of the action results of the jobs that ended in a window, in the order of their end."""
        found: list[tuple[int, Any]] = []
        for scope in self._scopes:
            for state in (JobState.ENDED, JobState.ABORTED):
                found += [item async for item in self._read_scope(scope, state, query)]
        found.sort(key=lambda pair: pair[0])
        return [value for _, value in found[-MOST_RESULTS:]]

    async def _read_scope(self, scope: str, state: JobState, query: JobResults) -> Any:
        position = (max(0, query.after_ms - _LONGEST_JOB_MS), "")
        while page := await responses.page_in_state(self._store, scope, state, position, _BATCH):
            for _, response in page:
                ended = _milliseconds(response.end_time)
                if ended is not None and query.after_ms < ended <= query.until_ms:
                    for result in await self._chosen(response, query):
                        for value in _members(query.member.split("."), result):
                            yield ended, value
            position = page[-1][0]

    async def _chosen(self, response: JobResponse, query: JobResults) -> Sequence[Parameter]:
        """Return the results of the action and the joining process that a query names."""
        parameters = [
            parameter
            for parameter in response.job_response_data or ()
            if parameter.id not in _NO_ACTIONS and query.action in (None, parameter.id)
        ]
        if query.process is None or not parameters:
            return parameters
        processes = await self._processes(response.job_order_id)
        return [parameter for parameter in parameters if processes.get(parameter.id) == query.process]

    async def _processes(self, job_id: str) -> Mapping[str, str | None]:
        """Return the joining process of each action of a job; they are in its recipe and its parameters."""
        stored_run = await runs.load(self._store, job_id)
        if stored_run is None:
            return {}
        own = stored_run.run.parameters or {}
        actions = net_of(stored_run.recipe).actions.values()
        return {action.name: joining_process_of({**action.parameters, **own}) for action in actions}


def _members(path: Sequence[str], result: Parameter) -> Iterable[Any]:
    """Return the value of a member of a result, given as a dotted path; `value` is that of a plain result."""
    if path == ["value"] and result.subparameters is None:
        return (result.value,)
    parameter = next((subparameter for subparameter in result.subparameters or () if subparameter.id == path[0]), None)
    if parameter is None:
        return ()
    if len(path) == 1:
        return () if parameter.subparameters is not None else (parameter.value,)
    return _members(path[1:], parameter)


def _milliseconds(instant: datetime | None) -> int | None:
    return None if instant is None else milliseconds(instant)

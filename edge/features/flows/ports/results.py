"""Finds the results of jobs that ended in a window of time."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from edge.features.flows.nodes.read import JobResults
from edge.model.action_attempt import ATTEMPTS_ID
from edge.model.instant import milliseconds
from edge.model.isa95 import JobResponse, Parameter
from edge.model.job_state import JobState
from edge.model.joining_process import joining_process_of
from edge.station.response import ERROR_ID, UNKNOWN_ID
from edge.station.runs import net_of
from edge.store import responses, runs
from edge.store.client import Store

MOST_RESULTS: Final = 10_000
_LONGEST_JOB_MS: Final = 86_400_000
"""Jobs are indexed by their start: one that ended in the window started at most this long before it."""
_BATCH: Final = 200
_NO_ACTIONS: Final = frozenset({ATTEMPTS_ID, ERROR_ID, UNKNOWN_ID})


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
                found += [each async for each in self._read_scope(scope, state, query)]
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
        found = [
            each
            for each in response.job_response_data or ()
            if each.id not in _NO_ACTIONS and query.action in (None, each.id)
        ]
        if query.process is None or not found:
            return found
        processes = await self._processes(response.job_order_id)
        return [each for each in found if processes.get(each.id) == query.process]

    async def _processes(self, job_id: str) -> Mapping[str, str | None]:
        """Return the joining process of each action of a job; they are in its recipe and its parameters."""
        stored = await runs.load(self._store, job_id)
        if stored is None:
            return {}
        own = stored.run.parameters or {}
        actions = net_of(stored.recipe).actions.values()
        return {action.name: joining_process_of({**action.parameters, **own}) for action in actions}


def _members(path: Sequence[str], result: Parameter) -> Iterable[Any]:
    """Return the value of a member of a result, given as a dotted path; `value` is that of a plain result."""
    if path == ["value"] and result.subparameters is None:
        return (result.value,)
    found = next((each for each in result.subparameters or () if each.id == path[0]), None)
    if found is None:
        return ()
    if len(path) == 1:
        return () if found.subparameters is not None else (found.value,)
    return _members(path[1:], found)


def _milliseconds(instant: datetime | None) -> int | None:
    return None if instant is None else milliseconds(instant)

"""Finds the results of jobs that ended in a window of time."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from edge.flows.nodes.read import JobResults
from edge.model.action_attempt import ATTEMPTS_ID
from edge.model.isa95 import JobResponse, Parameter
from edge.model.job_state import JobState
from edge.station.response import ERROR_ID, UNKNOWN_ID
from edge.store import responses
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

    async def read(self, query: JobResults, _task_id: str) -> list[Any]:
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
                    for value in _values(response, query):
                        yield ended, value
            position = page[-1][0]


def _values(response: JobResponse, query: JobResults) -> Iterator[Any]:
    for result in response.job_response_data or ():
        if result.id in _NO_ACTIONS or (query.action is not None and result.id != query.action):
            continue
        yield from _members(query.member.split("."), result)


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
    return None if instant is None else round(instant.timestamp() * 1000)

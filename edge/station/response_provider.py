"""Answers who asks for job responses: the two methods of ISA95JobResponseProviderObjectType."""

import msgspec

from edge.model.acceptance import validate_id
from edge.model.isa95 import JobResponse, ReturnStatus, State
from edge.store import jobs, responses
from edge.store.client import Store


class FoundResponses(msgspec.Struct, frozen=True):
    """The responses that were asked for, with the ReturnStatus and, where there are none for a reason, why."""

    status: ReturnStatus
    responses: tuple[JobResponse, ...] = ()
    reason: str = ""


class ResponseProvider:
    """Finds what became of jobs. Every call raises Unavailable when the store is gone."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def of_job(self, scope: str, job_order_id: str) -> FoundResponses:
        """Find the response of a job order; one that has not started has none yet."""
        possible = not any(validate_id("JobOrderID", job_order_id))
        job = await jobs.load(self._store, job_order_id) if possible else None
        if job is None or job.scope != scope:
            return FoundResponses(ReturnStatus.UNKNOWN_JOB_ORDER_ID, reason="no such job order in this scope")
        response = await responses.load(self._store, job)
        if response is None:
            return FoundResponses(ReturnStatus.INVALID_JOB_ORDER_STATUS, reason="the job order has not started")
        return FoundResponses(ReturnStatus.NO_ERROR, (response,))

    async def in_state(self, scope: str, state: tuple[State, ...]) -> FoundResponses:
        """Find the responses of all jobs in a state: its first entry is the top level, the others sub-states."""
        if not state or state[0].browse_path:
            return FoundResponses(
                ReturnStatus.INVALID_REQUEST, reason="the first entry has to be a state of the top level"
            )
        wanted = _numbers(state)
        every = await responses.load_all(self._store, scope)
        return FoundResponses(
            ReturnStatus.NO_ERROR, tuple(each for each in every if wanted <= _numbers(each.job_state))
        )


def _numbers(state: tuple[State, ...]) -> set[tuple[tuple[str, ...], int]]:
    return {(tuple(name.name for name in entry.browse_path), entry.state_number) for entry in state}

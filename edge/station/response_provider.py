"""Find job responses: the two methods of ISA95JobResponseProviderObjectType."""

from collections.abc import Awaitable, Callable, Iterator, Sequence

import msgspec
from msgspec import Struct

from edge.model.acceptance import validate_id
from edge.model.isa95 import JobResponse, ReturnStatus, State, StateQuery
from edge.model.job_state import SUBSTATE_MACHINE, SUBSTATES, TEXT, JobState
from edge.store import jobs, responses
from edge.store.client import Store


class PageLimit(Struct, frozen=True):
    """The size of one answer: a number of responses, and the bytes of JSON after which no further one is added."""

    responses: int
    size: int


PAGE = PageLimit(responses=500, size=1 << 20)
"""One answer."""
_BATCH = 50
_BEGINNING = (0, "")


class FoundResponses(Struct, frozen=True):
    """The responses found, with the ReturnStatus and the reason of a status other than success.

    `next` is the position of the next page; empty when there is none.
    """

    status: ReturnStatus
    responses: tuple[JobResponse, ...] = ()
    reason: str = ""
    next: str = ""


RecordRequest = Callable[[Sequence[JobResponse]], Awaitable[None]]
"""Records that these responses were requested."""


async def _record_nothing(_: Sequence[JobResponse]) -> None:
    pass


class ResponseProvider:
    """Finds job responses. Every call raises Unavailable when the store is gone."""

    def __init__(self, store: Store, record: RecordRequest = _record_nothing) -> None:
        """Find responses in a store; `record` is called with those that were found."""
        self._store = store
        self._record = record

    async def of_job(self, scope: str, job_order_id: str) -> FoundResponses:
        """Find the response of a job order; a job that has not started has none."""
        found = await self._of_job(scope, job_order_id)
        await self._record(found.responses)
        return found

    async def _of_job(self, scope: str, job_order_id: str) -> FoundResponses:
        possible = not any(validate_id("JobOrderID", job_order_id))
        job = await jobs.load(self._store, job_order_id) if possible else None
        if job is None or job.scope != scope:
            return FoundResponses(ReturnStatus.UNKNOWN_JOB_ORDER_ID, reason="no such job order in this scope")
        response = await responses.load(self._store, job)
        if response is None:
            return FoundResponses(ReturnStatus.INVALID_JOB_ORDER_STATUS, reason="the job order has not started")
        return FoundResponses(ReturnStatus.NO_ERROR, (response,))

    async def in_state(
        self, scope: str, query: Sequence[StateQuery | State], after: str = "", limit: PageLimit = PAGE
    ) -> FoundResponses:
        """Find the responses of jobs in a state (OPC 10031-4, 6.2.7.3) after a position, in the order of their start.

        The first entry of the query is the top level, the others are sub-states. An entry matches by its StateText,
        its StateNumber, or both.
        """
        position = _position(after)
        if position is None:
            return FoundResponses(ReturnStatus.INVALID_REQUEST, reason="After is not the Next of an answer")
        if not query or _has_path(query[0]):
            return FoundResponses(ReturnStatus.INVALID_REQUEST, reason="the first entry must be a top-level state")
        if not (_text(query[0]) or query[0].state_number):
            return FoundResponses(ReturnStatus.INVALID_REQUEST, reason="the state is empty")
        top = next((state for state in JobState if _matches(query[0], TEXT[state], state.value)), None)
        if top is None:
            return FoundResponses(ReturnStatus.NO_ERROR)
        wanted = frozenset(_substates(top, query[1:])) if len(query) > 1 else None
        found = await self._page(scope, top, wanted, position, limit)
        await self._record(found.responses)
        return found

    async def _page(
        self, scope: str, state: JobState, substates: frozenset[str] | None, position: tuple[int, str], limit: PageLimit
    ) -> FoundResponses:
        found: list[JobResponse] = []
        size = 0
        while batch := await responses.page_in_state(self._store, scope, state, position, _BATCH):
            for here, response in batch:
                if substates is None or not substates.isdisjoint(_substate_texts(response)):
                    size += len(msgspec.json.encode(response))
                    if found and (size > limit.size or len(found) >= limit.responses):
                        return FoundResponses(ReturnStatus.NO_ERROR, tuple(found), next=f"{position[0]}:{position[1]}")
                    found.append(response)
                position = here
        return FoundResponses(ReturnStatus.NO_ERROR, tuple(found))


def _position(after: str) -> tuple[int, str] | None:
    """Read a position; None for a text that is not one."""
    if not after:
        return _BEGINNING
    started_at, separator, response_id = after.partition(":")
    valid = separator and started_at.isascii() and started_at.isdecimal()
    return (int(started_at), response_id) if valid else None


def _text(entry: StateQuery | State) -> str:
    return entry.state_text.text if entry.state_text else ""


def _has_path(entry: StateQuery | State) -> bool:
    return entry.browse_path is not None and bool(entry.browse_path.elements)


def _matches(entry: StateQuery | State, text: str, number: int) -> bool:
    return _text(entry) in {"", text} and entry.state_number in {None, 0, number}


def _substates(top: JobState, entries: Sequence[StateQuery | State]) -> Iterator[str]:
    """Return the texts of the sub-states of a state that match every entry."""
    machine = SUBSTATE_MACHINE.get(top)
    for substate in SUBSTATES.get(top, ()):
        name, number = substate.value
        if all(_is_in(machine, entry) and _matches(entry, name, number) for entry in entries):
            yield name


def _is_in(machine: str | None, entry: StateQuery | State) -> bool:
    """Return whether an entry is of a sub-state machine; one without a path, as in `state-index`, is of any."""
    if entry.browse_path is None or not entry.browse_path.elements:
        return True
    return entry.browse_path.elements[-1].target_name.rpartition(";")[2].rpartition(":")[2] == machine


def _substate_texts(response: JobResponse) -> frozenset[str]:
    return frozenset(entry.state_text.text for entry in response.job_state if _has_path(entry))

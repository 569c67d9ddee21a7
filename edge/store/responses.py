"""Job responses: written with the job, whose revision guards them, and found by it, by its scope or their id."""

from collections.abc import Mapping, Sequence

import msgspec

from edge.model.acceptance import RESERVED_ID_STARTS
from edge.model.action_attempt import ActionAttempt, attempts_parameter
from edge.model.isa95 import JobResponse, State
from edge.model.job_state import RESPONSE_STATES, JobState, JobStatus, SubState, has_response, state_entries
from edge.store import version
from edge.store.client import Store
from edge.store.commit import Commit, join, operation
from edge.store.jobs import Job
from edge.store.keys import Keys
from edge.store.reads import load_readable
from edge.store.version import Document

_BATCH = 100
DATASCHEMA = "https://opcfoundation.org/UA/ISA95-JOBCONTROL_V2/ISA95JobResponseDataType/v2.0.0"


def save(
    keys: Keys, job: Job, response: JobResponse, attempts: Sequence[ActionAttempt] = (), before: Job | None = None
) -> Commit:
    """Write the response of a job; it changes only together with the job, whose revision guards it.

    The attempts and the state are fields of their own: in the response they take three to ten times the space. The
    fields that never change are written with the first response: not if the job, as it was `before`, has one.
    """
    response_id, started_at = response.job_response_id, job.started_at or 0
    is_first = before is None or not has_response(before.status)
    return join(
        (
            operation(
                "HSET",
                keys.jobresponse(response_id),
                *(("_dataschema", DATASCHEMA, "scope", job.scope, "job_order_id", job.job_id) if is_first else ()),
                # Also later: the response may be in the form of an earlier release, and is written whole.
                *(version.FIELD, version.current_version(Document.JOB_RESPONSE)),
                *("rev", str(job.revision), "response", _text(response), "state", _state_text(job.status)),
                *(("attempts", _rows(attempts, started_at)) if attempts else ()),
            ),
            operation("ZADD", keys.jobresponse_list(job.scope), started_at, response_id),
            operation("ZADD", keys.jobresponse_state(job.scope, job.status.state.name), started_at, response_id),
            *(
                operation("ZREM", keys.jobresponse_state(job.scope, state.name), response_id)
                for state in RESPONSE_STATES
                if state is not job.status.state
            ),
        )
    )


def _text(response: JobResponse) -> str:
    return msgspec.json.encode(msgspec.structs.replace(response, job_state=())).decode()


def _state_text(status: JobStatus) -> str:
    return " ".join(item.name for item in (status.state, status.substate) if item is not None)


def _states(text: str) -> tuple[State, ...]:
    state, *substate = text.split()
    return state_entries(JobStatus(JobState[state], SubState[substate[0]] if substate else None))


def _rows(attempts: Sequence[ActionAttempt], since: int) -> str:
    """Return a JSON array of the start of the job and of an array for each attempt, whose instants count from it.

    An attempt without error has its first members only.
    """
    moved = [_moved(attempt, -since) for attempt in attempts]
    rows = [
        msgspec.structs.astuple(action_attempt)[: _PLAIN if action_attempt == _plain(action_attempt) else None]
        for action_attempt in moved
    ]
    return msgspec.json.encode([since, *rows]).decode()


def _attempts(text: str) -> Sequence[ActionAttempt]:
    """Read the attempts; an array of an earlier release has no start, and instants since 1970."""
    since, *rows = msgspec.json.decode(text, type=list[int | ActionAttempt])
    action_attempts = [row for row in (since, *rows) if isinstance(row, ActionAttempt)]
    return (
        action_attempts if isinstance(since, ActionAttempt) else [_moved(attempt, since) for attempt in action_attempts]
    )


def _moved(action_attempt: ActionAttempt, by: int) -> ActionAttempt:
    """Return an attempt with its instants moved."""
    start, end = action_attempt.started_at, action_attempt.ended_at
    started_at, ended_at = None if start is None else start + by, None if end is None else end + by
    return msgspec.structs.replace(action_attempt, started_at=started_at, ended_at=ended_at)


def _plain(action_attempt: ActionAttempt) -> ActionAttempt:
    return ActionAttempt(action_attempt.id, action_attempt.state, action_attempt.started_at, action_attempt.ended_at)


_PLAIN = 4
"""How many members an attempt without error, operator or late result has."""


async def load(store: Store, job: Job) -> JobResponse | None:
    """Read the response of a job; None while it has not started."""
    stored = await store.execute("HGETALL", store.keys.jobresponse(job.correlation_id))
    return read_response(stored) if stored else None


def read_response(stored: Mapping[str, str]) -> JobResponse:
    """Return the response that a stored document states.

    Raises DocumentTooNew, and ValueError or KeyError for a damaged one.
    """
    fields = version.upgrade_fields(Document.JOB_RESPONSE, stored)
    response = msgspec.json.decode(fields["response"], type=JobResponse)
    # One of an earlier release has them itself.
    if not response.job_state and (state := fields.get("state")):
        response = msgspec.structs.replace(response, job_state=_states(state))
    if not (text := fields.get("attempts")):
        return response
    parameter = attempts_parameter(_attempts(text))
    return msgspec.structs.replace(response, job_response_data=(*(response.job_response_data or ()), parameter))


async def find_job(store: Store, correlation_id: str) -> str | None:
    """Return the id of the started job of a correlation id, which is the id of its response too."""
    if correlation_id.startswith(RESERVED_ID_STARTS):
        return None
    job_id: str | None = await store.execute("HGET", store.keys.jobresponse(correlation_id), "job_order_id")
    return job_id


async def page_in_state(
    store: Store, scope: str, state: JobState, after: tuple[int, str], count: int
) -> list[tuple[tuple[int, str], JobResponse]]:
    """Read up to `count` responses in a state after a position, in the order of their start, each with its position.

    A position is the start of the job and the id of its response. One that cannot be read is logged and left out.
    """
    await _rebuild_if_incomplete(store, scope)
    key = store.keys.jobresponse_state(scope, state.name)
    found: list[tuple[int, str]] = []
    offset = 0
    while len(found) < count:
        batch = await store.execute("ZRANGE", key, after[0], "+inf", "BYSCORE", "LIMIT", offset, _BATCH, "WITHSCORES")
        pairs = _pairs(batch)
        found += [pair for pair in pairs if (pair[0], pair[1].encode()) > (after[0], after[1].encode())]
        offset += len(pairs)
        if len(pairs) < _BATCH:
            break
    positions = found[:count]
    loaded = await load_readable(store, [store.keys.jobresponse(position) for _, position in positions], read_response)
    position_of = {response_id: (started_at, response_id) for started_at, response_id in positions}
    return [
        (position_of[response.job_response_id], response)
        for response in loaded
        if response.job_response_id in position_of
    ]


def _pairs(reply: object) -> list[tuple[int, str]]:
    """Return positions from a reply WITHSCORES: pairs in RESP3, a flat list in RESP2."""
    if not isinstance(reply, list):
        return []
    if reply and not isinstance(reply[0], list | tuple):
        reply = list(zip(reply[::2], reply[1::2], strict=True))
    return [(int(float(score)), str(member)) for member, score in reply]


async def _rebuild_if_incomplete(store: Store, scope: str) -> None:
    """Write the index by state of responses that an earlier release stored without it."""
    keys = store.keys
    total, *counts = await store.read(
        [
            ("ZCARD", keys.jobresponse_list(scope)),
            *(("ZCARD", keys.jobresponse_state(scope, state.name)) for state in RESPONSE_STATES),
        ]
    )
    if sum(counts) >= total:
        return
    members = _pairs(await store.execute("ZRANGE", keys.jobresponse_list(scope), 0, -1, "WITHSCORES"))
    for begin in range(0, len(members), _BATCH):
        batch = members[begin : begin + _BATCH]
        job_ids = await store.read([("HGET", keys.jobresponse(text), "job_order_id") for _, text in batch])
        states = await store.read([("HGET", keys.joborder(job_id or ""), "state") for job_id in job_ids])
        known = {state.name for state in RESPONSE_STATES}
        await store.commit(
            join(
                operation("ZADD", keys.jobresponse_state(scope, state), started_at, response_id)
                for (started_at, response_id), state in zip(batch, states, strict=True)
                if state in known
            )
        )

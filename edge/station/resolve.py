"""Applies decisions of an operator: the result of an action of unknown outcome, and commands that are sent again."""

import functools

import msgspec
import structlog

from edge.errors import Refused
from edge.model.acceptance import MAX_BYTES, MAX_TEXT_LENGTH
from edge.model.isa95 import ReturnStatus
from edge.sfc.signal import Ignored, Resolution, Resolve
from edge.station.decision import Decision, NotAllowed
from edge.station.jobs import CallAnswer
from edge.station.runs import NoRun, Runs
from edge.store import dedupe, runs, work
from edge.store.commit import Commit, Committed, Stale, join
from edge.store.runs import NO_CONSUMER
from edge.store.work import WorkKind

logger = structlog.get_logger(__name__)


class ResolveRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The decision about one action. `by` names the operator; `source` and `event_id` together name the request.

    `data` is the result of an action that was done, `reason` the operator's observation.
    """

    scope: str
    job_id: str
    action: str
    resolution: Resolution
    by: str
    reason: str
    data: object = None
    source: str
    event_id: str


async def resolve(active_runs: Runs, request: ResolveRequest, dedupe_ms: int) -> CallAnswer:
    """Apply a decision; its effect is in the store when this returns. The same request again gets the same answer.

    Raises Unavailable when the store is gone, Refused(`invalid_payload`) for a
    request without operator or reason, or with data that are too large.
    """
    _validate(request)
    store = active_runs.store
    while True:
        given = await dedupe.load_answer(store, request.source, request.event_id)
        if given is not None:
            return msgspec.json.decode(given, type=CallAnswer)
        loaded = await active_runs.get(request.job_id)
        if loaded is None or loaded.job.scope != request.scope:
            return CallAnswer(ReturnStatus.UNKNOWN_JOB_ORDER_ID, ("no such running job order in this scope",))
        done = CallAnswer(ReturnStatus.NO_ERROR)
        text = msgspec.json.encode(done).decode()
        marked = dedupe.mark(store.keys, request.source, request.event_id, text, dedupe_ms)
        signal = Resolve(request.action, request.resolution, request.data, request.reason, request.by)
        match await active_runs.signal(request.job_id, signal, also=functools.partial(_with_mark, marked)):
            case Decision():
                logger.warning(
                    "outcome resolved",
                    job=request.job_id,
                    action=request.action,
                    resolution=request.resolution.value,
                    by=request.by,
                    reason=request.reason,
                )
                return done
            case Ignored(reason=reason):
                return CallAnswer(ReturnStatus.INVALID_JOB_ORDER_STATUS, (reason,))
            case NoRun() | NotAllowed():
                return CallAnswer(ReturnStatus.INVALID_JOB_ORDER_STATUS, ("the job does not run",))
            case Stale():
                # The same request was committed elsewhere: its answer is read now.
                continue


def _with_mark(marked: Commit, _: Decision) -> Commit:
    return marked


def _validate(request: ResolveRequest) -> None:
    if not request.by:
        raise Refused("invalid_payload", "the request names no operator", "Name the operator in `by`.")
    if not request.reason.strip():
        raise Refused("invalid_payload", "the request has no reason", "Say in `reason` what you have seen.")
    if len(request.by) + len(request.reason) > MAX_TEXT_LENGTH:
        raise Refused("invalid_payload", f"operator and reason are longer than {MAX_TEXT_LENGTH} characters")
    if len(msgspec.json.encode(request.data)) > MAX_BYTES:
        raise Refused("invalid_payload", f"the data are larger than {MAX_BYTES} bytes of JSON")


async def resend(active_runs: Runs, job_id: str) -> int:
    """Queue every command of a job that has no answer to be sent again; return how many.

    Equipment that recognises a repeated command id drops it; for a start that is sent once, the outcome is looked for.
    Raises Refused(`unknown_job`) for a job that does not run, Unavailable when the store is gone.
    """
    store = active_runs.store
    while True:
        loaded = await active_runs.load(job_id)
        if loaded is None or loaded.stored.run.ended:
            raise Refused("unknown_job", f"job {job_id!r} does not run", f"Look at it: edge jobs show {job_id}")
        again = tuple(msgspec.structs.replace(each, again=True) for each in loaded.unanswered())
        if not again:
            return 0
        waiting = await runs.load_outbox(store, job_id, NO_CONSUMER)
        outbox = tuple(dict.fromkeys((*waiting, *again)))
        parts = (
            runs.queue_commands(store.keys, loaded.stored, outbox, NO_CONSUMER),
            work.add(store.keys, loaded.job.scope, WorkKind.SEND, job_id),
        )
        active_runs.invalidate(job_id)
        if isinstance(await store.commit(join(parts)), Committed):
            logger.info("commands queued again", job=job_id, commands=len(again))
            return len(again)

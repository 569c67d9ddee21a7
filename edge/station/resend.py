"""Queues the commands of a job that have no answer to be sent again."""

import msgspec
import structlog

from edge.foundation.errors import Refused
from edge.station.runs import Runs
from edge.store import runs, work
from edge.store.commit import Committed, join
from edge.store.runs import NO_CONSUMER
from edge.store.work import WorkKind

logger = structlog.get_logger(__name__)


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
        again = tuple(msgspec.structs.replace(outgoing, again=True) for outgoing in loaded.unanswered())
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

"""Keeps the stops and resets of a decision until the equipment confirms them."""

from collections.abc import Collection

from edge.sfc.signal import CommandRequest, Phase
from edge.store import safing
from edge.store.commit import Commit, join
from edge.store.jobs import Job
from edge.store.keys import Keys
from edge.store.safing import SafingCommand


def save_safing(keys: Keys, job: Job, requests: Collection[CommandRequest], now: int) -> Commit:
    """Keep the stops and resets among the commands of a decision until they are confirmed."""
    return join(
        safing.save(
            keys,
            SafingCommand(
                phase=request.phase,
                command_id=request.command_id,
                type_id=request.type_id,
                scope=job.scope,
                job_id=job.job_id,
                correlation_id=job.correlation_id,
                action=request.action,
                attempt=request.attempt,
                parameters=dict(request.parameters) if request.phase is Phase.RESET else {},
                since=now,
                causation_id=job.causation_id,
                trace=dict(job.trace),
            ),
        )
        for request in requests
        if request.phase is not Phase.START
    )

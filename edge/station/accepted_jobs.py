"""Remembers the jobs that this process has accepted lately, and logs those that a new primary does not have.

A failover loses what the new primary had not received; who ordered such a job has the answer that it was accepted.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

import structlog

from edge.model.isa95 import OrderCall, ReturnStatus
from edge.model.job_state import Cause
from edge.station.job_call import CallAnswer, JobCall
from edge.store import jobs
from edge.store.client import Store

_MOST: Final = 1000
_WITHIN_S: Final = 600.0
_ORDERS: Final = frozenset({Cause.STORE, Cause.STORE_AND_START})

logger = structlog.get_logger(__name__)


class AcceptedJobs:
    """The latest accepted jobs of each store, by its prefix; a job that was removed on request is forgotten."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._accepted: OrderedDict[tuple[str, str], float] = OrderedDict()

    def note(self, prefix: str, call: JobCall, answer: CallAnswer) -> None:
        """Record the effect of a call that was answered."""
        if answer.status is not ReturnStatus.NO_ERROR:
            return
        match call.arguments:
            case OrderCall(job_order=order) if call.method in _ORDERS:
                self._accepted[prefix, order.job_order_id] = self._clock()
                if len(self._accepted) > _MOST:
                    self._accepted.popitem(last=False)
            case arguments if call.method in {Cause.CANCEL, Cause.CLEAR} and not isinstance(arguments, OrderCall):
                self._accepted.pop((prefix, arguments.job_order_id), None)

    async def report_lost(self, store: Store) -> None:
        """Log each job that this store does not have, and forget it. Raises Unavailable."""
        now, prefix = self._clock(), store.keys.prefix
        recent = [name for (of, name), at in self._accepted.items() if of == prefix and now - at < _WITHIN_S]
        for job_id in await jobs.missing(store, recent):
            seconds = round(now - self._accepted.pop((prefix, job_id)), 1)
            logger.error("accepted job lost in a failover", job=job_id, accepted_seconds_ago=seconds)


accepted_jobs: Final = AcceptedJobs()
"""Those of this process: they outlive the store, which is over with its primary."""

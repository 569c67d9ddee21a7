"""Remembers the jobs that this process has accepted lately, and reports those that a new primary does not have.

A failover loses what the new primary had not received; who ordered such a job has the answer that it was accepted.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final

import structlog
from msgspec import Struct

from edge.foundation.instant import Clock, now_ms
from edge.model.isa95 import OrderCall, ReturnStatus
from edge.model.job_state import Cause
from edge.station.job_call import CallAnswer, JobCall
from edge.store import dedupe, jobs
from edge.store.client import Store

_MOST: Final = 1000
_WITHIN_MS: Final = 600_000
_SHOWN_MS: Final = 3_600_000
"""How long a loss is a problem of the gateway: a person compares the orders then."""
_MOST_IN_LINE: Final = 100
_MOST_EXAMPLES: Final = 3
_ORDERS: Final = frozenset({Cause.STORE, Cause.STORE_AND_START})

logger = structlog.get_logger(__name__)


class _Acceptance(Struct, frozen=True):
    """When a call was answered, and when its sender sent it, each in milliseconds since the epoch."""

    at: int
    sent_at: int


class AcceptedJobs:
    """The latest accepted jobs of each store, by its prefix; a job that was removed on request is forgotten."""

    def __init__(self, clock: Clock = now_ms) -> None:
        self._clock = clock
        self._accepted: OrderedDict[tuple[str, str], _Acceptance] = OrderedDict()
        self._lost: Mapping[str, float] = {}
        self._lost_at = 0

    def note(self, prefix: str, call: JobCall, answer: CallAnswer) -> None:
        """Record the effect of a call that was answered."""
        if answer.status is not ReturnStatus.NO_ERROR:
            return
        match call.arguments:
            case OrderCall(job_order=order) if call.method in _ORDERS:
                now = self._clock()
                self._accepted[prefix, order.job_order_id] = _Acceptance(now, min(call.sent_at or now, now))
                if len(self._accepted) > _MOST:
                    self._accepted.popitem(last=False)
            case arguments if call.method in {Cause.CANCEL, Cause.CLEAR} and not isinstance(arguments, OrderCall):
                self._accepted.pop((prefix, arguments.job_order_id), None)

    async def report_lost(self, store: Store) -> None:
        """Log the jobs that this store does not have, a hundred in a line, and forget them. Raises Unavailable.

        One with a tombstone was removed: by any gateway, by a command, or at the end of its retention.
        """
        now, prefix = self._clock(), store.keys.prefix
        recent = [
            name
            for (of, name), acceptance in self._accepted.items()
            if of == prefix and now - acceptance.at < _WITHIN_MS
        ]
        missing = await jobs.missing(store, recent)
        queries = [dedupe.query_removal(store.keys, job_id) for job_id in missing]
        removals, lost = await store.fetch_all(*queries), dict[str, float]()
        for job_id, query in zip(missing, queries, strict=True):
            accepted, removed_at = self._accepted.pop((prefix, job_id)), removals.value(query)
            if removed_at is None or removed_at < accepted.sent_at:
                lost[job_id] = (now - accepted.at) / 1000
        if lost:
            self._lost, self._lost_at = lost, now
        for start in range(0, len(lost), _MOST_IN_LINE):
            part = dict(islice(lost.items(), start, start + _MOST_IN_LINE))
            logger.error("accepted jobs lost in a failover", count=len(lost), accepted_seconds_ago=part)

    def problems(self) -> Iterator[str]:
        """Yield a sentence about the last loss, for an hour."""
        if self._lost and self._clock() - self._lost_at < _SHOWN_MS:
            count, examples = len(self._lost), ", ".join(islice(self._lost, _MOST_EXAMPLES))
            more = ", …" if count > _MOST_EXAMPLES else ""
            which = "accepted job was" if count == 1 else "accepted jobs were"
            yield f"{count} {which} lost in a failover: {examples}{more}"


accepted_jobs: Final = AcceptedJobs()
"""Those of this process: they outlive the store, which is over with its primary."""

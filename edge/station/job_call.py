"""A call of a job method, and the id of a run, which follows from the call that stored its job.

Two gateways that take the same call, on both sides of a divided network for instance, derive the same ids for the run
and each of its commands: equipment recognizes the second command.
"""

import asyncio
import hashlib
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Final

import msgspec
from msgspec import Struct

from edge.foundation.errors import Refused
from edge.foundation.rate_limit import LimitByKey
from edge.foundation.text import Text, join_texts
from edge.model.isa95 import IdCall, OrderCall, ReturnStatus
from edge.model.job_state import Cause
from edge.store.client import Store
from edge.store.dead_letters import RefusedMessage, record_refusal

_RUNS: Final = uuid.UUID("4c0d7b86-2f0b-4a53-8f6e-6f1c2f0d9b1e")
_DIGITS: Final = 32


class JobCall(Struct, frozen=True):
    """One call of a job method. `source` and `event_id` identify it: the same call again gets the same answer.

    So does another call of the same method and `transaction` in its scope, if the first succeeded. Instants are
    milliseconds since the epoch: `expires_at` is when the call is refused, `sent_at` when its sender sent it. `trace`
    holds the attributes `traceparent` and `tracestate` (W3C Trace Context).
    """

    scope: str
    method: Cause
    arguments: OrderCall | IdCall
    source: str
    event_id: str
    transaction: str = ""
    expires_at: int | None = None
    sent_at: int | None = None
    time: str = ""
    """The attribute `time` of its event as it was received; with the rest of the call it identifies a run."""
    trace: Mapping[str, str] = {}
    languages: tuple[str, ...] = ()
    """The languages of the caller, the preferred one first: for the message of a maintenance mode."""
    by: str | Text = Text.of("the MES")
    """The caller in the reason of a stop or an abort, a person with the place: `anna at the station page`."""


class CallAnswer(Struct, frozen=True):
    """The ReturnStatus (OPC 10031-4 table 95), with the reasons of a refusal."""

    status: ReturnStatus
    reasons: tuple[str | Text, ...] = ()

    @property
    def reason(self) -> Text:
        """The reasons in one line; empty for a call that was done."""
        return join_texts("; ", self.reasons)


class StoredAnswer(CallAnswer, frozen=True):
    """An answer as it is stored, with the digest of its call; empty where an older version has stored it."""

    digest: str = ""


def call_digest(call: JobCall) -> str:
    """Return the digest of what a call asks for: its method, scope and arguments."""
    content = (call.method.value, call.scope, call.arguments)
    return hashlib.sha256(msgspec.json.encode(content, order="deterministic")).hexdigest()[:_DIGITS]


def run_id_of(call: JobCall) -> str:
    """Return the id of the run of a job that a call stores.

    It is a UUIDv5 of source, id and `time` of the call and the digest of its arguments.
    """
    identity = (call.source, call.event_id, call.time, call_digest(call))
    # As JSON the parts are separated: ("a", "bc") and ("ab", "c") differ.
    return str(uuid.uuid5(_RUNS, msgspec.json.encode(identity).decode()))


def next_run_id(run_id: str) -> str:
    """Return the id of the run that repeats a failed one on request of a person."""
    return str(uuid.uuid5(_RUNS, run_id))


_MOST: Final = 200
_WITHIN_S: Final = 10.0


class RefusalRecorder:
    """Stores at most 200 refused messages of each way in 10 s, and counts all of them.

    A commit for each message of a flood would wear flash, and delay what waits behind it. The count of those that were
    not stored is written with the next one that is; what is counted only is lost when the process ends.
    """

    def __init__(self, store: Store, most: int = _MOST, clock: Callable[[], float] = time.monotonic) -> None:
        """Store `most` messages of a way in 10 s; `clock` returns monotonic seconds."""
        self._store = store
        self._ways = LimitByKey(most, _WITHIN_S, clock)
        self._uncounted = 0

    async def record(self, message: RefusedMessage) -> None:
        """Store and count a refused message. Raises Unavailable when the store is unavailable."""
        if not self._ways.try_acquire(message.way):
            self._uncounted += 1
            # The messages of a flood must not hold the event loop, which no commit does here.
            await asyncio.sleep(0)
            return
        uncounted, self._uncounted = self._uncounted, 0
        try:
            await self._store.commit(record_refusal(self._store.keys, message, 1 + uncounted))
        except BaseException:  # a cancelled commit, too, has not counted them
            self._uncounted += uncounted
            raise


UNKNOWN_AGE = -1
"""The expiry of a message that a broker had retained, and that does not state when it was sent."""


def refuse_expired(expires_at: int | None, now: int) -> None:
    """Raise Refused for a message whose expiry, in milliseconds since the epoch, has passed, or of UNKNOWN_AGE."""
    if expires_at == UNKNOWN_AGE:
        raise Refused("retained", "the message was retained and may be of any age", "Send it without RETAIN.")
    if expires_at is not None and now > expires_at:
        raise Refused(
            "expired",
            Text.of("the message expired {now} ms ago", now=now - expires_at),
            "If still wanted, send a new one.",
        )

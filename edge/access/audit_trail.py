"""Writes audit records to the store in one chain, finds gaps and changes in it, and bounds what a user can cause.

Each digest is the SHA-256 of the digest before, the number and the text of the record. Who can write to the store can
also compute a whole new chain: the digests in the journal, written while the records came, show that.
"""

import asyncio
import hashlib
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import accumulate
from typing import TypeAlias

import msgspec
import structlog
from msgspec import Struct
from structlog.stdlib import BoundLogger

from edge.foundation.errors import Defect, Unavailable
from edge.foundation.instant import Clock
from edge.foundation.rate_limit import LimitByKey, RateLimit
from edge.foundation.task_group import background_task
from edge.model.audit import MAX_TEXT, AuditRecord, ChainHead, SealedRecord
from edge.model.secret_text import hide_secrets
from edge.store import audit
from edge.store.audit import CallClaim
from edge.store.background import retry_while_unavailable
from edge.store.client import Store
from edge.store.commit import NOTHING, Commit, Committed, join

START = ChainHead(0, "")


class ChainFault(Struct, frozen=True):
    """What is wrong at a record of the chain."""

    number: int
    problem: str


def seal(head: ChainHead, texts: Iterable[str]) -> list[SealedRecord]:
    """Return the records that follow the head of a chain."""
    first = SealedRecord(head.number, head.digest, "")
    _, *sealed = accumulate(texts, _follow, initial=first)
    return sealed


def head_of(sealed: Sequence[SealedRecord]) -> ChainHead:
    """Return the head of a chain that ends with these records."""
    return ChainHead(sealed[-1].number, sealed[-1].digest)


def find_faults(records: Iterable[SealedRecord], head: ChainHead, keep: int) -> Iterator[ChainFault]:
    """Yield every fault of a stored chain, in its order.

    The oldest records are removed when there are more than `keep`: a chain of fewer must begin with number 1.
    """
    before: SealedRecord | None = None
    first = 1
    count = 0
    for record in records:
        count += 1
        if before is None:
            first = record.number
            before = SealedRecord(0, "", "") if first == 1 else None
        if before is not None:
            yield from _faults_between(before, record)
        before = record
    if before is None:
        if head != START:
            yield ChainFault(head.number, f"all {head.number} records are missing")
        return
    if first > 1 and count < keep:
        yield ChainFault(first, f"the {first - 1} oldest records are missing, but {keep} are kept")
    if head_of([before]) != head:
        yield ChainFault(before.number, f"the chain ends here, but the last record has number {head.number}")


def _follow(before: SealedRecord, text: str) -> SealedRecord:
    number = before.number + 1
    digest = hashlib.sha256(f"{before.digest}\n{number}\n{text}".encode()).hexdigest()
    return SealedRecord(number, digest, text)


def _faults_between(before: SealedRecord, record: SealedRecord) -> Iterator[ChainFault]:
    if record.number != before.number + 1:
        yield ChainFault(record.number, f"the record before it has number {before.number}")
    elif _follow(before, record.text).digest != record.digest:
        yield ChainFault(record.number, "the record or its digest was changed")


RecordAudit: TypeAlias = Callable[[AuditRecord], None]

_MOST_WAITING = 10_000
_MOST_IN_BATCH = 500
_STOP_WITHIN_S = 2.0
_RECENT_S = 30.0
_MOST_RECENT = 1000
"""For how long, and how many, written records are kept in memory behind Sentinel."""
_SEARCHED = 2000
"""How many of the newest records are searched for those of a commit whose effect is unknown."""

_stdlib_logger = logging.getLogger("edge.audit")
_stdlib_logger.setLevel(logging.INFO)  # audit records are in the log at every log level
audit_logger: BoundLogger = structlog.wrap_logger(_stdlib_logger, wrapper_class=BoundLogger)
"""The logger of audit records."""

_EVENT_OF_KIND = {
    "mes.call": "MES call",
    "rpc.call": "RPC call",
    "cli.call": "command",
    "fleet.call": "fleet command",
    "station.fill": "store filled",
    "web.call": "page call",
    "web.login": "page login",
    "web.refused": "page request refused",
}
"""The log events of records that this room copies to the log."""


def _log_record(record: AuditRecord) -> None:
    found = msgspec.to_builtins(_without_secrets(record))
    fields = {name: value for name, value in found.items() if name not in {"at", "kind"}}
    audit_logger.info(_EVENT_OF_KIND[record.kind], audit=record.kind, **fields)


_MOST_COPIES = 600
"""Copies of calls from programs in a minute."""


def _report_copies(count: int) -> None:
    audit_logger.warning("audit records not copied", audit="audit.limit", count=count)


async def append(store: Store, records: Sequence[AuditRecord], keep: int) -> None:
    """Append records to the chain. Raises Unavailable; whether they are written is unknown then."""
    if not keep:
        return
    await _Batch([_QueuedRecord(record) for record in records], keep).write(store)


async def plan_append(store: Store, records: Sequence[AuditRecord], keep: int) -> Commit:
    """Return the commit that appends records to the chain; Stale at the head of the chain when others came between."""
    if not keep:
        return NOTHING
    before = await audit.load_head(store)
    return audit.append(store.keys, before, seal(before, _texts(records, keep)), keep)


CarriedRecords: TypeAlias = dict[tuple[str, str], list["_Batch"]]
"""The records of a gateway that its last store, which a failover has ended, may not hold; by prefix and gateway."""


@asynccontextmanager
async def open_trail(
    store: Store, instance: str, keep: int, clock: Clock, carried: CarriedRecords | None = None
) -> AsyncIterator["AuditTrail"]:
    """Write the records of a gateway for the length of the block, and at its end what still waits.

    After a failover the next trail with the same `carried` writes what the new primary does not hold.
    """
    carried = {} if carried is None else carried
    trail, name = AuditTrail(store, instance, keep, clock), (store.keys.prefix, instance)
    trail.carry(carried.pop(name, ()))
    try:
        async with background_task(trail.run(), "audit"):
            yield trail
    finally:
        with suppress(Unavailable, Defect, TimeoutError):
            async with asyncio.timeout(_STOP_WITHIN_S):
                await trail.write_waiting()
        if store.over.is_set():
            audit_logger.info("audit records wait for the next primary", count=trail.waiting)
            carried[name] = trail.unconfirmed()
        elif trail.waiting:
            audit_logger.error("audit records lost", audit="audit.lost", count=trail.waiting)


class AuditTrail:
    """Records that wait in memory for their commit, a few milliseconds as a rule.

    While the store is unavailable the newest `most_waiting` records wait; the number of lost ones becomes a record.
    """

    def __init__(self, store: Store, instance: str, keep: int, clock: Clock, most_waiting: int = _MOST_WAITING) -> None:
        self.instance = instance
        self.clock = clock
        self._store = store
        self._keep = keep
        self._waiting: deque[_QueuedRecord] = deque()
        self._most_waiting = most_waiting
        self._batch: _Batch | None = None
        self._carried: deque[_Batch] = deque()
        self._recent: deque[tuple[float, _Batch]] = deque()
        self._lost = 0
        self._arrived = asyncio.Event()
        # A flood of calls must not fill the disk with log.
        self._copies = RateLimit(_MOST_COPIES, 60.0, report=_report_copies)

    @property
    def waiting(self) -> int:
        """The number of records that are not written yet."""
        return len(self._waiting) + (len(self._batch) if self._batch else 0) + sum(map(len, self._carried))

    @property
    def keep(self) -> int:
        """The number of records that the store keeps at least; 0: none."""
        return self._keep

    def record(self, record: AuditRecord, claim: CallClaim | None = None) -> None:
        """Copy a record to the log and queue it for the store; with a claim the first gateway stores it."""
        self.copy(record)
        self.queue(record, claim)

    def copy(self, record: AuditRecord) -> None:
        """Copy a record to the log. The caller has written it to the store."""
        if self._copies.try_acquire():
            _log_record(record)

    def queue(self, record: AuditRecord, claim: CallClaim | None = None) -> None:
        """Queue a record for the store. The caller has logged it."""
        if not self._keep:
            return
        if self.waiting >= self._most_waiting:
            self._lost += 1
            if not self._waiting:
                return
            self._waiting.popleft()
        self._waiting.append(_QueuedRecord(_cut(record), claim))
        self._arrived.set()

    def carry(self, batches: Iterable["_Batch"]) -> None:
        """Queue the records of the store before this one; each is written only if this store does not hold it."""
        self._carried.extend(batches)
        if self._carried:
            self._arrived.set()

    def unconfirmed(self) -> "list[_Batch]":
        """Return what another primary may not hold: what waits, and behind Sentinel what was written lately."""
        left = [batch for _, batch in self._recent]
        if self._batch is not None:
            left.append(self._batch)
        left += self._carried
        while self._waiting:
            left.append(_Batch(self._take(), self._keep))
        return left

    async def run(self) -> None:
        """Write what waits until cancelled; an outage of the store delays it."""
        while True:
            await self._arrived.wait()
            try:
                await retry_while_unavailable("audit", self.write_waiting)
            except Defect as error:
                # A foreign value at our key must not stop the gateway: the log has the records.
                self._lost += len(self._batch) if self._batch else 0
                self._batch = None
                audit_logger.error("audit records not stored", reason=error.message, advice=error.advice)

    async def write_waiting(self) -> None:
        """Write all that waits now. Raises Unavailable, and Defect where the key holds something else."""
        while self.waiting:
            if self._batch is None:
                self._batch = self._carried.popleft() if self._carried else _Batch(self._take(), self._keep)
            await self._batch.write(self._store)
            self._remember(self._batch)
            self._batch = None
        self._arrived.clear()

    def _remember(self, batch: "_Batch") -> None:
        """Keep a written batch for a while: a failover may lose what the replicas have not received."""
        if self._store.ha is None:
            return
        now = time.monotonic()
        self._recent.append((now, batch))
        while now - self._recent[0][0] > _RECENT_S or (
            len(self._recent) > 1 and sum(len(recent) for _, recent in self._recent) > _MOST_RECENT
        ):
            self._recent.popleft()

    def _take(self) -> "list[_QueuedRecord]":
        lost, self._lost = self._lost, 0
        queued_records = [self._waiting.popleft() for _ in range(min(len(self._waiting), _MOST_IN_BATCH))]
        if not lost:
            return queued_records
        report = AuditRecord(
            at=self.clock(), kind="audit.lost", instance=self.instance, user="", action="", status=str(lost)
        )
        return [_QueuedRecord(report), *queued_records]


def _cut(record: AuditRecord) -> AuditRecord:
    """Return a record as it is kept: of bounded texts that are UTF-8, and without secrets."""
    shown = msgspec.structs.asdict(_without_secrets(record))
    texts = {name: value for name, value in shown.items() if isinstance(value, str)}
    cut = {name: value[:MAX_TEXT].encode(errors="backslashreplace").decode() for name, value in texts.items()}
    return msgspec.structs.replace(record, **cut)


def _without_secrets(record: AuditRecord) -> AuditRecord:
    """Return a record without secrets in its comment, which a person or a MES has written."""
    return msgspec.structs.replace(record, comment=hide_secrets(record.comment)) if record.comment else record


def _texts(records: Sequence[AuditRecord], keep: int) -> list[str]:
    return [msgspec.json.encode(msgspec.structs.replace(_cut(record), keep=keep)).decode() for record in records]


class _QueuedRecord(msgspec.Struct, frozen=True):
    """A record that waits for its commit, with the claim of its call."""

    record: AuditRecord
    claim: CallClaim | None = None


class _Batch:
    """Records for one commit; after an attempt whose effect is unknown it finds out first whether they are there."""

    def __init__(self, waiting: Sequence[_QueuedRecord], keep: int) -> None:
        self._waiting = waiting
        self._keep = keep
        self._attempted = ""

    def __len__(self) -> int:
        return len(self._waiting)

    async def write(self, store: Store) -> None:
        """Append the records behind the newest, but those that were claimed before. Raises Unavailable."""
        if self._attempted and await self._is_written(store):
            return
        while True:
            claims = list(dict.fromkeys(queued_record.claim for queued_record in self._waiting if queued_record.claim))
            before, claimed = await audit.load_start(store, claims)
            free = dict.fromkeys(claim for claim, is_claimed in zip(claims, claimed, strict=True) if not is_claimed)
            records = list(_unclaimed(self._waiting, free))
            if not records:
                return
            sealed = seal(before, _texts(records, self._keep))
            self._attempted = head_of(sealed).digest
            appended = audit.append(store.keys, before, sealed, self._keep)
            if isinstance(await store.commit(join((appended, audit.claim(store.keys, tuple(free))))), Committed):
                return

    async def _is_written(self, store: Store) -> bool:
        return any(sealed_record.digest == self._attempted for sealed_record in await audit.newest(store, _SEARCHED))


def _unclaimed(waiting: Sequence[_QueuedRecord], free: Collection[CallClaim]) -> Iterator[AuditRecord]:
    """Yield the records without a claim, and the first one of each claim that is free."""
    left = set(free)
    for item in waiting:
        if item.claim is None:
            yield item.record
        elif item.claim in left:
            left.remove(item.claim)
            yield item.record


def limit_of_callers(most: int = 60, clock: Callable[[], float] = time.monotonic) -> LimitByKey:
    """Return the limit of the records that a user can cause without an effect, by logins and by refused calls.

    Otherwise one client displaces the audit trail within minutes. The limit is per user, so that a flood hides no
    record of another user. The number of those that were dropped is logged.
    """
    return LimitByKey(most, 60.0, clock, _report_dropped)


def _report_dropped(user: str, dropped: int) -> None:
    audit_logger.warning("audit records dropped", audit="audit.limit", user=user, dropped=dropped)

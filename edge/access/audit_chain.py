"""Chains audit records by digests, and finds gaps and changes in a chain.

Each digest is the SHA-256 of the digest before, the number and the text of the record. Who can write to the store can
also compute a whole new chain: the digests in the journal, written while the records came, show that.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from msgspec import Struct

from edge.model.audit import ChainHead, SealedRecord

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

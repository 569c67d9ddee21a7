"""Finds records of the audit trail, and verifies their chain: for the command line and the page."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import msgspec
from msgspec import Struct

from edge.access.audit_trail import ChainFault, find_faults
from edge.model.audit import AuditRecord, SealedRecord
from edge.store.audit import load_head, newest, read_all
from edge.store.client import Store

ReadRecord: TypeAlias = tuple[SealedRecord, AuditRecord | None]
"""A stored record and its content; None when it cannot be read."""


class VerifiedChain(Struct, frozen=True, kw_only=True):
    """The chain of digests: how many records it has had, its newest digest, and each missing or changed record."""

    records: int
    digest: str
    faults: tuple[ChainFault, ...]


async def find_records(store: Store, last: int, wanted: Mapping[str, str]) -> Sequence[ReadRecord]:
    """Return the newest records, the oldest of them first; `wanted` maps members to their texts. Raises Unavailable."""
    if not wanted:
        return [(sealed, _content(sealed)) for sealed in await newest(store, last)]
    pairs = [(sealed, _content(sealed)) async for sealed in read_all(store)]
    return [pair for pair in pairs if all(getattr(pair[1], name, None) == text for name, text in wanted.items())][
        -last:
    ]


async def verify_chain(store: Store) -> VerifiedChain:
    """Return the chain with its faults. Raises Unavailable."""
    # The head is read first and records that came after it are left out: a gateway may be at work.
    head = await load_head(store)
    everything = [sealed async for sealed in read_all(store)]
    records = [sealed for sealed in everything if sealed.number <= head.number]
    # Another limit may have removed records before: each record holds the one of its time.
    limits = [record.keep for sealed in everything if (record := _content(sealed)) and record.keep]
    keep = min(limits, default=0) - (len(everything) - len(records))
    return VerifiedChain(records=head.number, digest=head.digest, faults=tuple(find_faults(records, head, keep)))


def _content(sealed: SealedRecord) -> AuditRecord | None:
    try:
        return msgspec.json.decode(sealed.text, type=AuditRecord)
    except msgspec.DecodeError:
        return None

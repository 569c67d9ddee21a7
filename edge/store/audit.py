"""The audit trail in the store: one stream of sealed records, and the head of their chain."""

from collections.abc import AsyncIterator, Iterator, Sequence

from edge.model.audit import ChainHead, SealedRecord
from edge.store.client import Store
from edge.store.commit import Absent, Commit, Committed, HashField, Holds, RedisCommand, fields
from edge.store.dedupe import digest
from edge.store.keys import Keys
from edge.store.stream import Entry, entries

_PAGE = 500
_CLAIM_MS = 90_000_000
"""How long a call is not recorded again: a broker may deliver it to another gateway a day later."""


async def load_head(store: Store) -> ChainHead:
    """Return the head of the chain; one that cannot be read has the number 0 and its text as digest."""
    text = await store.execute("GET", store.keys.audit_head()) or ""
    number, _, digest = text.partition(" ")
    return ChainHead(int(number), digest) if number.isdecimal() and number.isascii() else ChainHead(0, text)


def append(keys: Keys, before: ChainHead, sealed: Sequence[SealedRecord], keep: int) -> Commit:
    """Append the records that follow `before`; beyond about `keep` records the oldest go."""
    key, after = keys.audit_head(), sealed[-1]
    guard = Holds(key, text) if (text := _head_text(before.number, before.digest)) else Absent(key)
    added: Iterator[RedisCommand] = (
        ("XADD", keys.audit(), "MAXLEN", "~", keep, "*", *fields(_as_fields(each))) for each in sealed
    )
    return Commit((guard,), (*added, ("SET", key, _head_text(after.number, after.digest))))


async def claim(store: Store, source: str, name: str, now: int) -> bool:
    """Claim the record of a call for this gateway; return False when it was claimed before, here or elsewhere.

    Each gateway of a store receives each call of the MES.
    """
    now_key, before_key = store.keys.audited(now // _CLAIM_MS), store.keys.audited(now // _CLAIM_MS - 1)
    claimed = digest(source, name)
    guards = tuple(HashField(key, claimed, None) for key in (now_key, before_key))
    operations = (("HSET", now_key, claimed, ""), ("PEXPIRE", now_key, 2 * _CLAIM_MS))
    return isinstance(await store.commit(Commit(guards, operations)), Committed)


async def newest(store: Store, count: int) -> list[SealedRecord]:
    """Return the newest records, at most `count`, the oldest of them first."""
    reply = await store.execute("XREVRANGE", store.keys.audit(), "+", "-", "COUNT", count)
    return [_record(entry) for entry in reversed(list(entries(reply)))]


async def read_all(store: Store) -> AsyncIterator[SealedRecord]:
    """Yield every record, the oldest first."""
    after = "-"
    while page := list(entries(await store.execute("XRANGE", store.keys.audit(), after, "+", "COUNT", _PAGE))):
        for entry in page:
            yield _record(entry)
        after = f"({page[-1].entry_id}"


def _as_fields(record: SealedRecord) -> dict[str, str]:
    return {"number": str(record.number), "digest": record.digest, "record": record.text}


def _record(entry: Entry) -> SealedRecord:
    number = entry.fields.get("number", "")
    is_number = number.isdecimal() and number.isascii()
    return SealedRecord(int(number) if is_number else 0, entry.fields.get("digest", ""), entry.fields.get("record", ""))


def _head_text(number: int, digest: str) -> str:
    return f"{number} {digest}" if number else digest

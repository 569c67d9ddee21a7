"""The audit trail in the store: one stream of sealed records, and the head of their chain."""

from collections.abc import AsyncIterator, Iterator, Sequence

from msgspec import Struct

from edge.model.audit import ChainHead, SealedRecord
from edge.store.client import Store
from edge.store.commit import Absent, Commit, HashField, Holds, RedisCommand, fields
from edge.store.dedupe import digest
from edge.store.keys import Keys
from edge.store.reads import Entry, entries

_PAGE = 500
_CLAIM_MS = 90_000_000
"""How long a call is not recorded again: a broker may deliver it to another gateway a day later."""


async def load_head(store: Store) -> ChainHead:
    """Return the head of the chain; one that cannot be read has the number 0 and its text as digest."""
    return _head(await store.execute("GET", store.keys.audit_head()) or "")


def _head(text: str) -> ChainHead:
    number, _, digest = text.partition(" ")
    return ChainHead(int(number), digest) if number.isdecimal() and number.isascii() else ChainHead(0, text)


def append(keys: Keys, before: ChainHead, sealed: Sequence[SealedRecord], keep: int) -> Commit:
    """Append the records that follow `before`; beyond about `keep` records the oldest go."""
    key, after = keys.audit_head(), sealed[-1]
    guard = Holds(key, text) if (text := _head_text(before.number, before.digest)) else Absent(key)
    added: Iterator[RedisCommand] = (
        ("XADD", keys.audit(), "MAXLEN", "~", keep, "*", *fields(_as_fields(record))) for record in sealed
    )
    return Commit((guard,), (*added, ("SET", key, _head_text(after.number, after.digest))))


class CallClaim(Struct, frozen=True):
    """The claim of the record of a call at an instant, in milliseconds since the epoch.

    Each gateway of a store receives each call of the MES: the one whose commit claims it first records it.
    """

    digest: str
    at: int


def call_claim(source: str, name: str, at: int) -> CallClaim:
    """Return the claim of a call that a source has named."""
    return CallClaim(digest(source, name), at)


def claim(keys: Keys, claims: Sequence[CallClaim]) -> Commit:
    """Claim the records of calls; Stale when one of them was claimed before, here or elsewhere."""
    guards = tuple(HashField(key, item.digest, None) for item in claims for key in _keys_of(keys, item))
    added = tuple(("HSET", _keys_of(keys, item)[0], item.digest, "") for item in claims)
    ends = dict.fromkeys(("PEXPIRE", _keys_of(keys, item)[0], 2 * _CLAIM_MS) for item in claims)
    return Commit(guards, (*added, *ends))


async def load_start(store: Store, claims: Sequence[CallClaim]) -> tuple[ChainHead, Sequence[bool]]:
    """Return the head of the chain, and of each claim whether it was made before, in one round trip."""
    if not claims:
        return await load_head(store), ()
    asked = [("HEXISTS", key, item.digest) for item in claims for key in _keys_of(store.keys, item)]
    text, *found = await store.read([("GET", store.keys.audit_head()), *asked])
    return _head(text or ""), [bool(now or before) for now, before in zip(found[::2], found[1::2], strict=True)]


def _keys_of(keys: Keys, call: CallClaim) -> tuple[str, str]:
    period = call.at // _CLAIM_MS
    return keys.audited(period), keys.audited(period - 1)


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

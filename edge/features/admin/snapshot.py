"""A snapshot of the whole store at one instant: read from one server, written to another of any version."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, assert_never

import msgspec

from edge.store.client import Store
from edge.store.commit import MOST_ARGUMENTS, Commit, fields, join, operation, spread
from edge.store.keys import TRANSIENT, Keys
from edge.store.reads import scan_keys

_SNAPSHOT_LUA = (Path(__file__).parent / "snapshot.lua").read_bytes()
_BATCH = 200
_STAGING = "restore"
"""The second part of the keys of a restore before they are renamed."""

OnProgress = Callable[[int], None]
"""Called with the number of keys written so far."""


class _KeyDump(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", forbid_unknown_fields=True):
    """A key without its prefix, and its expiry in milliseconds since the epoch."""

    key: str
    expires_at: int | None = None


class StringKey(_KeyDump, frozen=True, tag="string"):
    """A string."""

    value: str


class HashKey(_KeyDump, frozen=True, tag="hash"):
    """Fields and their values."""

    value: dict[str, str]


class ListKey(_KeyDump, frozen=True, tag="list"):
    """Elements in their order."""

    value: list[str]


class SetKey(_KeyDump, frozen=True, tag="set"):
    """Members."""

    value: list[str]


class SortedSetKey(_KeyDump, frozen=True, tag="zset"):
    """Members and their scores, as the server writes these."""

    value: list[tuple[str, str]]


class Group(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A consumer group: its last delivered entry, and the pending entries with their consumers."""

    name: str
    last_delivered: str
    pending: list[tuple[str, str]]


class StreamKey(_KeyDump, frozen=True, tag="stream"):
    """Entries with their fields, the last id there was, and the groups."""

    value: list[tuple[str, dict[str, str]]]
    last_id: str
    groups: list[Group]


KeyDump = StringKey | HashKey | ListKey | SetKey | SortedSetKey | StreamKey


async def dump(store: Store, now: int) -> list[KeyDump]:
    """Read everything at one instant, except leases; the server serves no other client meanwhile."""
    found = await store.wait("EVAL_RO", _SNAPSHOT_LUA, 0, store.keys.prefix + ":")
    kept = (_kept(now, *value) for value in found)
    return sorted((key for key in kept if not _is_transient(key)), key=lambda key: key.key)


def _kept(now: int, key: str, kind: str, ttl: int, content: Any, *rest: Any) -> KeyDump:
    expires_at = now + ttl if ttl >= 0 else None
    match kind:
        case "string":
            return StringKey(key=key, expires_at=expires_at, value=content)
        case "hash":
            return HashKey(key=key, expires_at=expires_at, value=_pairs(content))
        case "list":
            return ListKey(key=key, expires_at=expires_at, value=content)
        case "set":
            return SetKey(key=key, expires_at=expires_at, value=sorted(content))
        case "zset":
            return SortedSetKey(key=key, expires_at=expires_at, value=list(_pairs(content).items()))
        case _:
            last_id, groups = rest
            entries = [(entry_id, _pairs(flat)) for entry_id, flat in content]
            described = [Group(name, last, [(value[0], value[1]) for value in held]) for name, last, held in groups]
            return StreamKey(key=key, expires_at=expires_at, value=entries, last_id=last_id, groups=described)


def _pairs(flat: Sequence[str]) -> dict[str, str]:
    return dict(zip(flat[::2], flat[1::2], strict=True))


def _is_transient(kept: KeyDump) -> bool:
    """Return whether a key is not state: leases and health of instances, and the rest of an interrupted restore."""
    return kept.key.startswith((*TRANSIENT, f"{_STAGING}:"))


async def restore_dump(store: Store, snapshot: Iterable[KeyDump], now: int, on_progress: OnProgress) -> None:
    """Replace the whole store by a snapshot at one instant.

    It is written to staging keys first: an interruption leaves everything unchanged.
    """
    staging = Keys(f"{store.keys.prefix}:{_STAGING}")
    await _clear(store, staging)
    kept = [
        stored_key
        for stored_key in snapshot
        if not _is_transient(stored_key) and not (stored_key.expires_at or now) < now
    ]
    for done in range(0, len(kept), _BATCH):
        on_progress(done)
        batch = [(f"{staging.prefix}:{stored_key.key}", stored_key) for stored_key in kept[done : done + _BATCH]]
        for key, kept_key in batch:
            if isinstance(kept_key, StreamKey) and _has_wide_entry(kept_key):
                await _write_entries(store, key, kept_key)
        await store.commit(join(_write_key(key, stored_key) for key, stored_key in batch))
    old = [key for key in await _keys_below(store, store.keys) if not key.startswith(f"{staging.prefix}:")]
    moved = (_move_key(staging, store.keys, stored_key) for stored_key in kept if not _is_empty(stored_key))
    await store.commit(join((spread("UNLINK", (), old), *moved)))
    on_progress(len(kept))


def _move_key(staging: Keys, keys: Keys, kept: KeyDump) -> Commit:
    key = f"{keys.prefix}:{kept.key}"
    moved = operation("RENAME", f"{staging.prefix}:{kept.key}", key)
    # Only here: earlier keys would be missing.
    return join((moved, operation("PEXPIREAT", key, kept.expires_at))) if kept.expires_at is not None else moved


async def leased_instances(store: Store) -> list[str]:
    """Return the instances with a lease; a lease remains after the end of a killed instance."""
    leases = Keys(f"{store.keys.prefix}:lease:instance")
    return sorted(key.removeprefix(f"{leases.prefix}:") for key in await _keys_below(store, leases))


async def _clear(store: Store, keys: Keys) -> None:
    if found := await _keys_below(store, keys):
        await store.commit(spread("UNLINK", (), found))


async def _keys_below(store: Store, keys: Keys) -> set[str]:
    return {key async for batch in scan_keys(store, f"{keys.prefix}:*") for key in batch}


def _is_empty(kept: KeyDump) -> bool:
    """Return whether a value leaves no key: Redis keeps empty values of streams with a group only."""
    return not kept.value and not (isinstance(kept, StreamKey) and kept.groups) and not isinstance(kept, StringKey)


def _write_key(key: str, kept: KeyDump) -> Commit:
    return Commit() if _is_empty(kept) else join(_content(key, kept))


def _content(key: str, kept: KeyDump) -> Iterator[Commit]:
    match kept:
        case StringKey(value=text):
            yield operation("SET", key, text)
        case HashKey(value=mapping):
            yield spread("HSET", (key,), fields(mapping))
        case ListKey(value=elements):
            yield spread("RPUSH", (key,), elements)
        case SetKey(value=members):
            yield spread("SADD", (key,), members)
        case SortedSetKey(value=scored):
            yield spread("ZADD", (key,), itertools.chain.from_iterable((score, member) for member, score in scored))
        case StreamKey():
            yield from _stream(key, kept)
        case _:
            assert_never(kept)


def _has_wide_entry(kept: StreamKey) -> bool:
    """Return whether a stream has an entry of another program that no script can write."""
    return any(2 * len(mapping) > MOST_ARGUMENTS for _, mapping in kept.value)


async def _write_entries(store: Store, key: str, kept: StreamKey) -> None:
    for entry_id, mapping in kept.value:
        await store.execute("XADD", key, entry_id, *fields(mapping))


def _stream(key: str, kept: StreamKey) -> Iterator[Commit]:
    for entry_id, mapping in () if _has_wide_entry(kept) else kept.value:
        yield operation("XADD", key, entry_id, *fields(mapping))
    for group in kept.groups:
        yield operation("XGROUP", "CREATE", key, group.name, group.last_delivered, "MKSTREAM")
        for entry_id, consumer in group.pending:
            yield operation("XCLAIM", key, group.name, consumer, 0, entry_id, "FORCE", "JUSTID")
    yield operation("XSETID", key, kept.last_id)

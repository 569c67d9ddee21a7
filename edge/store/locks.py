"""Locks in the store: a hash for each kind, from the object to its holder and those that wait."""

from collections.abc import Iterable, Mapping

import msgspec
import structlog
from msgspec import Struct

from edge.model.lock import Lock, LockKind
from edge.store import work
from edge.store.client import Store
from edge.store.commit import Commit, HashField, join
from edge.store.keys import Keys
from edge.store.work import WorkKind

logger = structlog.get_logger(__name__)


class StoredLock(Struct, frozen=True):
    """A lock as it was read; `text` guards its next commit, None: the object has no lock."""

    kind: LockKind
    object_id: str
    lock: Lock | None
    text: str | None


async def load(store: Store, kind: LockKind, object_ids: Iterable[str]) -> list[StoredLock]:
    """Read the locks of some objects, in their order."""
    ids = list(object_ids)
    texts = await store.execute("HMGET", store.keys.locks(kind.value), *ids) if ids else []
    return [_stored(kind, *identifier) for identifier in zip(ids, texts, strict=True)]


async def load_all(store: Store, kinds: Iterable[LockKind]) -> list[StoredLock]:
    """Read every lock of some kinds, by object."""
    listed = list(kinds)
    found: list[Mapping[str, str]] = await store.read(
        [("HGETALL", store.keys.locks(lock_kind.value)) for lock_kind in listed]
    )
    return [
        _stored(kind, object_id, text)
        for kind, texts in zip(listed, found, strict=True)
        for object_id, text in sorted(texts.items())
    ]


def save(keys: Keys, before: StoredLock, lock: Lock | None) -> Commit:
    """Write the next lock of an object; Stale when it was changed meanwhile.

    A job that holds the lock from now on gets work, so that an instance of its scope continues it at once.
    """
    key = keys.locks(before.kind.value)
    guard = HashField(key, before.object_id, before.text)
    if lock == before.lock and (lock is not None or before.text is None):
        return Commit((guard,))
    if lock is None:
        return Commit((guard,), (("HDEL", key, before.object_id),))
    text = msgspec.json.encode(lock).decode()
    commit = Commit((guard,), (("HSET", key, before.object_id, text),))
    holder, was = lock.holder, before.lock.holder.owner if before.lock else ""
    if not holder.job_id or holder.owner == was:
        return commit
    return join((commit, work.add(keys, holder.scope, WorkKind.LOCK, holder.job_id)))


def _stored(kind: LockKind, object_id: str, text: str | None) -> StoredLock:
    """Read a lock; one that cannot be read counts as free, and is replaced."""
    if text is None:
        return StoredLock(kind, object_id, None, None)
    try:
        return StoredLock(kind, object_id, msgspec.json.decode(text, type=Lock), text)
    except msgspec.DecodeError as error:
        logger.error("lock cannot be read", kind=kind, object=object_id, reason=str(error))
        return StoredLock(kind, object_id, None, text)

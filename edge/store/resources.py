"""What the MES lets a station use: work masters, resources, the limit of job orders."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from edge.model.acceptance import Allowed, ResourceKind
from edge.model.isa95 import WorkMaster
from edge.store import version
from edge.store.client import Store
from edge.store.commit import Commit, Revision, fields, join, operation, spread
from edge.store.keys import Keys
from edge.store.tolerant_read import load_readable
from edge.store.version import Document

_SCOPE = "scope:"
"""Begins the name of the field of a work master that says that a scope lists it."""

DATASCHEMA = "https://opcfoundation.org/UA/ISA95-JOBCONTROL_V2/ISA95WorkMasterDataType/v2.0.0"


def save_work_master(keys: Keys, scope: str, work_master: WorkMaster) -> Commit:
    """Store a work master and allow it in the scope."""
    written = {
        "_dataschema": DATASCHEMA,
        version.FIELD: str(version.current_version(Document.WORK_MASTER)),
        "work_master": msgspec.json.encode(work_master).decode(),
        f"{_SCOPE}{scope}": "",
    }
    return join(
        (
            operation("HSET", keys.workmaster(work_master.id), *fields(written)),
            operation("HINCRBY", keys.workmaster(work_master.id), "rev", 1),
            operation("SADD", keys.workmaster_list(scope), work_master.id),
        )
    )


async def plan_removal(store: Store, scope: str, work_master_ids: Iterable[str]) -> Commit:
    """Take work masters off the list of a scope, and forget those that no other scope lists.

    Jobs that run one keep the recipe they started with. Stale when one was written since it was read here.
    """
    keys, ids = store.keys, tuple(dict.fromkeys(work_master_ids))
    found = await store.read([("HGETALL", keys.workmaster(each)) for each in ids])
    return join(_remove(keys, scope, work_master_id, known) for work_master_id, known in zip(ids, found, strict=True))


def _remove(keys: Keys, scope: str, work_master_id: str, known: Mapping[str, str]) -> Commit:
    key, field = keys.workmaster(work_master_id), f"{_SCOPE}{scope}"
    others = any(name.startswith(_SCOPE) and name != field for name in known)
    return join(
        (
            Commit(guards=(Revision(key, int(known.get("rev", 0))),)),
            operation("HDEL", key, field) if others else operation("DEL", key),
            operation("SREM", keys.workmaster_list(scope), work_master_id),
        )
    )


def allow(keys: Keys, kind: ResourceKind, scope: str, ids: Iterable[str]) -> Commit:
    """Allow resources in a scope."""
    return spread("SADD", (keys.resource_list(kind, scope),), ids)


def disallow(keys: Keys, kind: ResourceKind, scope: str, ids: Iterable[str]) -> Commit:
    """Take resources off the list of a scope."""
    return spread("SREM", (keys.resource_list(kind, scope),), ids)


def set_max_job_orders(keys: Keys, scope: str, limit: int | None) -> Commit:
    """Set the most job orders of a scope; None goes back to the settings' value."""
    if limit is None:
        return operation("DEL", keys.jobacceptance(scope))
    return operation("SET", keys.jobacceptance(scope), limit)


async def load_allowed(store: Store, scope: str) -> Allowed:
    """Read all lists of a scope in one round trip."""
    keys = store.keys
    masters, limit, *members = await store.read(
        [
            ("SMEMBERS", keys.workmaster_list(scope)),
            ("GET", keys.jobacceptance(scope)),
            *(("SMEMBERS", keys.resource_list(kind, scope)) for kind in ResourceKind),
        ]
    )
    return Allowed(
        work_masters=frozenset(masters),
        resources={kind: frozenset(ids) for kind, ids in zip(ResourceKind, members, strict=True)},
        max_job_orders=int(limit) if limit is not None else None,
    )


async def load_work_master(store: Store, work_master_id: str) -> WorkMaster | None:
    """Read a work master; None when there is none."""
    stored = await store.execute("HGETALL", store.keys.workmaster(work_master_id))
    return _work_master(stored) if stored else None


def _work_master(stored: Mapping[str, str]) -> WorkMaster:
    fields = version.upgrade_fields(Document.WORK_MASTER, stored)
    return msgspec.json.decode(fields["work_master"], type=WorkMaster)


async def load_work_masters(store: Store, scope: str) -> Sequence[WorkMaster]:
    """Read the work masters of a scope; one that cannot be read is logged and left out."""
    ids = sorted(await store.execute("SMEMBERS", store.keys.workmaster_list(scope)))
    return await load_readable(store, [store.keys.workmaster(each) for each in ids], _work_master)
